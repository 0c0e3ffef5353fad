//===- FailureReportTest.cpp - How far ranks have come, as text ------------===//
#include "runtime/liveness/FailureReport.h"
#include <gtest/gtest.h>

using namespace fsdp::rt;

TEST(RankProgress, NamesACollective) {
  CollectiveDesc desc{};
  desc.kind = CollectiveKind::ReduceScatter;
  desc.serves = "layers.3";
  EXPECT_EQ(nameOf(desc, 57, "train"),
            "reduce_scatter \"layers.3\" (number 57 of 'train')");
}

TEST(RankProgress, WhatARankIsInComesBeforeWhatItHasEnded) {
  EXPECT_EQ(describeRank({}), "none so far");
  EXPECT_EQ(describeRank({{"A", false}, {"B", false}}), "ended A, B");
  EXPECT_EQ(describeRank({{"A", false}, {"B", true}, {"C", true}}), "in B, C");
}

TEST(RankProgress, RanksAreNamedByRanges) {
  EXPECT_EQ(namesOf({3}), "rank 3");
  EXPECT_EQ(namesOf({0, 1}), "ranks 0, 1");
  EXPECT_EQ(namesOf({0, 1, 2, 4, 7, 8}), "ranks 0-2, 4, 7, 8");
  std::vector<int> odd;
  for (int rank = 1; rank < 100; rank += 2)
    odd.push_back(rank);
  EXPECT_EQ(namesOf(odd), "ranks 1, 3, 5, 7, 9, 11, 13, 15 and 42 more");
}

TEST(RankProgress, EqualTextsAreSaidOnce) {
  EXPECT_EQ(foldRanks({"A", "B", "A", "A"}, -1), "ranks 0, 2, 3: A; rank 1: B");
  EXPECT_EQ(foldRanks({"A", "B", "A", "A"}, 1), "rank 1: B; ranks 0, 2, 3: A");
  // One text has one place, also that of the first.
  EXPECT_EQ(foldRanks({"A", "B", "A"}, 2), "ranks 0, 2: A; rank 1: B");
}

// However many ranks there are, and wherever they are.
TEST(RankProgress, IsBounded) {
  std::vector<std::string> texts(4096);
  for (size_t rank = 0; rank < texts.size(); ++rank)
    texts[rank] = std::to_string(rank);
  std::string said = foldRanks(texts, 4000);
  EXPECT_EQ(said.find("rank 4000: 4000; rank 0: 0; rank 1: 1"), 0u) << said;
  std::string end = "rank 6: 6; 4088 more ranks elsewhere";
  EXPECT_EQ(said.substr(said.size() - end.size()), end);
  // One rank that is late is told, of nine groups that are not.
  for (size_t rank = 0; rank < texts.size(); ++rank)
    texts[rank] = std::to_string(rank % 9);
  texts[4090] = "late";
  EXPECT_EQ(foldRanks(texts, -1).find("rank 4090: late; "), 0u);
  for (size_t rank = 0; rank < texts.size(); ++rank)
    texts[rank] = rank % 2 == 0 ? "A" : "B";
  EXPECT_LT(foldRanks(texts, -1).size(), 150u);
}
