//===- TrainerNonfinite.cpp - Values that are not finite ------------------===//
#include "Agreement.h"
#include "Nonfinite.h"
#include "Trainer.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Support/RangeNames.h"
#include "fsdp/Support/Text.h"
#include <cmath>
#include <cstdio>

using namespace fsdp;
using namespace fsdp::rt;

/// What of a step is not finite; empty: all is. The same on every rank.
std::string Trainer::nonfiniteOf(const StepRecord &record) {
  std::string what = !std::isfinite(record.loss) ? "loss" : "";
  if (record.gradNorm && !std::isfinite(*record.gradNorm))
    what += what.empty() ? "gradient norm" : " and gradient norm";
  return what;
}

/// Whether AdamW has left out a step of this gradient norm.
static bool changesNothing(const std::optional<double> &gradNorm) {
  return gradNorm && !std::isfinite(*gradNorm);
}

/// What is on its way to a checkpoint is of good steps.
void Trainer::stop(const StepRecord &record, const std::string &why) {
  std::string problem = problemOf([&] {
    if (saver)
      saver->finish();
  });
  throw Error("step " + std::to_string(record.step) + ": " + why +
              (problem.empty() ? "" : "; " + problem));
}

/// Runs a step looking at every value; the first that is not finite ends the
/// run.
void Trainer::checkStep(const BegunStep &step) {
  std::string first = firstNonfiniteParameter(rank);
  if (!first.empty())
    stop(step.record, first);
  FoundValue found = firstNonfiniteOfStep(rank, *values);
  if (!found.problem.empty())
    throw Error(found.problem);
  if (!found.text.empty())
    stop(step.record, "the first value that is not finite: " + found.text);
}

/// Ends the steps that have begun meanwhile. Returns whether one has changed
/// the parameters.
bool Trainer::endOthers() {
  bool isChanged = false;
  for (; stepsBegun > 0; --stepsBegun) {
    rank.endStep();
    const auto *norm = rank.scalar<float>(range_name::kGradNorm);
    isChanged |= !norm || std::isfinite(*norm);
  }
  return isChanged;
}

/// Runs a step again that has changed nothing.
std::string Trainer::nameFirstValue(BegunStep &step, bool isBehindUpdate) {
  std::optional<ValueTable> table;
  std::string problem =
      problemOf([&] { table = readValueTable(*run.artifact); });
  Failures failures = countFailures(rank.world(), problem);
  if (failures.count > 0)
    problem = broadcastText(problem, failures.first);
  if (!problem.empty())
    return "all parameters are finite, the step's own values are not (" +
           problem + ")";
  setInputs(step);
  auto [first, mismatch] = firstNonfiniteOfStep(rank, *table);
  if (!isBehindUpdate &&
      std::isfinite(*rank.scalar<float>(range_name::kGradNorm)))
    stop(step.record,
         "it was not finite, and is so run again, with which it has changed "
         "the parameters; the run was stopped: sums of compile.reduce = "
         "\"fast\" may differ, and so may what a machine with a fault "
         "computes; go on from the last checkpoint");
  const std::string behind =
      "the step behind it, which had begun, has changed the parameters";
  if (!mismatch.empty())
    return "all parameters are finite, the step's own values are not (" +
           mismatch + ")";
  if (first.empty())
    return "all parameters are finite, and so are all values of the step run "
           "again" +
           (isBehindUpdate ? ": " + behind : "");
  return "the first value that is not finite: " + first +
         (isBehindUpdate ? "; of the step run again: " + behind : "");
}

/// Names the first parameter that is not finite, or else the first value of the
/// step. Collective.
std::string Trainer::firstNonfinite(BegunStep step) {
  bool isRepeatable = changesNothing(step.record.gradNorm);
  bool isBehindUpdate = endOthers();
  std::string parameter = firstNonfiniteParameter(rank);
  if (!parameter.empty())
    return parameter;
  if (isRepeatable)
    return nameFirstValue(step, isBehindUpdate);
  const char *why = step.record.gradNorm
                        ? "it has changed the parameters"
                        : "without a gradient norm it may have changed the "
                          "parameters";
  return std::string("all parameters are finite, the step's own values are "
                     "not; ") +
         why +
         " and cannot be run again, but fsdp-run --check-values finds the "
         "first such value when it is made";
}

/// A step whose gradient norm is not finite has changed nothing. Ends the run,
/// or counts the step. `step` is as it began, `record` as it ended.
void Trainer::skipOrStop(const BegunStep &step, const StepRecord &record) {
  std::string what = nonfiniteOf(record) + " is not finite";
  bool skips = config.training.onNonfinite == NonfinitePolicy::Skip &&
               changesNothing(record.gradNorm);
  ++skippedRow;
  ++skipped;
  bool isTooMuch = skips && skippedRow >= config.training.maxSkippedSteps;
  BegunStep again = step;
  again.record = record;
  if (!skips || isTooMuch) {
    std::string many = isTooMuch
                           ? format(" and so were %lld steps before it "
                                    "(training.max_skipped_steps)",
                                    static_cast<long long>(skippedRow - 1))
                           : "";
    stop(record, "the " + what + many +
                     "; the run was stopped: " + firstNonfinite(again));
  }
  // Once, for it takes longer than a step.
  std::string first = isNamed ? "" : ": " + firstNonfinite(again);
  isNamed = true;
  if (rank.isFirst())
    printMessage(kRunWarning,
                 format("step %lld: the %s; it was skipped (%lld so far)%s",
                        static_cast<long long>(record.step), what.c_str(),
                        static_cast<long long>(skipped), first.c_str()));
}
