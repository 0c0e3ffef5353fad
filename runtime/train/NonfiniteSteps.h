//===- NonfiniteSteps.h - What becomes of steps not finite ------*- C++ -*-===//
//
// By training.on_nonfinite a step whose loss or gradient norm is not finite
// ends the run, or is left out: AdamW changes nothing with a norm that is not
// finite, so the run can go on without it.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_TRAIN_NONFINITESTEPS_H
#define FSDP_RUNTIME_TRAIN_NONFINITESTEPS_H

#include "CheckpointWriter.h"
#include "TrainingRank.h"
#include "runtime/report/Metrics.h"

namespace fsdp {

/// What of a step is not finite, "loss and gradient norm"; empty: all is.
std::string nonfiniteOf(const StepRecord &record);

/// Counts the steps that are left out.
class SkipCounter {
public:
  SkipCounter(const RunConfig::Training &config, int64_t skipped)
      : config(config), count(skipped) {}

  enum class Verdict { Counts, Skip, Stop, TooMany };
  /// What becomes of a step: it counts, it is left out, or it ends the run, by
  /// itself or as the last of training.max_skipped_steps in a row.
  Verdict judge(const StepRecord &record);

  /// Steps left out, with those of the runs before.
  int64_t skipped() const { return count; }
  /// Of them those since the last good step.
  int64_t inRow() const { return row; }

private:
  const RunConfig::Training &config;
  int64_t count, row = 0;
};

/// Applies the verdict, and names the first value that is not finite.
/// Collective.
class NonfiniteSteps {
public:
  /// `writer` may be null; `skipped` steps were left out before.
  NonfiniteSteps(TrainingRank &rank, CheckpointWriter *writer,
                 const RunConfig::Training &config, int64_t skipped)
      : rank(rank), writer(writer), counter(config, skipped) {}

  /// Looks at a step that has ended, the `number`th that the optimizer counts.
  /// Throws fsdp::Error if it ends the run.
  void look(const StepRecord &record, int32_t number);
  /// Runs a step whose inputs are set looking at every value. Throws
  /// fsdp::Error that names the first one that is not finite.
  void checkStep(int64_t step);

  int64_t skipped() const { return counter.skipped(); }

private:
  [[noreturn]] void stop(int64_t step, const std::string &why);
  bool endOthers();
  std::string firstNonfinite(const StepRecord &record, int32_t number);
  std::string nameFirstValue(int64_t step, int32_t number, bool isAfterUpdate);

  TrainingRank &rank;
  CheckpointWriter *writer;
  SkipCounter counter;
  bool isNamed = false; // the first value of a step that was skipped
};

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_NONFINITESTEPS_H
