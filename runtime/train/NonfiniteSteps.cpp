//===- NonfiniteSteps.cpp - What becomes of steps not finite --------------===//
#include "NonfiniteSteps.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Support/Text.h"
#include <cmath>

using namespace fsdp;

std::string fsdp::nonfiniteOf(const StepRecord &record) {
  std::string what = !std::isfinite(record.loss) ? "loss" : "";
  if (record.gradNorm && !std::isfinite(*record.gradNorm))
    what += what.empty() ? "gradient norm" : " and gradient norm";
  return what;
}

/// Whether AdamW has left out a step of this gradient norm.
static bool changesNothing(const std::optional<double> &gradNorm) {
  return gradNorm && !std::isfinite(*gradNorm);
}

SkipCounter::Verdict SkipCounter::judge(const StepRecord &record) {
  if (nonfiniteOf(record).empty()) {
    row = 0;
    return Verdict::Counts;
  }
  ++row;
  ++count;
  if (config.onNonfinite != NonfinitePolicy::Skip ||
      !changesNothing(record.gradNorm))
    return Verdict::Stop;
  return row >= config.maxSkippedSteps ? Verdict::TooMany : Verdict::Skip;
}

/// What is on its way to a checkpoint is of good steps.
void NonfiniteSteps::stop(int64_t step, const std::string &why) {
  std::string problem = problemOf([&] {
    if (writer)
      writer->finish();
  });
  throw Error("step " + std::to_string(step) + ": " + why +
              (problem.empty() ? "" : "; " + problem));
}

void NonfiniteSteps::checkStep(int64_t step) {
  std::string first = rank.firstNonfiniteParameter();
  if (!first.empty())
    stop(step, first);
  FoundValue found = rank.firstNonfiniteOfStep();
  if (!found.problem.empty())
    throw Error(found.problem);
  if (!found.text.empty())
    stop(step, "the first value that is not finite: " + found.text);
}

/// Ends the steps that have begun meanwhile. Returns whether one has changed
/// the parameters.
bool NonfiniteSteps::endOthers() {
  bool isChanged = false;
  while (rank.stepsBegun() > 0) {
    rank.endStep();
    isChanged |= !changesNothing(rank.gradNorm());
  }
  return isChanged;
}

/// Runs a step again that has changed nothing.
std::string NonfiniteSteps::nameFirstValue(int64_t step, int32_t number,
                                           bool isAfterUpdate) {
  std::string problem = rank.readValueNames();
  if (!problem.empty())
    return "all parameters are finite, the step's own values are not (" +
           problem + ")";
  rank.setInputs(step, number);
  auto [first, mismatch] = rank.firstNonfiniteOfStep();
  if (!isAfterUpdate && !changesNothing(rank.gradNorm()))
    stop(step,
         "the step was not finite, but was finite when it ran again, which "
         "changed the parameters; the run was stopped: sums of compile.reduce "
         "= \"fast\" may differ between two runs, and so may results of a "
         "faulty machine; resume from the last checkpoint");
  const std::string nextStep =
      "the next step, which had started, has changed the parameters";
  if (!mismatch.empty())
    return "all parameters are finite, the step's own values are not (" +
           mismatch + ")";
  if (first.empty())
    return "all parameters are finite, and so are all values of the step run "
           "again" +
           (isAfterUpdate ? ": " + nextStep : "");
  return "the first value that is not finite: " + first +
         (isAfterUpdate ? "; of the step run again: " + nextStep : "");
}

/// Names the first parameter that is not finite, or else the first value of the
/// step. Collective.
std::string NonfiniteSteps::firstNonfinite(const StepRecord &record,
                                           int32_t number) {
  bool isRepeatable = changesNothing(record.gradNorm);
  bool isAfterUpdate = endOthers();
  std::string parameter = rank.firstNonfiniteParameter();
  if (!parameter.empty())
    return parameter;
  if (isRepeatable)
    return nameFirstValue(record.step, number, isAfterUpdate);
  const char *why = record.gradNorm
                        ? "it has changed the parameters"
                        : "without a gradient norm it may have changed the "
                          "parameters";
  return std::string("all parameters are finite, the step's own values are "
                     "not; ") +
         why +
         " and cannot be run again, but fsdp-run --check-values finds the "
         "first such value when it is produced";
}

void NonfiniteSteps::look(const StepRecord &record, int32_t number) {
  using Verdict = SkipCounter::Verdict;
  Verdict verdict = counter.judge(record);
  if (verdict == Verdict::Counts)
    return;
  std::string what = nonfiniteOf(record) + " is not finite";
  if (verdict != Verdict::Skip) {
    std::string many = verdict == Verdict::TooMany
                           ? format(" and so were %lld steps before it "
                                    "(training.max_skipped_steps)",
                                    static_cast<long long>(counter.inRow() - 1))
                           : "";
    stop(record.step, "the " + what + many + "; the run was stopped: " +
                          firstNonfinite(record, number));
  }
  // Once, for it takes longer than a step.
  std::string first = isNamed ? "" : ": " + firstNonfinite(record, number);
  isNamed = true;
  if (rank.isFirst())
    printMessage(kRunWarning,
                 format("step %lld: the %s; it was skipped (%lld so far)%s",
                        static_cast<long long>(record.step), what.c_str(),
                        static_cast<long long>(skipped()), first.c_str()));
}
