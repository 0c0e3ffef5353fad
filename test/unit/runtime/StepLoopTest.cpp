//===- StepLoopTest.cpp - The steps of a run, one after another -----------===//
#include "runtime/train/StepLoop.h"
#include "FakeRank.h"
#include <gtest/gtest.h>

using namespace fsdp;
using namespace fsdp::test;

namespace {
/// A run of 3 steps that pauses where the test says.
struct LoopRun {
  CallLog log;
  FakeRank rank{log};
  FakeWriter writer{log, rank};
  RunConfig::Training training;
  ResumePoint start;
  StepLoop::Options options{};
  int64_t limit = 3, pauseAfter = -1;
  std::vector<StepRecord> records;
  int64_t done = 0;

  void run() {
    RunControl control(rank, &writer, limit);
    NonfiniteSteps nonfinite(rank, &writer, training, start.skippedSteps);
    StepLoop loop(
        rank, control, nonfinite, start, options,
        {[this](const StepRecord &record) { records.push_back(record); },
         [this](int64_t over) { return over == pauseAfter; },
         [this](int64_t over) {
           log.push_back("pause " + std::to_string(over));
         }});
    loop.run();
    done = loop.done();
  }
};
} // namespace

TEST(StepLoop, StepsFollowEachOther) {
  LoopRun loop;
  loop.run();
  EXPECT_EQ(loop.log, (CallLog{"begin 1", "end 1", "begin 2", "end 2",
                               "begin 3", "end 3"}));
  EXPECT_EQ(loop.done, 3);
}

TEST(StepLoop, TheNextBeginsWhileOneRuns) {
  LoopRun loop;
  loop.rank.overlaps = true;
  loop.run();
  EXPECT_EQ(loop.log, (CallLog{"begin 1", "begin 2", "end 1", "begin 3",
                               "end 2", "end 3"}));
}

// Whether a step is skipped decides the number of the next.
TEST(StepLoop, StepsThatMayBeSkippedDoNotOverlap) {
  LoopRun loop;
  loop.rank.overlaps = true;
  loop.options.maySkip = true;
  loop.training.onNonfinite = NonfinitePolicy::Skip;
  loop.rank.norms[1] = NAN;
  testing::internal::CaptureStderr();
  loop.run();
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(loop.log, (CallLog{"begin 1", "end 1", "look", "begin 2", "end 2",
                               "begin 3", "end 3"}));
  EXPECT_EQ(loop.rank.numbers,
            (std::map<int64_t, int32_t>{{1, 1}, {2, 1}, {3, 2}}));
  EXPECT_EQ(loop.records.size(), 3u); // a step that was skipped has a line
}

TEST(StepLoop, NothingRunsDuringAPause) {
  LoopRun loop;
  loop.rank.overlaps = true;
  loop.pauseAfter = 2;
  loop.run();
  EXPECT_EQ(loop.log, (CallLog{"begin 1", "begin 2", "end 1", "end 2",
                               "pause 2", "begin 3", "end 3"}));
}

TEST(StepLoop, GoesOnAfterItsStart) {
  LoopRun loop;
  loop.start.step = 2;
  loop.start.optimizerStart = 1;
  loop.start.skippedSteps = 1;
  loop.run();
  EXPECT_EQ(loop.log, (CallLog{"begin 3", "end 3"}));
  EXPECT_EQ(loop.rank.numbers.at(3), 1);
  loop.log.clear();
  loop.start.step = 5; // all are over
  loop.run();
  EXPECT_TRUE(loop.log.empty());
  EXPECT_EQ(loop.done, 5);
}

TEST(StepLoop, ASignalEndsItAfterTheStepsThatHaveBegun) {
  LoopRun loop;
  loop.rank.signalAfter = 1;
  loop.run();
  EXPECT_EQ(loop.log, (CallLog{"begin 1", "end 1"}));
  EXPECT_EQ(loop.done, 1);
  LoopRun overlapping;
  overlapping.rank.overlaps = true;
  overlapping.rank.signalAfter = 1;
  overlapping.run();
  EXPECT_EQ(overlapping.log, (CallLog{"begin 1", "begin 2", "end 1", "end 2"}));
  EXPECT_EQ(overlapping.done, 2);
}

// Of steps that overlap, each lasts from the end of the one before: no second
// is counted twice.
TEST(StepLoop, SecondsAreThoseOfAVirtualClock) {
  LoopRun loop;
  loop.rank.overlaps = true;
  loop.run();
  double sum = 0;
  for (const StepRecord &record : loop.records)
    sum += record.seconds;
  EXPECT_EQ(sum, 6);
  EXPECT_EQ(loop.records.at(2).seconds, 2);
  EXPECT_EQ(loop.records.at(0).lr, 0.5);
  EXPECT_EQ(loop.records.at(0).gradNorm, 1);
}

TEST(StepLoop, CheckedStepsAreLookedAtInsteadOfBegun) {
  LoopRun loop;
  loop.options.checkValues = true;
  loop.rank.normAgain = 1;
  loop.run();
  EXPECT_EQ(loop.log, (CallLog{"look", "look", "look"}));
  EXPECT_EQ(loop.done, 3);
}

TEST(StepLoop, AllRanksReachTheSameCollectives) {
  for (bool overlaps : {false, true})
    expectSameCollectives([overlaps](bool isFirst) {
      LoopRun loop;
      loop.rank.first = isFirst;
      loop.rank.overlaps = overlaps;
      loop.rank.signalAfter = 2;
      loop.run();
      return loop.rank.collectives;
    });
}
