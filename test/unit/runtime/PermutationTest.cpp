//===- PermutationTest.cpp - An order of many numbers in no memory --------===//
#include "runtime/data/Permutation.h"
#include <gtest/gtest.h>
#include <set>
#include <vector>

using namespace fsdp::rt;

TEST(Permutation, HasEveryNumberOnce) {
  for (int64_t count = 1; count < 300; ++count)
    for (uint64_t key : {0u, 1u, 77u}) {
      Permutation order(count, key);
      std::vector<bool> isThere(static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i) {
        int64_t at = order(i);
        ASSERT_TRUE(at >= 0 && at < count && !isThere[at]) << count << " " << i;
        isThere[at] = true;
      }
    }
}

TEST(Permutation, TakesManyNumbers) {
  constexpr int64_t kCount = (int64_t{1} << 40) + 12345;
  Permutation order(kCount, 3);
  std::set<int64_t> places;
  for (int64_t i = 0; i < 2000; ++i) {
    int64_t at = order(kCount - 1 - i);
    ASSERT_TRUE(at >= 0 && at < kCount);
    places.insert(at);
  }
  EXPECT_EQ(places.size(), 2000u);
}

/// Each of 8 numbers stands in each place about equally often, and so do pairs
/// of neighbours.
TEST(Permutation, OrdersAreEquallyLikely) {
  constexpr int kKeys = 8000;
  std::vector<int> places(64), pairs(64);
  for (uint64_t key = 0; key < kKeys; ++key) {
    Permutation order(8, key * 0x9e3779b97f4a7c15);
    for (int64_t i = 0; i < 8; ++i)
      ++places[i * 8 + order(i)];
    ++pairs[order(0) * 8 + order(1)];
  }
  for (int count : places)
    EXPECT_NEAR(count, kKeys / 8, 180); // six standard deviations
  for (int i = 0; i < 64; ++i)
    EXPECT_NEAR(pairs[i], i / 8 == i % 8 ? 0 : kKeys / 56.0, 90) << i;
}
