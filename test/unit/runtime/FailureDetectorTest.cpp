//===- FailureDetectorTest.cpp - Which ranks wait for which ---------------------===//
#include "runtime/liveness/RankWaits.h"
#include <gtest/gtest.h>

using namespace fsdp::rt;

namespace {

/// Four ranks, 2 x 2; channel 0 is of rows ({0, 1}, {2, 3}), channel 1 of
/// columns ({0, 2}, {1, 3}).
std::vector<int> groupOf(int rank, size_t channel) {
  if (channel == 0)
    return {rank / 2 * 2, rank / 2 * 2 + 1};
  return {rank % 2, rank % 2 + 2};
}

uint64_t in(unsigned number, unsigned run = 1, unsigned program = 0) {
  return wordOf({uint16_t(run), uint16_t(program), number, true});
}
uint64_t behind(unsigned number, unsigned run = 1, unsigned program = 0) {
  return wordOf({uint16_t(run), uint16_t(program), number, false});
}

/// A rank that has come to no collective.
const std::vector<ChannelReport> kNone(2);

} // namespace

TEST(RankWaits, NobodyWaits) {
  RankWaits waits({{{in(1), 0}, {}}, {{behind(1), 0}, {}}, kNone, kNone}, {},
                  groupOf);
  EXPECT_EQ(waits.longest().rank, -1);
  EXPECT_EQ(waits.longestForSilent().rank, -1);
}

// Rank 2 hangs; rank 3 waits for it, and rank 1, which came first, for rank 3.
TEST(RankWaits, TheCauseIsFoundBehindOthers) {
  RankWaits waits({{{behind(1), 0}, {in(2), 7}},
                   {{behind(1), 0}, {in(2), 9}},
                   {{behind(0), 0}, {}},
                   {{in(1), 8}, {}}},
                  {}, groupOf);
  RankWait longest = waits.longest(), cause = waits.causeOf(longest);
  EXPECT_EQ(longest.rank, 1);
  EXPECT_EQ(waits.missingIn(longest).text(), "rank 3 has not arrived");
  EXPECT_EQ(cause.rank, 3);
  EXPECT_EQ(cause.channel, 0u);
  EXPECT_EQ(waits.missingIn(cause).text(), "rank 2 has not arrived");
}

// A rank that has left a collective alone waits for the others in the next.
TEST(RankWaits, WhoHasLeftIsNotLate) {
  RankWaits waits({{{behind(1), 0}, {in(2), 9}},
                   {{behind(1), 0}, {behind(2), 0}},
                   {{in(3), 9}, {behind(2), 0}},
                   {{in(4), 9}, {}}},
                  {}, groupOf);
  EXPECT_EQ(waits.missingIn({0, 1, {in(2), 9}}).text(), "rank 2 has left it");
  // Rank 3 is in the next one of the same channel.
  EXPECT_EQ(waits.missingIn({2, 0, {in(3), 9}}).text(), "rank 3 has left it");
  RankWait next{3, 0, {in(4), 9}};
  EXPECT_EQ(waits.missingIn(next).text(), "rank 2 has not arrived");
  EXPECT_EQ(waits.causeOf(next).rank, 2);
}

// Graphs repeat the words of their runs: from the last collective of one to the
// first of another, whichever has the greater number.
TEST(RankWaits, RunsFollowEachOther) {
  auto textOf = [](uint64_t mine, uint64_t other) {
    RankWaits waits({{{mine, 9}, {}}, {{other, 0}, {}}, kNone, kNone}, {},
                    groupOf);
    return waits.missingIn({0, 0, {mine, 9}}).text();
  };
  const char *late = "rank 1 has not arrived", *gone = "rank 1 has left it";
  for (auto [one, two] : {std::pair(4u, 5u), std::pair(5u, 4u)}) {
    EXPECT_EQ(textOf(in(0, one), behind(8, two)), late);
    EXPECT_EQ(textOf(in(0, one), in(8, two)), late);
    EXPECT_EQ(textOf(in(8, one), in(0, two)), gone);
    // A channel with one collective: a rank that came last is behind.
    EXPECT_EQ(textOf(in(3, one), behind(3, two)), late);
  }
  EXPECT_EQ(textOf(in(8, 4, 0), in(2, 5, 1)), gone);
  EXPECT_EQ(textOf(in(2, 5, 1), behind(8, 4, 0)), late);
  EXPECT_EQ(textOf(in(2, 0, 1), behind(8, 0xffff, 0)), late);
  EXPECT_EQ(textOf(in(8, 0xffff, 0), in(2, 0, 1)), gone);
  EXPECT_EQ(textOf(in(0), 0), late);
  EXPECT_EQ(textOf(in(0), in(0)), "all its ranks have arrived");
}

// What a silent rank said last may be the same word of an earlier step.
TEST(RankWaits, SilentRanksAreWaitedFor) {
  RankWaits waits(
      {{{in(1), 1}, {in(2), 9}}, {{in(1), 50}, {}}, {{}, {in(2), 9}}, kNone},
      {1}, groupOf);
  RankWait wait = waits.longestForSilent();
  EXPECT_EQ(wait.rank, 0);
  EXPECT_EQ(wait.channel, 0u);
  EXPECT_EQ(waits.missingIn(wait).text(), "rank 1 is silent");
  EXPECT_EQ(waits.longest().rank, 0); // not the silent one
}

// Two ranks in different collectives wait for each other.
TEST(RankWaits, ACircleHasNoCause) {
  RankWaits waits(
      {{{in(1), 9}, {}}, {{}, {in(2), 8}}, {{in(3), 7}, {}}}, {},
      [](int rank, size_t) { return std::vector<int>{rank, (rank + 1) % 3}; });
  EXPECT_EQ(waits.causeOf(waits.longest()).rank, 0);
}
