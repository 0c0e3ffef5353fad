//===- Permutation.h - An order of many numbers in no memory ----*- C++ -*-===//
#ifndef FSDP_RUNTIME_DATA_PERMUTATION_H
#define FSDP_RUNTIME_DATA_PERMUTATION_H

#include <cstdint>

namespace fsdp::rt {

/// A permutation of 0 .. count - 1 that depends on the key alone. Each number's
/// place is computed by itself: a balanced Feistel network (Luby and Rackoff,
/// "How to construct pseudorandom permutations", 1988) over the next power of
/// four, walked along its cycle until the number is below `count` (Black and
/// Rogaway, "Ciphers with arbitrary finite domains", 2002).
class Permutation {
public:
  /// `count` is at least 1.
  Permutation(int64_t count, uint64_t key);

  int64_t operator()(int64_t number) const;

private:
  uint64_t mix(uint64_t number) const;

  uint64_t count, key;
  int halfBits = 1;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DATA_PERMUTATION_H
