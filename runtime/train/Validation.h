//===- Validation.h - The loss on what is held out, in a run ----*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_VALIDATION_H
#define FSDP_RUNTIME_TRAIN_VALIDATION_H

#include "Reporter.h"
#include "RunControl.h"

namespace fsdp {

/// Evaluates what is held out, and reports it; not to the end where a signal
/// ends the run. Collective. Throws fsdp::Error.
class Validation {
public:
  Validation(TrainingRank &rank, RunControl &control, Reporter &reporter)
      : rank(rank), control(control), reporter(reporter) {}

  /// Between two steps, after `done` of them.
  void validate(int64_t done);
  /// Makes up for a validation that the run before did not come to; see
  /// mayLackValidation().
  void validateAgain(const RunConfig &config, const ResumePoint &start);
  /// After the last step.
  void evaluate();

private:
  std::optional<HeldOutScore> score();

  TrainingRank &rank;
  RunControl &control;
  Reporter &reporter;
};

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_VALIDATION_H
