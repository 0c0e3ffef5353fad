//===- ReporterTest.cpp - What a run tells, and when it validates ---------===//
#include "runtime/train/Reporter.h"
#include "FakeRank.h"
#include "TemporaryFolder.h"
#include "fsdp/Support/AtomicFile.h"
#include "runtime/train/Validation.h"
#include "runtime/train/ValidationSchedule.h"
#include <gtest/gtest.h>

using namespace fsdp;
using namespace fsdp::test;

namespace {
/// A reporter without metrics.jsonl on a virtual clock.
struct ReportedRun {
  TemporaryFolder folder;
  RunConfig config;
  StartPoint start;
  double now = 10;
  LossCurve drawn;

  ReportedRun() {
    config.job.dumpFolder = folder.path;
    config.metrics.jsonl.clear();
    config.metrics.logFreq = 3;
    config.training.steps = 8;
  }
  Reporter reporter(bool isFirst = true) {
    auto draw = [this](const LossCurve &curve) {
      drawn = curve;
      return std::string("<svg/>");
    };
    return Reporter(
        {config, "a title", nullptr, draw, [this] { return now; }, isFirst});
  }
};

/// What is printed.
template <typename Act> std::string printedBy(const Act &act) {
  testing::internal::CaptureStdout();
  act();
  return testing::internal::GetCapturedStdout();
}
} // namespace

static void addStep(Reporter &reporter, int64_t step) {
  reporter.addStep({step, 2.0, 1.0, 0.5, 0.25});
}

TEST(Reporter, ALineForTheFirstStepEveryIntervalAndTheLast) {
  ReportedRun run;
  Reporter reporter = run.reporter();
  std::vector<int64_t> lines;
  printedBy([&] { reporter.beginTraining({}, {100, 1e9, 0, 1 << 20}, ""); });
  for (int64_t step = 1; step <= 8; ++step) {
    std::string line = printedBy([&] { addStep(reporter, step); });
    if (line.empty())
      continue;
    lines.push_back(step);
    EXPECT_NE(line.find("step: "), std::string::npos);
    EXPECT_NE(line.find("tokens/s:       400"), std::string::npos) << line;
  }
  EXPECT_EQ(lines, (std::vector<int64_t>{1, 3, 6, 8}));
}

TEST(Reporter, OtherRanksSayNothing) {
  ReportedRun run;
  Reporter reporter = run.reporter(/*isFirst=*/false);
  EXPECT_EQ(printedBy([&] {
              reporter.beginTraining({}, {100, 1e9, 0, 1}, "");
              addStep(reporter, 1);
              reporter.addValidation(1, 2);
              reporter.endTraining(1, 0);
              reporter.endStopped("stopped", 1, 0, {});
              reporter.addHeldOut({10, 2});
              reporter.writeSummary();
              reporter.tellWritten();
            }),
            "");
}

TEST(Reporter, TheSummaryIsOfAVirtualClock) {
  ReportedRun run;
  Reporter reporter = run.reporter();
  printedBy([&] {
    reporter.beginTraining({}, {100, 1e9, 0, 1 << 20}, "");
    addStep(reporter, 1);
  });
  run.now += 4;
  EXPECT_EQ(printedBy([&] { reporter.endTraining(1, /*skipped=*/1); }),
            "trained 1 steps in 4.0 s\n");
  reporter.writeSummary();
  std::string summary =
      readWholeFile(run.folder.file("summary.json"), "summary");
  EXPECT_EQ(summary,
            "{\n  \"steps\": 1,\n  \"skipped_steps\": 1,\n"
            "  \"training_seconds\": 4.0,\n  \"final_loss\": 2.0\n}\n");
  EXPECT_EQ(run.drawn.title, "a title");
  EXPECT_EQ(run.drawn.losses.size(), 1u);
}

TEST(Reporter, ARunThatIsOverSaysSo) {
  ReportedRun run;
  run.start.step = 8;
  Reporter reporter = run.reporter();
  EXPECT_EQ(printedBy([&] {
              reporter.beginTraining(run.start, {100, 1e9, 0, 1}, "");
            }),
            "all 8 steps are over\n");
}

TEST(Reporter, AStopNamesWhereItGoesOn) {
  ReportedRun run;
  Reporter reporter = run.reporter();
  printedBy([&] { reporter.beginTraining({}, {100, 1e9, 0, 1}, ""); });
  EXPECT_EQ(printedBy([&] { reporter.endStopped("stopped", 0, 0, {}); }),
            "stopped after step 0\n");
  std::string said =
      printedBy([&] { reporter.endStopped("stopped", 4, 0, {}); });
  EXPECT_EQ(
      said.rfind(
          "stopped after step 4, which " + run.folder.path +
              "/checkpoint/step-4 has: the same command resumes from there\n",
          0),
      0u)
      << said;
}

//===----------------------------------------------------------------------===//
// Validation
//===----------------------------------------------------------------------===//

TEST(ValidationSchedule, EveryFreqStepsButTheLast) {
  ReportedRun run;
  auto due = [&] {
    std::vector<int64_t> steps;
    for (int64_t done = 1; done <= 8; ++done)
      if (isValidationDue(run.config, done))
        steps.push_back(done);
    return steps;
  };
  EXPECT_EQ(due(), std::vector<int64_t>()); // freq 0
  run.config.validation.freq = 4;
  EXPECT_EQ(due(), std::vector<int64_t>{4}); // 8 is evaluated by itself
  run.config.validation.freq = 3;
  EXPECT_EQ(due(), (std::vector<int64_t>{3, 6}));
  run.config.validation.enable = false;
  EXPECT_EQ(due(), std::vector<int64_t>());
}

TEST(ValidationSchedule, OnlyARunThatGoesOnMayLackOne) {
  ReportedRun run;
  run.config.validation.freq = 4;
  run.config.metrics.jsonl = "metrics.jsonl";
  run.start.step = 4;
  EXPECT_FALSE(mayLackValidation(run.config, run.start));
  run.start.isOwn = true;
  EXPECT_TRUE(mayLackValidation(run.config, run.start));
  run.start.step = 5;
  EXPECT_FALSE(mayLackValidation(run.config, run.start));
  run.start.step = 12; // after the last
  EXPECT_FALSE(mayLackValidation(run.config, run.start));
  run.start.step = 4;
  run.config.metrics.jsonl.clear(); // no lines, so nobody knows
  EXPECT_FALSE(mayLackValidation(run.config, run.start));
}

TEST(Validation, IsSaidBetweenStepsAndEndsAtASignal) {
  ReportedRun run;
  CallLog log;
  FakeRank rank(log);
  FakeWriter writer(log);
  RunControl control(rank, &writer, 8);
  Reporter reporter = run.reporter();
  printedBy([&] { reporter.beginTraining({}, {100, 1e9, 0, 1}, ""); });
  Validation validation(rank, control, reporter);
  EXPECT_EQ(printedBy([&] {
              validation.validate(4);
            }).rfind("step:     4  held-out", 0),
            0u);
  rank.signal = SIGTERM;
  EXPECT_EQ(printedBy([&] { validation.validate(6); }), "");
  EXPECT_EQ(printedBy([&] { validation.evaluate(); }), "");
  EXPECT_EQ(log, CallLog{"evaluate"});
  EXPECT_TRUE(control.isStopping());
}

TEST(Validation, WithoutHeldOutTokensNothingRuns) {
  ReportedRun run;
  CallLog log;
  FakeRank rank(log);
  rank.heldOut = false;
  RunControl control(rank, nullptr, 8);
  Reporter reporter = run.reporter();
  Validation validation(rank, control, reporter);
  validation.validate(4);
  validation.evaluate();
  EXPECT_TRUE(log.empty());
}

// The first rank has the metrics: the others do as it says.
TEST(Validation, IsMadeUpForOnEveryRank) {
  ReportedRun run;
  run.config.validation.freq = 4;
  run.config.metrics.jsonl = "metrics.jsonl";
  run.start.step = 4;
  run.start.isOwn = true;
  for (bool isLost : {false, true}) {
    CallLog log;
    FakeRank rank(log);
    rank.first = false;
    rank.ofFirstAnswer = isLost;
    RunControl control(rank, nullptr, 8);
    Reporter reporter = run.reporter(/*isFirst=*/false);
    Validation(rank, control, reporter).validateAgain(run.config, run.start);
    EXPECT_EQ(log.size(), isLost ? 1u : 0u);
  }
}
