//===- FailureReportTest.cpp - The one message that ends a job ------------===//
#include "runtime/liveness/FailureReport.h"
#include <gtest/gtest.h>

using namespace fsdp::rt;

namespace {

/// Three ranks of one group, and an artifact with names.
class FailureText : public testing::Test {
protected:
  FailureText() {
    collectives[0].serves = "fwd layers.3";
    collectives[1].kind = CollectiveKind::ReduceScatter;
    collectives[1].serves = "bwd layers.3";
    artifact.groups = 1;
    artifact.collectives = 2;
    artifact.collective = collectives;
    artifact.programs = 1;
    artifact.program = &program;
    table.setChannels(4, [](int, size_t) { return std::vector<int>{0, 1, 2}; });
    for (int rank = 0; rank < 3; ++rank) {
      RankRow &row = table.row(rank);
      row.state = RankState::Here;
      row.pid = 4711 + rank;
      row.host = "n08";
      row.heard = now;
    }
  }
  static uint64_t in(uint32_t number, uint32_t index) {
    return ProgressCounter{1, 0, number, index, true}.encode();
  }
  void set(int rank, Stream stream, uint64_t counter, double since) {
    table.row(rank).channels[size_t(stream)] = {counter, since};
  }
  std::string say(bool isLive = false, bool hasNames = true) {
    return describeFailure(
        detectFailure(table, now, limits, 0),
        {table, limits, hasNames ? &artifact : nullptr, isLive});
  }

  CollectiveDesc collectives[2] = {};
  fsdp_program program{"train", nullptr};
  fsdp_artifact artifact{};
  ProgressTable table{3};
  double now = 100;
  LivenessLimits limits{30, 60, 1, 2};
};

} // namespace

TEST_F(FailureText, NamesACollective) {
  EXPECT_EQ(nameOfCollective(in(57, 1), artifact),
            "reduce_scatter \"bwd layers.3\" (number 57 of 'train')");
  EXPECT_EQ(nameOfCollective(in(57, 2), artifact),
            "a collective of another program");
  EXPECT_EQ(
      nameOfCollective(ProgressCounter{1, 1, 0, 0, true}.encode(), artifact),
      "a collective of another program");
}

TEST_F(FailureText, WhatARankIsInComesBeforeWhatItHasEnded) {
  auto say = [&] { return describeRank(table.row(0), artifact); };
  EXPECT_EQ(say(), "none so far");
  set(0, Stream::Gather, ProgressCounter::after(in(1, 0)), 0);
  set(0, Stream::Reduce, ProgressCounter::after(in(2, 1)), 0);
  EXPECT_EQ(say(), "ended all_gather \"fwd layers.3\" (number 1 of 'train'), "
                   "reduce_scatter \"bwd layers.3\" (number 2 of 'train')");
  set(0, Stream::Reduce, in(2, 1), 0);
  EXPECT_EQ(say(), "in reduce_scatter \"bwd layers.3\" (number 2 of 'train')");
  table.row(0).heard = kNever;
  EXPECT_EQ(say(), "not known");
}

TEST_F(FailureText, OfASilentRank) {
  table.row(2).heard = now - 31;
  set(2, Stream::Gather, ProgressCounter::after(in(5, 0)), now - 31);
  for (int rank = 0; rank < 2; ++rank)
    set(rank, Stream::Reduce, in(6, 1), now - 30 + rank);
  std::string silence = "no sign of life from rank 2 (process 4713 on n08) for "
                        "30 s: it is stopped, dead or out of reach "
                        "(FSDP_HEARTBEAT sets the limit)",
              waits = "; rank 0 waits for rank 2 in reduce_scatter "
                      "\"bwd layers.3\" (number 6 of 'train') on stream "
                      "reduce",
              all = "rank 2: ended all_gather \"fwd layers.3\" (number 5 of "
                    "'train'); ranks 0, 1: in reduce_scatter \"bwd "
                    "layers.3\" (number 6 of 'train')";
  EXPECT_EQ(say(), silence + waits +
                       "; last collectives, at the last "
                       "heartbeats: " +
                       all);
  EXPECT_EQ(say(/*isLive=*/true),
            silence + waits + "; last collectives: " + all);
  EXPECT_EQ(say(false, /*hasNames=*/false), silence);
  // GPUs that write no counters.
  table.setChannels(0, {});
  EXPECT_EQ(say(), silence);
}

TEST_F(FailureText, OfACollectiveThatIsStuck) {
  set(0, Stream::Gather, in(5, 0), now - 61);
  set(1, Stream::Gather, in(5, 0), now - 60);
  const char *stuck =
      "rank 0: all_gather \"fwd layers.3\" (number 5 of 'train') on stream "
      "gather has not ended within 60 s (FSDP_TIMEOUT sets the limit); ";
  const char *all =
      "; last collectives: rank 2: none so far; ranks 0, 1: in all_gather "
      "\"fwd layers.3\" (number 5 of 'train')";
  EXPECT_EQ(say(true), std::string(stuck) + "rank 2 has not arrived" + all);
  // Rank 2 itself waits for rank 1, in another group.
  set(1, Stream::Gather, 0, now);
  set(2, Stream::Reduce, in(6, 1), now - 50);
  table.ranksOf = [](int, size_t channel) {
    return Stream(channel) == Stream::Reduce ? std::vector<int>{1, 2}
                                             : std::vector<int>{0, 2};
  };
  EXPECT_EQ(say(true).find(std::string(stuck) +
                           "rank 2 waits in reduce_scatter \"bwd layers.3\" "
                           "(number 6 of 'train') on stream reduce; rank 1 has "
                           "not arrived; last collectives: rank 1: none so "
                           "far; rank 0: in "),
            0u)
      << say(true);
}

TEST_F(FailureText, OfALoss) {
  auto lose = [&](int rank) {
    table.row(rank).state = RankState::Lost;
    table.row(rank).lost = now - 2;
  };
  lose(1);
  EXPECT_EQ(say(false, false),
            "rank 1 (process 4712 on n08) has ended without a word");
  lose(2);
  EXPECT_EQ(say(false, false), "rank 1 (process 4712 on n08) has ended without "
                               "a word; so has rank 2");
  table.row(1).pid = 0;
  EXPECT_EQ(say(false, false),
            "rank 1 has ended while the ranks met; so has rank 2");
  table.rows.resize(12, table.row(2));
  EXPECT_EQ(say(false, false),
            "rank 1 has ended while the ranks met; so have ranks 2, 3, 4, 5, "
            "6, 7, 8 and 3 more");
}

TEST_F(FailureText, OfAProblem) {
  table.row(1).stage = {"the making of communicators", 5, now - 8};
  Failure failure{Failure::StageStuck, {1}};
  EXPECT_EQ(describeFailure(failure, {table, limits, nullptr, false}),
            "the making of communicators has not ended within 5 s "
            "(FSDP_TIMEOUT sets the limit)");
  table.row(1).stage = {};
  table.stateProblem(1, "the network is gone", now - 2);
  set(0, Stream::Gather, in(5, 0), now - 9);
  EXPECT_EQ(say(true),
            "the network is gone; rank 0 waits in all_gather \"fwd "
            "layers.3\" (number 5 of 'train') on stream gather; ranks 1, 2 "
            "have not arrived; last collectives: ranks 1, 2: none so far; "
            "rank 0: in all_gather \"fwd layers.3\" (number 5 of 'train')");
}

TEST(FailureTextParts, RanksAreNamedByRanges) {
  EXPECT_EQ(namesOf({3}), "rank 3");
  EXPECT_EQ(namesOf({0, 1}), "ranks 0, 1");
  EXPECT_EQ(namesOf({0, 1, 2, 4, 7, 8}), "ranks 0-2, 4, 7, 8");
  std::vector<int> odd;
  for (int rank = 1; rank < 100; rank += 2)
    odd.push_back(rank);
  EXPECT_EQ(namesOf(odd), "ranks 1, 3, 5, 7, 9, 11, 13, 15 and 42 more");
}

TEST(FailureTextParts, EqualTextsAreSaidOnce) {
  EXPECT_EQ(foldRanks({"A", "B", "A", "A"}, -1), "ranks 0, 2, 3: A; rank 1: B");
  EXPECT_EQ(foldRanks({"A", "B", "A", "A"}, 1), "rank 1: B; ranks 0, 2, 3: A");
  // One text has one place, also that of the first.
  EXPECT_EQ(foldRanks({"A", "B", "A"}, 2), "ranks 0, 2: A; rank 1: B");
}

// However many ranks there are, and wherever they are.
TEST(FailureTextParts, IsBounded) {
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
