//===- StepLoop.h - The steps of a run, one after another -------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_STEPLOOP_H
#define FSDP_RUNTIME_TRAIN_STEPLOOP_H

#include "NonfiniteSteps.h"
#include "ResumePoint.h"
#include "RunControl.h"
#include <functional>

namespace fsdp {

/// Runs steps until the run's control begins no more. Where they overlap, the
/// next begins before the last one ends, unless something is to be done between
/// them. Collective.
class StepLoop {
public:
  /// What is done with the steps.
  struct Hooks {
    /// A step that has ended and counts, or was skipped.
    std::function<void(const StepRecord &)> report;
    /// Whether something is to be done after `done` steps, and that.
    std::function<bool(int64_t done)> isPauseDue;
    std::function<void(int64_t done)> pause;
  };
  struct Options {
    /// Whether a step may turn out to be skipped, which decides the number of
    /// the next: then steps do not overlap.
    bool maySkip;
    /// Look at every value of every step.
    bool checkValues;
  };

  StepLoop(TrainingRank &rank, RunControl &control, NonfiniteSteps &nonfinite,
           const ResumePoint &start, Options options, Hooks hooks)
      : rank(rank), control(control), nonfinite(nonfinite), start(start),
        options(options), hooks(std::move(hooks)), over(start.step) {}

  /// Throws fsdp::Error.
  void run();
  /// Steps that are over, with those of the runs before.
  int64_t done() const { return over; }

private:
  struct BegunStep {
    StepRecord record; // what is known when it begins
    int32_t number;    // of the optimizer's updates, with this one
    double begin;      // of the rank's clock
  };
  BegunStep beginStep(int64_t step);
  void endStep(const BegunStep &step);

  TrainingRank &rank;
  RunControl &control;
  NonfiniteSteps &nonfinite;
  const ResumePoint &start;
  Options options;
  Hooks hooks;
  int64_t over;
  double lastEnd = 0; // of a step, of the rank's clock
};

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_STEPLOOP_H
