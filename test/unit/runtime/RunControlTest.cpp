//===- RunControlTest.cpp - Whether a run goes on -------------------------===//
#include "runtime/train/RunControl.h"
#include "FakeRank.h"
#include <gtest/gtest.h>

using namespace fsdp;
using namespace fsdp::test;

TEST(RunControl, BeginsStepsUpToTheLimit) {
  CallLog log;
  FakeRank rank(log);
  RunControl control(rank, nullptr, 3);
  EXPECT_TRUE(control.beginsStep(2));
  EXPECT_FALSE(control.beginsStep(3));
  EXPECT_FALSE(control.beginsStep(4)); // a run that begins after its end
}

// A run that saves nothing is ended by the signal itself: its ranks have
// nothing to agree on.
TEST(RunControl, WithoutCheckpointsNothingIsHeard) {
  CallLog log;
  FakeRank rank(log);
  rank.signal = SIGTERM;
  RunControl control(rank, nullptr, 3);
  EXPECT_TRUE(control.goesOn());
  EXPECT_TRUE(rank.collectives.empty());
}

TEST(RunControl, ASignalStopsTheRun) {
  CallLog log;
  FakeRank rank(log);
  FakeWriter writer(log, rank);
  RunControl control(rank, &writer, 3);
  EXPECT_TRUE(control.goesOn());
  EXPECT_EQ(control.whyStopping(), "");
  rank.signal = SIGTERM;
  EXPECT_TRUE(control.beginsStep(0)); // it is heard after a step
  EXPECT_FALSE(control.goesOn());
  EXPECT_EQ(control.whyStopping(), "stopped by signal 15 (Terminated)");
  EXPECT_FALSE(control.beginsStep(0));
}

// The ranks disagree: one got SIGINT, others SIGTERM or nothing. All take the
// same reason, and keep it.
TEST(RunControl, RanksThatDisagreeStopForOneReason) {
  auto reasonOf = [](int own, std::vector<double> others) {
    CallLog log;
    FakeRank rank(log);
    FakeWriter writer(log, rank);
    RunControl control(rank, &writer, 3);
    rank.signal = own;
    rank.others = std::move(others);
    control.hearOthers();
    rank.signal = SIGUSR1; // later
    control.hearOthers();
    return control.whyStopping();
  };
  const std::string expected = "stopped by signal 15 (Terminated)";
  EXPECT_EQ(reasonOf(0, {1, 0, 0, 0}), expected);
  EXPECT_EQ(reasonOf(SIGINT, {1, 0, 0, 0}), expected);
  EXPECT_EQ(reasonOf(SIGTERM, {0, 2, 0, 0}), expected);
  EXPECT_EQ(reasonOf(0, {0, 1, 0, 0}), "stopped by signal 2 (Interrupt)");
}

// A signal that no run saves at is no reason.
TEST(RunControl, OtherSignalsAreNoReason) {
  CallLog log;
  FakeRank rank(log);
  FakeWriter writer(log, rank);
  rank.signal = SIGHUP;
  RunControl control(rank, &writer, 3);
  EXPECT_TRUE(control.goesOn());
}

TEST(RunControl, ASaveThatFailsOnAnyRankIsFinishedByAll) {
  CallLog log;
  FakeRank rank(log);
  FakeWriter writer(log, rank);
  RunControl control(rank, &writer, 3);
  writer.save({}, SaveContents::Everything);
  control.hearOthers();
  EXPECT_TRUE(writer.isRunning); // it is waited for by nobody
  rank.others = {0, 0, 0, 1};
  control.hearOthers();
  EXPECT_EQ(log, (CallLog{"save 0", "saved 0"}));
  EXPECT_FALSE(control.isStopping());
}

TEST(RunControl, ASignalDuringASaveThatFailsIsHeardToo) {
  CallLog log;
  FakeRank rank(log);
  FakeWriter writer(log, rank);
  RunControl control(rank, &writer, 3);
  writer.save({}, SaveContents::Everything);
  writer.fails = writer.endsRun = true;
  rank.signal = SIGINT;
  EXPECT_EQ(messageOf([&] { control.hearOthers(); }), "the disk is full");
  EXPECT_TRUE(control.isStopping());
}

TEST(RunControl, AllRanksReachTheSameCollectives) {
  expectSameCollectives([](bool isFirst) {
    CallLog log;
    FakeRank rank(log);
    FakeWriter writer(log, rank);
    rank.first = isFirst;
    RunControl control(rank, &writer, 3);
    writer.save({}, SaveContents::Everything);
    control.hearOthers();
    // Only another rank's part fails, and only this one has a signal.
    rank.others = {0, 0, 0, 1};
    rank.signal = isFirst ? SIGTERM : 0;
    control.hearOthers();
    return rank.collectives;
  });
}
