//===- NonfiniteStepsTest.cpp - What becomes of steps not finite ----------===//
#include "runtime/train/NonfiniteSteps.h"
#include "FakeRank.h"
#include <gtest/gtest.h>

using namespace fsdp;
using namespace fsdp::test;
using Verdict = SkipCounter::Verdict;

static StepRecord recordOf(int64_t step, double loss,
                           std::optional<double> norm) {
  return {step, loss, norm, 0.5, 1};
}

static RunConfig::Training trainingThat(NonfinitePolicy policy) {
  RunConfig::Training training;
  training.onNonfinite = policy;
  training.maxSkippedSteps = 3;
  return training;
}

TEST(SkipCounter, NamesWhatIsNotFinite) {
  EXPECT_EQ(nonfiniteOf(recordOf(1, 2, 3)), "");
  EXPECT_EQ(nonfiniteOf(recordOf(1, 2, std::nullopt)), "");
  EXPECT_EQ(nonfiniteOf(recordOf(1, NAN, 3)), "loss");
  EXPECT_EQ(nonfiniteOf(recordOf(1, 2, INFINITY)), "gradient norm");
  EXPECT_EQ(nonfiniteOf(recordOf(1, -INFINITY, NAN)), "loss and gradient norm");
}

TEST(SkipCounter, StopsByDefault) {
  RunConfig::Training training = trainingThat(NonfinitePolicy::Stop);
  SkipCounter counter(training, 0);
  EXPECT_EQ(counter.judge(recordOf(1, 2, 3)), Verdict::Counts);
  EXPECT_EQ(counter.judge(recordOf(2, 2, NAN)), Verdict::Stop);
}

// With a finite norm, or none, the step has changed the parameters.
TEST(SkipCounter, SkipsOnlyWhatHasChangedNothing) {
  RunConfig::Training training = trainingThat(NonfinitePolicy::Skip);
  SkipCounter counter(training, 0);
  EXPECT_EQ(counter.judge(recordOf(1, NAN, NAN)), Verdict::Skip);
  EXPECT_EQ(counter.judge(recordOf(2, NAN, 3)), Verdict::Stop);
  EXPECT_EQ(counter.judge(recordOf(2, NAN, std::nullopt)), Verdict::Stop);
}

TEST(SkipCounter, CountsInARowAndInAll) {
  RunConfig::Training training = trainingThat(NonfinitePolicy::Skip);
  SkipCounter counter(training, /*skipped=*/5);
  EXPECT_EQ(counter.judge(recordOf(1, 1, NAN)), Verdict::Skip);
  EXPECT_EQ(counter.judge(recordOf(2, 1, NAN)), Verdict::Skip);
  EXPECT_EQ(counter.inRow(), 2);
  EXPECT_EQ(counter.judge(recordOf(3, 1, 1)), Verdict::Counts);
  EXPECT_EQ(counter.inRow(), 0);
  EXPECT_EQ(counter.skipped(), 7);
  EXPECT_EQ(counter.judge(recordOf(4, 1, NAN)), Verdict::Skip);
  EXPECT_EQ(counter.judge(recordOf(5, 1, NAN)), Verdict::Skip);
  EXPECT_EQ(counter.judge(recordOf(6, 1, NAN)), Verdict::TooMany);
}

namespace {
struct NonfiniteRun {
  CallLog log;
  FakeRank rank{log};
  FakeWriter writer{log, rank};
  RunConfig::Training training;
  NonfiniteSteps steps;

  explicit NonfiniteRun(NonfinitePolicy policy)
      : training(trainingThat(policy)), steps(rank, &writer, training, 0) {}

  std::string look(int64_t step, double loss, std::optional<double> norm) {
    return messageOf([&] { steps.look(recordOf(step, loss, norm), 1); });
  }
};
} // namespace

TEST(NonfiniteSteps, AFiniteStepIsNotLookedAt) {
  NonfiniteRun run(NonfinitePolicy::Stop);
  EXPECT_EQ(run.look(1, 2, 3), "");
  EXPECT_TRUE(run.log.empty());
}

TEST(NonfiniteSteps, AStopNamesTheFirstParameter) {
  NonfiniteRun run(NonfinitePolicy::Stop);
  run.rank.parameter = "the parameter 'w' is not finite";
  EXPECT_EQ(run.look(7, NAN, 3), "step 7: the loss is not finite; the run was "
                                 "stopped: the parameter 'w' is not finite");
}

TEST(NonfiniteSteps, AStopRunsAStepAgainThatChangedNothing) {
  NonfiniteRun run(NonfinitePolicy::Stop);
  run.rank.value = "fwd layers.1 linear";
  EXPECT_EQ(run.look(7, 1, NAN),
            "step 7: the gradient norm is not finite; the run was stopped: the "
            "first value that is not finite: fwd layers.1 linear");
  EXPECT_EQ(run.log, CallLog{"look"});
  EXPECT_EQ(run.rank.numbers.at(7), 1); // its inputs were set again
}

TEST(NonfiniteSteps, AStepThatChangedParametersIsNotRunAgain) {
  NonfiniteRun run(NonfinitePolicy::Stop);
  EXPECT_NE(run.look(7, NAN, 3).find("it has changed the parameters"),
            std::string::npos);
  EXPECT_NE(run.look(8, NAN, std::nullopt).find("without a gradient norm"),
            std::string::npos);
  EXPECT_TRUE(run.log.empty());
}

// Of steps that overlap, the next has begun: it ends before anything is read.
TEST(NonfiniteSteps, TheNextStepEndsFirst) {
  NonfiniteRun run(NonfinitePolicy::Stop);
  run.rank.value = "fwd embedding";
  run.rank.beginStep(8);
  EXPECT_NE(run.look(7, 1, NAN).find(
                "the next step, which had started, has changed the parameters"),
            std::string::npos);
  EXPECT_EQ(run.log, (CallLog{"begin 8", "end 8", "look"}));
}

TEST(NonfiniteSteps, AStepThatIsFiniteWhenRunAgainSaysSo) {
  NonfiniteRun run(NonfinitePolicy::Stop);
  run.rank.normAgain = 1;
  EXPECT_EQ(
      run.look(7, 1, NAN).rfind(
          "step 7: the step was not finite, but was finite when it ran again",
          0),
      0u);
}

TEST(NonfiniteSteps, NamesThatCannotBeReadAreNoOtherError) {
  NonfiniteRun run(NonfinitePolicy::Stop);
  run.rank.valueNamesProblem = "no values.json";
  EXPECT_NE(run.look(7, 1, NAN).find(
                "the step's own values are not (no values.json)"),
            std::string::npos);
  EXPECT_TRUE(run.log.empty());
}

TEST(NonfiniteSteps, SkipsAreSaidAndOnlyTheFirstIsNamed) {
  NonfiniteRun run(NonfinitePolicy::Skip);
  run.rank.value = "fwd embedding";
  testing::internal::CaptureStderr();
  EXPECT_EQ(run.look(4, 1, NAN), "");
  EXPECT_EQ(run.look(5, 1, NAN), "");
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("step 4: the gradient norm is not finite; it was skipped "
                      "(1 so far): the first value that is not finite: fwd "
                      "embedding\n"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("step 5: the gradient norm is not finite; it was skipped "
                      "(2 so far)\n"),
            std::string::npos)
      << said;
  EXPECT_EQ(run.log, CallLog{"look"});
  EXPECT_EQ(run.look(6, 1, NAN).rfind(
                "step 6: the gradient norm is not finite and so were 2 "
                "steps before it (training.max_skipped_steps)",
                0),
            0u);
}

TEST(NonfiniteSteps, OnlyTheFirstRankSaysASkip) {
  NonfiniteRun run(NonfinitePolicy::Skip);
  run.rank.first = false;
  testing::internal::CaptureStderr();
  EXPECT_EQ(run.look(4, 1, NAN), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(run.steps.skipped(), 1);
}

// What is on its way is of good steps; that it failed is said as well.
TEST(NonfiniteSteps, AStopFinishesTheSaveOnItsWay) {
  NonfiniteRun run(NonfinitePolicy::Stop);
  run.rank.parameter = "the parameter 'w' is not finite";
  run.writer.save({}, SaveContents::Everything);
  run.look(7, NAN, 3);
  EXPECT_EQ(run.log, (CallLog{"save 0", "saved 0"}));
  run.writer.save({}, SaveContents::Everything);
  run.writer.fails = run.writer.endsRun = true;
  std::string error = run.look(8, NAN, 3);
  EXPECT_EQ(error.substr(error.rfind("; ")), "; the disk is full");
}

TEST(NonfiniteSteps, ACheckedStepEndsAtItsFirstValue) {
  NonfiniteRun run(NonfinitePolicy::Stop);
  run.steps.checkStep(1);
  run.rank.value = "bwd head dw";
  EXPECT_EQ(messageOf([&] { run.steps.checkStep(2); }),
            "step 2: the first value that is not finite: bwd head dw");
  run.rank.parameter = "the parameter 'w' is not finite";
  EXPECT_EQ(messageOf([&] { run.steps.checkStep(3); }),
            "step 3: the parameter 'w' is not finite");
}

// All that they were told of the step, of its second run and of its values.
TEST(NonfiniteSteps, ACheckedStepMayHaveOtherValuesThanItsNames) {
  NonfiniteRun run(NonfinitePolicy::Stop);
  run.rank.valueProblem = "values.json has no call 7 of 'train'";
  run.rank.value = "bwd head dw"; // which may then be another
  EXPECT_EQ(messageOf([&] { run.steps.checkStep(2); }),
            "values.json has no call 7 of 'train'");
}

TEST(NonfiniteSteps, AllRanksReachTheSameCollectives) {
  for (NonfinitePolicy policy : {NonfinitePolicy::Stop, NonfinitePolicy::Skip})
    for (const char *parameter : {"", "the parameter 'w' is not finite"})
      expectSameCollectives([=](bool isFirst) {
        NonfiniteRun run(policy);
        run.rank.first = isFirst;
        run.rank.parameter = parameter;
        run.rank.value = "fwd embedding";
        run.writer.save({}, SaveContents::Everything);
        testing::internal::CaptureStderr();
        run.look(4, 1, NAN);
        run.look(5, NAN, 3); // which has changed the parameters
        testing::internal::GetCapturedStderr();
        messageOf([&] { run.steps.checkStep(6); });
        return run.rank.collectives;
      });
}
