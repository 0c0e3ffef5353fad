//===- RunCheckpointsTest.cpp - The checkpoints of a run ------------------===//
#include "runtime/train/RunCheckpoints.h"
#include "FakeRank.h"
#include "runtime/train/CheckpointSchedule.h"
#include <gtest/gtest.h>

using namespace fsdp;
using namespace fsdp::test;

namespace {
/// A run of 10 steps that saves every 4.
struct SavingRun {
  CallLog log;
  FakeRank rank{log};
  FakeWriter writer{log, rank};
  RunConfig config;
  ResumePoint start;
  RunControl control{rank, &writer, 10};

  SavingRun() {
    config.training.steps = 10;
    config.checkpoint.enable = true;
    config.checkpoint.interval = 4;
  }
  RunCheckpoints checkpoints() {
    return {rank,
            control,
            &writer,
            {config, start, checkpoint::RunState(), /*tokensOfStep=*/64}};
  }
};
} // namespace

static std::vector<int64_t> dueSteps(const RunConfig &config) {
  std::vector<int64_t> steps;
  for (int64_t done = 1; done <= config.training.steps; ++done)
    if (isCheckpointDue(config, done))
      steps.push_back(done);
  return steps;
}

TEST(CheckpointSchedule, IntervalsAndTheLastStep) {
  SavingRun run;
  EXPECT_EQ(dueSteps(run.config), (std::vector<int64_t>{4, 8, 10}));
  run.config.training.steps = 8; // once
  EXPECT_EQ(dueSteps(run.config), (std::vector<int64_t>{4, 8}));
  run.config.checkpoint.enableFirstStepCheckpoint = true;
  EXPECT_EQ(dueSteps(run.config), (std::vector<int64_t>{1, 4, 8}));
  run.config.checkpoint.interval = 500;
  EXPECT_EQ(dueSteps(run.config), (std::vector<int64_t>{1, 8}));
}

TEST(CheckpointSchedule, TheLastMayHaveTheModelAlone) {
  SavingRun run;
  EXPECT_EQ(contentsOfCheckpoint(run.config, 10), SaveContents::Everything);
  run.config.checkpoint.lastSaveModelOnly = true;
  EXPECT_EQ(contentsOfCheckpoint(run.config, 8), SaveContents::Everything);
  EXPECT_EQ(contentsOfCheckpoint(run.config, 10), SaveContents::Export);
}

TEST(RunCheckpoints, NothingIsDueWithoutAWriter) {
  SavingRun run;
  RunCheckpoints none(run.rank, run.control, nullptr,
                      {run.config, run.start, std::nullopt, 64});
  EXPECT_FALSE(none.isDue(4));
  EXPECT_FALSE(none.lacksLast(10));
  none.finish();
}

// The state of a save counts from where the run began.
TEST(RunCheckpoints, AStateGoesOnWithTheRunBefore) {
  SavingRun run;
  run.start.step = 4;
  run.start.tokens = 1000;
  run.start.scheduleStart = 2;
  run.start.optimizerStart = 1;
  run.checkpoints().save(8, /*skipped=*/3);
  const checkpoint::RunState &state = run.writer.states.at(0);
  EXPECT_EQ(state.step, 8);
  EXPECT_EQ(state.tokens, 1000 + 4 * 64);
  EXPECT_EQ(state.skippedSteps, 3);
  EXPECT_EQ(state.scheduleStart, 2);
  EXPECT_EQ(state.optimizerStart, 1);
}

// A save that is on its way ends before the next one begins.
TEST(RunCheckpoints, ASaveWaitsForTheOneOnItsWay) {
  SavingRun run;
  RunCheckpoints checkpoints = run.checkpoints();
  checkpoints.save(4, 0);
  EXPECT_TRUE(run.writer.isRunning);
  checkpoints.save(8, 0);
  checkpoints.finish();
  EXPECT_EQ(run.log, (CallLog{"save 4", "saved 4", "save 8", "saved 8"}));
}

TEST(RunCheckpoints, ASignalSavesWhatIsOver) {
  SavingRun run;
  RunCheckpoints checkpoints = run.checkpoints();
  checkpoints.save(4, 0);
  checkpoints.saveBeforeStop(6, 0);
  EXPECT_EQ(run.log, (CallLog{"save 4", "saved 4", "save 6", "saved 6"}));
}

// It is on its way already, or nothing was trained.
TEST(RunCheckpoints, ASignalSavesNoStepTwice) {
  SavingRun run;
  RunCheckpoints checkpoints = run.checkpoints();
  checkpoints.save(4, 0);
  checkpoints.saveBeforeStop(4, 0);
  EXPECT_EQ(run.log, (CallLog{"save 4", "saved 4"}));
  SavingRun other;
  other.start.step = 4;
  other.checkpoints().saveBeforeStop(4, 0);
  EXPECT_TRUE(other.log.empty());
}

TEST(RunCheckpoints, ASignalWhoseSaveFailsSaysWhatIsLost) {
  SavingRun run;
  run.rank.signal = SIGTERM;
  run.control.hearOthers();
  run.writer.fails = true;
  EXPECT_EQ(messageOf([&] { run.checkpoints().saveBeforeStop(6, 0); }),
            "stopped by signal 15 (Terminated); the steps after the last "
            "checkpoint are lost");
}

TEST(RunCheckpoints, TheLastSaveMayNotLack) {
  SavingRun run;
  RunCheckpoints checkpoints = run.checkpoints();
  checkpoints.save(10, 0);
  run.writer.fails = true; // with checkpoint.on_error = continue
  checkpoints.finish();
  EXPECT_TRUE(checkpoints.lacksLast(10));
  EXPECT_EQ(messageOf([&] {
              checkpoints.requireLast(10);
            }).rfind("step 10, the last one, is not saved", 0),
            0u);
  run.writer.fails = false;
  checkpoints.save(10, 0);
  EXPECT_FALSE(checkpoints.lacksLast(10));
  checkpoints.requireLast(10);
}

// A run that goes on with all steps over has nothing to save.
TEST(RunCheckpoints, WithoutAStepNothingLacks) {
  SavingRun run;
  run.start.step = 10;
  EXPECT_FALSE(run.checkpoints().lacksLast(10));
}

TEST(RunCheckpoints, TheExportComesAfterTheLastSave) {
  SavingRun run;
  RunCheckpoints checkpoints = run.checkpoints();
  checkpoints.exportLast(10); // which is not saved
  EXPECT_TRUE(run.log.empty());
  checkpoints.save(10, 0);
  checkpoints.finish();
  checkpoints.exportLast(10);
  EXPECT_EQ(run.log.back(), "export 10");
}

TEST(RunCheckpoints, ASignalDuringTheSaveEndsBeforeTheExport) {
  SavingRun run;
  RunCheckpoints checkpoints = run.checkpoints();
  checkpoints.save(10, 0);
  checkpoints.finish();
  run.rank.signal = SIGINT;
  checkpoints.exportLast(10);
  EXPECT_EQ(run.log.back(), "saved 10");
  EXPECT_TRUE(run.control.isStopping());
}

TEST(RunCheckpoints, AnExportThatFailsEndsTheRunOrNot) {
  SavingRun run;
  RunCheckpoints checkpoints = run.checkpoints();
  checkpoints.save(10, 0);
  checkpoints.finish();
  run.writer.exportFails = "no space";
  EXPECT_EQ(messageOf([&] { checkpoints.exportLast(10); }),
            "no space; step 10 itself is saved, and the same command tries "
            "again");
  run.config.checkpoint.onError = SaveErrorPolicy::Continue;
  testing::internal::CaptureStderr();
  checkpoints.exportLast(10);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("the run continues"),
            std::string::npos);
}

TEST(RunCheckpoints, ASeedHasTheParametersAlone) {
  SavingRun run;
  run.checkpoints().saveSeed();
  EXPECT_EQ(run.log, (CallLog{"save 0 parameters", "saved 0"}));
  run.start.path = "out/step-4";
  EXPECT_NE(messageOf([&] {
              run.checkpoints().saveSeed();
            }).find("there is 'out/step-4' already"),
            std::string::npos);
}

// A signal may come while the first rank exports and the others wait for it.
TEST(RunCheckpoints, ASignalDuringTheExportIsHeard) {
  for (const char *problem : {"", "interrupted"}) {
    SavingRun run;
    run.config.checkpoint.onError = SaveErrorPolicy::Continue;
    RunCheckpoints checkpoints = run.checkpoints();
    checkpoints.save(10, 0);
    checkpoints.finish();
    run.writer.exportSignal = SIGTERM;
    run.writer.exportFails = problem;
    testing::internal::CaptureStderr();
    checkpoints.exportLast(10);
    std::string said = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(run.control.isStopping());
    // The run does not go on, so nothing says that it does.
    EXPECT_EQ(said.find("the run goes on"), std::string::npos) << said;
    EXPECT_EQ(said.find("interrupted") == std::string::npos, *problem == 0);
  }
}

// The first rank exports; what failed there ends the others, or is its own.
TEST(RunCheckpoints, OtherRanksHearThatTheExportFailed) {
  for (SaveErrorPolicy policy :
       {SaveErrorPolicy::Stop, SaveErrorPolicy::Continue}) {
    SavingRun run;
    run.rank.first = false;
    run.config.checkpoint.onError = policy;
    RunCheckpoints checkpoints = run.checkpoints();
    checkpoints.save(10, 0);
    checkpoints.finish();
    run.rank.otherFailures = {1};
    run.rank.othersFail = true;
    testing::internal::CaptureStderr();
    std::string error = messageOf([&] { checkpoints.exportLast(10); });
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(error,
              policy == SaveErrorPolicy::Stop ? "ended by another rank" : "");
    EXPECT_EQ(run.log, (CallLog{"save 10", "saved 10"}));
  }
}

TEST(RunCheckpoints, AllRanksReachTheSameCollectives) {
  for (SaveErrorPolicy policy :
       {SaveErrorPolicy::Stop, SaveErrorPolicy::Continue})
    for (bool fails : {false, true})
      expectSameCollectives([=](bool isFirst) {
        SavingRun run;
        run.rank.first = isFirst;
        run.config.checkpoint.onError = policy;
        RunCheckpoints checkpoints = run.checkpoints();
        checkpoints.save(4, 0);
        checkpoints.saveBeforeStop(6, 0);
        checkpoints.save(10, 0);
        checkpoints.finish();
        if (fails) {
          run.writer.exportFails = "no space"; // the first rank's
          run.rank.otherFailures = {isFirst ? 0 : 1};
        }
        testing::internal::CaptureStderr();
        messageOf([&] { checkpoints.exportLast(10); });
        testing::internal::GetCapturedStderr();
        run.writer.fails = true;
        checkpoints.save(8, 0);
        checkpoints.finish();
        messageOf([&] { checkpoints.requireLast(10); });
        return run.rank.collectives;
      });
}
