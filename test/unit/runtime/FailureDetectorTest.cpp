//===- FailureDetectorTest.cpp - Whether a job can go on ------------------===//
//
// Verdicts on a clock of the test's own: nothing here sleeps, and no process
// starts.
//
//===----------------------------------------------------------------------===//
#include "runtime/liveness/FailureDetector.h"
#include "runtime/liveness/FailureReport.h"
#include <gtest/gtest.h>

using namespace fsdp::rt;

namespace {

/// At 100 s all four ranks have just been heard and wait for nobody.
class FailureDetection : public testing::Test {
protected:
  FailureDetection() {
    table.setChannels(2, groupOf);
    for (RankRow &row : table.rows) {
      row.state = RankState::Here;
      row.host = "n1";
      row.heard = now;
    }
    table.backup = 1;
  }
  static uint64_t in(uint32_t number, unsigned run = 1, unsigned program = 0) {
    return ProgressCounter{uint8_t(run), uint8_t(program), number, 0, true}
        .encode();
  }
  static uint64_t after(uint32_t number, unsigned run = 1,
                        unsigned program = 0) {
    return ProgressCounter::after(in(number, run, program));
  }

  /// Four ranks, 2 x 2; channel 0 is of rows ({0, 1}, {2, 3}), channel 1 of
  /// columns ({0, 2}, {1, 3}).
  static std::vector<int> groupOf(int rank, size_t channel) {
    if (channel == 0)
      return {rank / 2 * 2, rank / 2 * 2 + 1};
    return {rank % 2, rank % 2 + 2};
  }

  /// What is decided, in short: "silent 1", "lost 1, 2 by another", "problem 1
  /// to the coordinator"; with the waits, "stuck 0: 0 in 1, late 2" and, where
  /// the cause is another, "stuck 1: 1 in 1, by 3 in 0, late 2".
  static std::string text(const Failure &failure, bool hasWaits = true) {
    static const char *const kinds[] = {"none", "silent",  "not begun", "stuck",
                                        "lost", "problem", "stage"};
    static const char *const missing[] = {"none", "silent", "late", "gone"};
    static const char *const speakers[] = {"", " to the coordinator",
                                           " by another"};
    auto join = [](const std::vector<int> &ranks) {
      std::string all;
      for (int rank : ranks)
        all += (all.empty() ? " " : ", ") + std::to_string(rank);
      return all;
    };
    auto at = [](const RankWait &wait) {
      return std::to_string(wait.rank) + " in " + std::to_string(wait.channel);
    };
    std::string said =
        kinds[failure.kind] + join(failure.ranks) + speakers[failure.speaker];
    if (!hasWaits || failure.wait.rank < 0)
      return said;
    said += ": " + at(failure.wait);
    if (failure.cause.rank != failure.wait.rank ||
        failure.cause.channel != failure.wait.channel)
      said += ", by " + at(failure.cause);
    return said + ", " + missing[failure.missing.kind] +
           join(failure.missing.ranks);
  }

  std::string decide(int rank = 0) {
    return text(detectFailure(table, now, limits, rank));
  }
  /// The clock goes on; all that are here are heard.
  void pass(double seconds) {
    now += seconds;
    for (RankRow &row : table.rows)
      if (row.state == RankState::Here && !isStopped[&row - &table.rows[0]])
        row.heard = now;
  }
  void stop(int rank) { isStopped[rank] = true; }
  void lose(int rank) {
    table.row(rank).state = RankState::Lost;
    table.row(rank).lost = now;
  }
  void set(int rank, std::vector<ChannelProgress> channels) {
    table.row(rank).channels = std::move(channels);
  }

  ProgressTable table{4};
  double now = 100;
  // Grace: 2 s.
  LivenessLimits limits{/*silence=*/30, /*collective=*/60, /*period=*/1,
                        /*lossGrace=*/2};
  bool isStopped[4] = {};
};

} // namespace

TEST_F(FailureDetection, NothingIsWrong) {
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(decide(rank), "none");
}

//===----------------------------------------------------------------------===//
// Silence
//===----------------------------------------------------------------------===//

TEST_F(FailureDetection, SilenceHasALimit) {
  stop(2);
  pass(30);
  EXPECT_EQ(decide(), "none");
  pass(1);
  EXPECT_EQ(decide(), "silent 2");
  EXPECT_EQ(detectFailure(table, now, limits, 0).due, 130);
  // The others leave it to the coordinator.
  EXPECT_EQ(decide(1), "none");
  EXPECT_EQ(decide(3), "none");
}

TEST_F(FailureDetection, WithoutALimitSilenceIsNone) {
  limits.silence = 0;
  stop(0);
  stop(2);
  pass(1e6);
  EXPECT_EQ(decide(), "none");
  EXPECT_EQ(decide(1), "none");
}

TEST_F(FailureDetection, TheFirstOfSeveralSilentOnesIsNamed) {
  stop(3);
  stop(1);
  pass(31);
  EXPECT_EQ(decide(), "silent 1");
}

TEST_F(FailureDetection, ARankThatHasNotBegunIsNotSilent) {
  table.row(2) = {};
  pass(1000);
  EXPECT_EQ(decide(), "none");
}

// One that stops between its connection and its first heartbeat.
TEST_F(FailureDetection, ToBeginHasALimit) {
  table.row(2).state = RankState::NotBegun;
  table.row(2).heard = kNever;
  limits.begin = now;
  EXPECT_EQ(decide(), "none");
  pass(1);
  EXPECT_EQ(decide(), "not begun 2");
  EXPECT_EQ(decide(1), "none"); // that of rank 0 is awaited by the others
  table.row(0).state = RankState::NotBegun;
  table.backup = -1;
  EXPECT_EQ(decide(1), "not begun 0");
}

TEST_F(FailureDetection, ARankThatHasLeftIsNotSilent) {
  table.row(2).state = RankState::Left;
  pass(1000);
  EXPECT_EQ(decide(), "none");
}

// A machine that slept: the clock counts own heartbeats, of which there were
// none, and the others are heard before their time is over.
TEST_F(FailureDetection, AJobThatWasSuspendedGoesOn) {
  for (int rank = 1; rank < 4; ++rank)
    stop(rank);
  for (int heartbeat = 0; heartbeat < 30; ++heartbeat) {
    pass(limits.period);
    EXPECT_EQ(decide(), "none");
  }
  for (bool &stopped : isStopped)
    stopped = false;
  pass(limits.period);
  EXPECT_EQ(decide(), "none");
}

// What it has waited in is as long ago as its last heartbeat.
TEST_F(FailureDetection, WhoWaitsForASilentRank) {
  set(0, {{in(1), 99}, {in(2), 90}});
  set(1, {{in(7), 1}, {}});
  set(2, {{}, {in(2), 90}});
  stop(1);
  pass(31);
  EXPECT_EQ(decide(), "silent 1: 0 in 0, silent 1");
}

//===----------------------------------------------------------------------===//
// The coordinator and its backup
//===----------------------------------------------------------------------===//

TEST_F(FailureDetection, TheBackupSpeaksForASilentCoordinator) {
  stop(0);
  pass(31);
  EXPECT_EQ(decide(1), "silent 0");
  EXPECT_EQ(decide(2), "silent 0 by another");
  EXPECT_EQ(decide(3), "silent 0 by another");
  table.backup = 3;
  EXPECT_EQ(decide(1), "silent 0 by another");
  EXPECT_EQ(decide(3), "silent 0");
}

TEST_F(FailureDetection, TheBackupSpeaksForALostCoordinator) {
  lose(0);
  pass(1);
  EXPECT_EQ(decide(1), "none");
  pass(1);
  EXPECT_EQ(decide(1), "lost 0");
  EXPECT_EQ(decide(2), "lost 0 by another");
}

TEST_F(FailureDetection, WithoutABackupEverybodySpeaks) {
  table.backup = -1;
  stop(0);
  pass(31);
  for (int rank = 1; rank < 4; ++rank)
    EXPECT_EQ(decide(rank), "silent 0");
}

// Where ranks see each other (shared memory), the next one takes its place.
TEST_F(FailureDetection, ABackupThatIsSilentTooIsFollowedByTheNext) {
  stop(0);
  pass(1);
  stop(1);
  pass(30);
  EXPECT_EQ(decide(2), "silent 0 by another"); // its time is not over
  pass(1);
  EXPECT_EQ(decide(2), "silent 0");
  EXPECT_EQ(decide(3), "silent 0 by another");
  lose(2);
  EXPECT_EQ(decide(3), "silent 0");
}

// Of a backup that it cannot see (sockets) a rank assumes that it is there.
TEST_F(FailureDetection, ABackupThatIsNotSeenCanSpeak) {
  stop(0);
  table.row(1) = {};
  pass(31);
  EXPECT_EQ(decide(2), "silent 0 by another");
}

// Nor is a rank silent of which the coordinator alone could tell it.
TEST_F(FailureDetection, TheBackupWaitsForTheCoordinatorAlone) {
  table.ranksOf = [](int, size_t) { return std::vector<int>{0, 1, 2, 3}; };
  for (int rank : {0, 1})
    set(rank, {{in(1), now}, {}});
  for (int rank : {2, 3})
    table.row(rank).state = RankState::NotBegun;
  stop(0);
  pass(31);
  EXPECT_EQ(decide(1), "silent 0: 1 in 0, silent 0");
}

TEST_F(FailureDetection, WhoeverIsToSpeakHasItsTime) {
  stop(0);
  pass(30 + kSpeechSeconds);
  EXPECT_EQ(decide(2), "silent 0 by another");
  pass(1);
  EXPECT_EQ(decide(2), "silent 0");
}

TEST_F(FailureDetection, TheNextOneDecidesWhereTheCoordinatorHasLeft) {
  table.row(0).state = RankState::Left;
  stop(3);
  pass(31);
  EXPECT_EQ(decide(1), "silent 3");
  EXPECT_EQ(decide(2), "none");
  table.row(1).state = RankState::Left;
  EXPECT_EQ(decide(2), "silent 3");
}

TEST_F(FailureDetection, TheBackupIsOnAnotherMachine) {
  EXPECT_EQ(chooseBackup(table, 0), 1);
  table.row(2).host = table.row(3).host = "n2";
  EXPECT_EQ(chooseBackup(table, 0), 2);
  table.row(2).state = RankState::NotBegun;
  EXPECT_EQ(chooseBackup(table, 0), 3);
  table.row(3).state = RankState::Left;
  EXPECT_EQ(chooseBackup(table, 0), 1);
  lose(1);
  EXPECT_EQ(chooseBackup(table, 0), -1);
}

//===----------------------------------------------------------------------===//
// Ends and problems
//===----------------------------------------------------------------------===//

// A job that is killed as a whole ends before that.
TEST_F(FailureDetection, ALossHasAGrace) {
  lose(2);
  pass(1);
  EXPECT_EQ(decide(), "none");
  pass(1);
  EXPECT_EQ(decide(), "lost 2");
  EXPECT_EQ(decide(1), "none");
}

TEST_F(FailureDetection, SeveralAreLostInOneMessage) {
  lose(3);
  pass(1);
  lose(1);
  pass(1);
  EXPECT_EQ(decide(), "lost 1, 3"); // since the first of them
}

// One that the launcher is to end and name.
TEST_F(FailureDetection, TheGraceOfALossIsALimit) {
  limits.lossGrace = kSpeechSeconds;
  lose(2);
  pass(kSpeechSeconds - 1);
  EXPECT_EQ(decide(), "none");
  pass(1);
  EXPECT_EQ(decide(), "lost 2");
}

TEST_F(FailureDetection, AProblemHasAGrace) {
  table.stateProblem(2, "the network is gone", now);
  EXPECT_EQ(decide(), "none");
  pass(1);
  EXPECT_EQ(decide(), "none");
  pass(1);
  EXPECT_EQ(decide(), "problem 2");
}

// Two heartbeats, or half a second where these are short.
TEST_F(FailureDetection, AGraceIsNotShorterThanHalfASecond) {
  limits.period = 0.0625;
  table.stateProblem(2, "the network is gone", now);
  pass(0.4375);
  EXPECT_EQ(decide(), "none");
  pass(0.0625);
  EXPECT_EQ(decide(), "problem 2");
}

// Whoever is first: what others say of an end is its effect.
TEST_F(FailureDetection, AnEndComesBeforeWhatItCauses) {
  table.stateProblem(1, "lost the connection", now);
  pass(1);
  lose(2);
  pass(1);
  EXPECT_EQ(decide(), "none");
  pass(1);
  EXPECT_EQ(decide(), "lost 2");
}

TEST_F(FailureDetection, TheFirstProblemCounts) {
  table.stateProblem(3, "first", now);
  pass(1);
  table.stateProblem(1, "second", now);
  table.stateProblem(3, "third", now);
  pass(2);
  EXPECT_EQ(decide(), "problem 3");
  EXPECT_EQ(table.row(3).problem, "first");
}

// The coordinator is told; if it says nothing, the rank does.
TEST_F(FailureDetection, TheCoordinatorIsToldOfAProblem) {
  table.stateProblem(2, "the network is gone", now);
  pass(1);
  EXPECT_EQ(decide(2), "none");
  pass(1);
  EXPECT_EQ(decide(2), "problem 2 to the coordinator");
  EXPECT_EQ(decide(1), "none"); // which is not its own
  table.row(2).told = now;
  pass(kSpeechSeconds);
  EXPECT_EQ(decide(2), "problem 2 by another");
  pass(1);
  EXPECT_EQ(decide(2), "problem 2");
}

TEST_F(FailureDetection, AProblemAfterTheCoordinatorHasLeft) {
  for (int rank = 0; rank < 2; ++rank)
    table.row(rank).state = RankState::Left;
  table.stateProblem(2, "the network is gone", now);
  pass(2);
  EXPECT_EQ(decide(2), "problem 2");
}

TEST_F(FailureDetection, AStageHasALimitAndAGrace) {
  for (int rank : {0, 2})
    table.row(rank).stage = {"the meeting", 5, now};
  pass(5);
  EXPECT_EQ(decide(), "none");
  pass(1);
  EXPECT_EQ(decide(), "none");
  pass(1);
  EXPECT_EQ(decide(), "stage 0");
  EXPECT_EQ(decide(2), "stage 2 to the coordinator");
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

TEST_F(FailureDetection, ACollectiveHasALimit) {
  set(0, {{in(1), now}, {}});
  pass(60);
  EXPECT_EQ(decide(), "none");
  pass(1);
  EXPECT_EQ(decide(), "stuck 0: 0 in 0, late 1");
  EXPECT_EQ(decide(2), "none"); // the coordinator says it
  limits.collective = 0;
  EXPECT_EQ(decide(), "none");
}

TEST_F(FailureDetection, OutsideOfCollectivesNobodyWaits) {
  for (int rank = 0; rank < 4; ++rank)
    set(rank, {{after(1), now}, {}});
  pass(1000);
  EXPECT_EQ(decide(), "none");
}

TEST_F(FailureDetection, ASilentRankWaitsForNobody) {
  set(1, {{in(1), now}, {}});
  limits.silence = 0;
  stop(1);
  pass(1000);
  EXPECT_EQ(decide(), "none");
}

// It is silent after two heartbeats.
TEST_F(FailureDetection, WhatARankSaidLastGrowsOld) {
  set(1, {{in(1), now - 60}, {}});
  stop(1);
  pass(1);
  EXPECT_EQ(decide(), "stuck 1: 1 in 0, late 0");
  pass(1);
  EXPECT_EQ(decide(), "none");
}

// A wait of one heartbeat is older than what the others have said last.
TEST_F(FailureDetection, AWaitCountsAfterTwoHeartbeats) {
  set(0, {{in(1), now}, {}});
  table.stateProblem(3, "the network is gone", now - 1);
  pass(1);
  EXPECT_EQ(decide(), "problem 3");
  pass(1);
  EXPECT_EQ(decide(), "problem 3: 0 in 0, late 1");
}

// Rank 2 hangs; rank 3 waits for it, and rank 1, which came first, for rank 3.
TEST_F(FailureDetection, TheCauseIsFoundPastOthers) {
  set(0, {{after(1), now}, {in(2), now - 7}});
  set(1, {{after(1), now}, {in(2), now - 9}});
  set(2, {{after(0), now}, {}});
  set(3, {{in(1), now - 8}, {}});
  pass(52);
  EXPECT_EQ(decide(), "stuck 1: 1 in 1, by 3 in 0, late 2");
}

// Ranks in different collectives wait for each other.
TEST_F(FailureDetection, ACircleHasNoCause) {
  table.ranksOf = [](int rank, size_t) {
    return std::vector<int>{rank, (rank + 1) % 3};
  };
  set(0, {{in(1), now - 9}, {}});
  set(1, {{}, {in(2), now - 8}});
  set(2, {{in(3), now - 7}, {}});
  pass(52);
  EXPECT_EQ(decide(), "stuck 0: 0 in 0, late 1");
}

// Nor has who waits for one of them.
TEST_F(FailureDetection, ACircleIsNoCause) {
  table.ranksOf = [](int rank, size_t) {
    return std::vector<int>{rank, (rank + 1) % 3};
  };
  set(0, {{in(1), now - 8}, {}});
  set(1, {{}, {in(2), now - 7}});
  set(2, {{in(3), now - 6}, {}});
  set(3, {{}, {in(4), now - 9}}); // for rank 1
  pass(52);
  EXPECT_EQ(decide(), "stuck 3: 3 in 1, late 1");
}

// A rank that has left a collective alone waits for the others in the next.
TEST_F(FailureDetection, WhoHasLeftIsNotLate) {
  set(0, {{after(1), now}, {in(2), now - 9}});
  set(1, {{after(1), now}, {after(2), now}});
  set(2, {{in(3), now - 8}, {after(2), now}});
  set(3, {{in(4), now - 7}, {}});
  pass(52);
  EXPECT_EQ(decide(), "stuck 0: 0 in 1, gone 2");
  // Rank 3 is in the next one of the same channel.
  table.row(0).channels[1] = {};
  pass(1);
  EXPECT_EQ(decide(), "stuck 2: 2 in 0, gone 3");
  table.row(2).channels[0].counter = after(3);
  pass(1);
  EXPECT_EQ(decide(), "stuck 3: 3 in 0, late 2");
}

TEST_F(FailureDetection, WhoHasLeftTheJobIsGone) {
  set(0, {{in(1), now - 61}, {}});
  set(1, {{after(0), now - 61}, {}});
  table.row(1).state = RankState::Left;
  EXPECT_EQ(decide(), "stuck 0: 0 in 0, gone 1");
}

// What all have come to hangs by itself.
TEST_F(FailureDetection, ACollectiveOfAllItsRanks) {
  set(0, {{in(1), now}, {}});
  set(1, {{in(1), now + 1}, {}});
  pass(61);
  EXPECT_EQ(decide(), "stuck 0: 0 in 0, none");
}

TEST_F(FailureDetection, OfALossItSaysWhoWaits) {
  set(0, {{after(1), now}, {in(2), now - 9}});
  set(2, {{in(1), now - 50}, {}});
  set(3, {{in(1), now - 20}, {}});
  lose(2);
  pass(2);
  EXPECT_EQ(decide(), "lost 2: 3 in 0, silent 2");
}

// Graphs repeat the counters of their runs: from the last collective of one to
// the first of another, whichever has the greater number.
TEST_F(FailureDetection, RunsFollowEachOther) {
  auto missing = [this](uint64_t mine, uint64_t other) {
    set(0, {{mine, now - 61}, {}});
    set(1, {{other, now}, {}});
    return decide();
  };
  const char *late = "stuck 0: 0 in 0, late 1",
             *gone = "stuck 0: 0 in 0, gone 1";
  for (auto [one, two] : {std::pair(4u, 5u), std::pair(5u, 4u)}) {
    EXPECT_EQ(missing(in(0, one), after(8, two)), late);
    EXPECT_EQ(missing(in(0, one), in(8, two)), late);
    EXPECT_EQ(missing(in(8, one), in(0, two)), gone);
    // A channel with one collective: a rank that came last is late.
    EXPECT_EQ(missing(in(3, one), after(3, two)), late);
  }
  EXPECT_EQ(missing(in(8, 4, 0), in(2, 5, 1)), gone);
  EXPECT_EQ(missing(in(2, 5, 1), after(8, 4, 0)), late);
  EXPECT_EQ(missing(in(2, 0, 1), after(8, 255, 0)), late);
  EXPECT_EQ(missing(in(8, 255, 0), in(2, 0, 1)), gone);
  EXPECT_EQ(missing(in(0), 0), late);
}

//===----------------------------------------------------------------------===//
// The table, the counters and the limits
//===----------------------------------------------------------------------===//

// A graph that is launched again has the same counters.
TEST_F(FailureDetection, ALaunchBeginsAnew) {
  uint64_t counters[] = {in(1), 0};
  auto seconds = [&] { return now - table.row(0).channels[0].since; };
  table.take(0, 1, counters, 2, now);
  pass(40);
  table.take(0, 1, counters, 2, now);
  EXPECT_EQ(seconds(), 40);
  table.take(0, 2, counters, 2, now);
  EXPECT_EQ(seconds(), 0);
  pass(40);
  EXPECT_EQ(decide(), "none");
}

// A rank without a context yet says nothing of its channels.
TEST_F(FailureDetection, AnotherNumberOfChannelsIsNotTaken) {
  uint64_t counters[] = {in(1), in(1), in(1)};
  pass(1);
  table.take(3, 1, counters, 3, now);
  table.take(3, 1, nullptr, 0, now);
  EXPECT_EQ(table.row(3).channels[0].counter, 0u);
  EXPECT_EQ(table.row(3).launches, 0u);
}
