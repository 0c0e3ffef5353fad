//===- RepeatsTest.cpp - Repeated runs against brute force ----------------===//
#include "passes/Exec/Repeats.h"
#include <gtest/gtest.h>
#include <random>
#include <string>

using namespace fsdp;

namespace {

std::vector<Repeat> find(const std::string &text, int64_t minSaved = 1) {
  return findRepeats(std::vector<uint32_t>(text.begin(), text.end()), minSaved);
}

/// "begin:period*count ..." for comparing whole results.
std::string show(const std::vector<Repeat> &repeats) {
  std::string text;
  for (const Repeat &repeat : repeats)
    text += std::to_string(repeat.begin) + ":" + std::to_string(repeat.period) +
            "*" + std::to_string(repeat.count) + " ";
  return text;
}

/// The most that any one repeat of the sequence saves.
int64_t bestSaved(const std::vector<uint32_t> &sequence) {
  int64_t best = 0;
  for (size_t period = 1; 2 * period <= sequence.size(); ++period)
    for (size_t begin = 0, equal = 0; begin + period < sequence.size();
         ++begin) {
      equal = sequence[begin] == sequence[begin + period] ? equal + 1 : 0;
      best = std::max(best, savedBy(period, equal / period + 1));
    }
  return best;
}

} // namespace

TEST(Repeats, FindsForwardAndBackwardBlocks) {
  EXPECT_EQ(show(find("iabcdabcdabcdlwxyzwxyzwxyzo")), "1:4*3 14:4*3 ");
}

TEST(Repeats, TakesTheShortestOfEqualPeriods) {
  // Six times three symbols save 15 - 6; three times six save 12 - 3.
  EXPECT_EQ(show(find("abcabcabcabcabcabc")), "0:3*6 ");
}

TEST(Repeats, SymbolsMayRepeatInsideABlock) {
  EXPECT_EQ(show(find("xaabbcaabbcaabbcaabbcy")), "1:5*4 ");
}

TEST(Repeats, LeavesWhatDoesNotPay) {
  EXPECT_EQ(show(find("abab", 1)), "");
  EXPECT_EQ(show(find("abcabc", 1)), "0:3*2 ");
  EXPECT_EQ(show(find("abcabc", 2)), "");
  EXPECT_EQ(show(find("")), "");
}

TEST(Repeats, AreDisjointAndTrueAndIncludeTheBest) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint32_t> sequence;
    // Blocks of random length and count with noise between them.
    while (sequence.size() < 120) {
      std::vector<uint32_t> block(3 + random() % 12);
      for (uint32_t &symbol : block)
        symbol = random() % 40;
      for (size_t count = random() % 5; count > 0; --count)
        sequence.insert(sequence.end(), block.begin(), block.end());
      sequence.push_back(random() % 40);
    }
    int64_t best = 0;
    size_t end = 0;
    for (const Repeat &repeat : findRepeats(sequence, 1)) {
      EXPECT_GE(repeat.begin, end);
      end = repeat.begin + repeat.period * repeat.count;
      ASSERT_LE(end, sequence.size());
      for (size_t i = repeat.begin; i + repeat.period < end; ++i)
        EXPECT_EQ(sequence[i], sequence[i + repeat.period]);
      best = std::max(best, savedBy(repeat.period, repeat.count));
    }
    EXPECT_EQ(best, bestSaved(sequence));
  }
}
