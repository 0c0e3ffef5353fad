//===- Permutation.cpp - An order of many numbers in no memory ------------===//
#include "Permutation.h"
#include "fsdp/Data/Philox.h"

using namespace fsdp::rt;

Permutation::Permutation(int64_t count, uint64_t key)
    : count(static_cast<uint64_t>(count)), key(key) {
  while (halfBits < 31 && uint64_t{1} << 2 * halfBits < this->count)
    ++halfBits;
}

/// A permutation of the numbers of 2 halfBits bits. Four rounds would do for
/// many numbers; halves of few bits need more to favour no order.
uint64_t Permutation::mix(uint64_t number) const {
  constexpr uint32_t kRounds = 12;
  uint64_t mask = (uint64_t{1} << halfBits) - 1;
  uint64_t left = number >> halfBits, right = number & mask;
  for (uint32_t round = 0; round < kRounds; ++round) {
    uint64_t next =
        left ^
        (philox({static_cast<uint32_t>(right), round, 0, 0}, key)[0] & mask);
    left = right;
    right = next;
  }
  return left << halfBits | right;
}

int64_t Permutation::operator()(int64_t number) const {
  auto at = static_cast<uint64_t>(number);
  do
    at = mix(at);
  while (at >= count);
  return static_cast<int64_t>(at);
}
