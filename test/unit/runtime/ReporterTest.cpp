//===- ReporterTest.cpp - What a run tells, and when it validates ---------===//
#include "runtime/train/Reporter.h"
#include "FakeRank.h"
#include "TemporaryFolder.h"
#include "fsdp/Support/AtomicFile.h"
#include "runtime/train/Validation.h"
#include "runtime/train/ValidationSchedule.h"
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <sstream>

using namespace fsdp;
using namespace fsdp::test;

namespace {
/// A reporter without metrics.jsonl on a virtual clock.
struct ReportedRun {
  TemporaryFolder folder;
  RunConfig config;
  ResumePoint start;
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

// Nor do they write a file, which two would write at once.
TEST(Reporter, OtherRanksSayNothing) {
  ReportedRun run;
  run.config.metrics.jsonl = "metrics.jsonl";
  run.drawn.title = "not drawn";
  Reporter reporter = run.reporter(/*isFirst=*/false);
  testing::internal::CaptureStderr();
  EXPECT_EQ(printedBy([&] {
              reporter.beginTraining({}, {100, 1e9, 0, 1}, "{}\n");
              addStep(reporter, 1);
              reporter.addValidation(1, {10, 2});
              reporter.endTraining(1, 0);
              reporter.endStopped("stopped", 1, 0, {});
              reporter.addHeldOut({10, 2});
              EXPECT_FALSE(reporter.compareWithGzip());
              reporter.writeSample("text");
              reporter.writeSummary();
              reporter.tellWritten();
            }),
            "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(std::filesystem::is_empty(run.folder.path));
  EXPECT_EQ(run.drawn.title, "not drawn");
}

// A run that goes on keeps the lines up to its first step, and its curve and
// its seconds have those steps too.
TEST(Reporter, LinesOfEarlierRunsAreKept) {
  ReportedRun run;
  run.config.metrics.jsonl = "metrics.jsonl";
  auto lines = [&] {
    std::string text =
        readWholeFile(run.folder.file("metrics.jsonl"), "metrics");
    std::vector<std::string> found;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
      found.push_back(line);
    return found;
  };
  const std::string header = "{\"run\": {}}\n";
  printedBy([&] {
    Reporter earlier = run.reporter();
    earlier.beginTraining({}, {100, 1e9, 0, 1}, header);
    for (int64_t step = 1; step <= 4; ++step)
      addStep(earlier, step);
  });
  std::vector<std::string> before = lines();
  ASSERT_EQ(before.size(), 5u);

  run.start.step = 2;
  run.start.isOwn = true;
  Reporter reporter = run.reporter();
  std::string said = printedBy([&] {
    reporter.beginTraining(run.start, {100, 1e9, 0, 1},
                           "{\"run\": {\"resumed_from\": \"step-2\"}}\n");
  });
  EXPECT_EQ(said.rfind("metrics: 2 lines", 0), 0u) << said;
  EXPECT_EQ(lines(),
            std::vector<std::string>(before.begin(), before.begin() + 3));
  printedBy([&] { addStep(reporter, 3); });
  std::vector<std::string> after = lines();
  ASSERT_EQ(after.size(), 5u);
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 3, after.begin()));
  EXPECT_NE(after[3].find("resumed_from"), std::string::npos);
  EXPECT_NE(after[4].find("\"step\": 3"), std::string::npos);

  run.now += 4;
  printedBy([&] { reporter.endTraining(3, 0); });
  reporter.writeSummary();
  EXPECT_EQ(run.drawn.firstStep, 1);
  EXPECT_EQ(run.drawn.losses.size(), 3u);
  std::string summary =
      readWholeFile(run.folder.file("summary.json"), "summary");
  // Two steps of a quarter of a second, and what this run took.
  EXPECT_NE(summary.find("\"training_seconds\": 4.5"), std::string::npos)
      << summary;
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
  FakeWriter writer(log, rank);
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

TEST(Validation, AllRanksReachTheSameCollectives) {
  for (bool isLost : {false, true})
    expectSameCollectives([isLost](bool isFirst) {
      ReportedRun run;
      run.config.validation.freq = 4;
      run.config.metrics.jsonl = "metrics.jsonl";
      run.start.step = 4;
      run.start.isOwn = true;
      // The first rank has the lines, the others ask it.
      if (!isLost)
        run.folder.write("metrics.jsonl",
                         "{\"run\": {}}\n{\"validation\": {\"step\": 4, "
                         "\"loss\": 1.25, \"loss_hex\": \"0x1.4p+0\"}}\n");
      CallLog log;
      FakeRank rank(log);
      FakeWriter writer(log, rank);
      rank.first = isFirst;
      rank.ofFirstAnswer = isLost;
      RunControl control(rank, &writer, 8);
      Reporter reporter = run.reporter(isFirst);
      printedBy([&] {
        reporter.beginTraining(run.start, {100, 1e9, 0, 1}, "");
        Validation validation(rank, control, reporter);
        validation.validateAgain(run.config, run.start);
        validation.validate(6);
        validation.evaluate();
      });
      return rank.collectives;
    });
}
