//===- TrainingRank.h - A rank as training sees it --------------*- C++ -*-===//
//
// The few calls that the pieces of training make on their rank. ArtifactRank
// makes them of a loaded artifact; a test makes them of numbers.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_TRAIN_TRAININGRANK_H
#define FSDP_RUNTIME_TRAIN_TRAININGRANK_H

#include "Agreement.h"
#include "Evaluate.h"
#include "Nonfinite.h"

namespace fsdp {

class TrainingRank {
public:
  virtual ~TrainingRank() = default;

  virtual bool isFirst() const = 0;
  /// The time of a clock that never goes back.
  virtual double seconds() const = 0;
  /// The first signal that asked this rank to end the run, or 0.
  virtual int stopSignal() const = 0;

  /// Adds up the values of all ranks. Collective.
  virtual void sum(double *values, int64_t count) = 0;
  /// The first rank's value, on all of them. Collective.
  virtual bool ofFirst(bool value) = 0;
  /// See Agreement.h. Collective.
  virtual Failures countFailures(const std::string &problem) = 0;
  virtual void requireSuccess(const std::string &problem) = 0;

  /// Whether the next step may begin while the last one runs.
  virtual bool stepsOverlap() const = 0;
  /// Sets the inputs of step `step` (from 1), the `number`th that the optimizer
  /// counts. Returns its learning rate, if the artifact has one.
  virtual std::optional<double> setInputs(int64_t step, int32_t number) = 0;
  /// Collective.
  virtual void beginStep(int64_t step) = 0;
  /// Waits for the first step that has begun and not ended; the outputs are its
  /// own then. Throws fsdp::Error.
  virtual void endStep() = 0;
  /// Steps that have begun and not ended.
  virtual int stepsBegun() const = 0;
  /// The mean over the job. Collective.
  virtual double loss() = 0;
  virtual std::optional<double> gradNorm() const = 0;

  /// Reads the names of a step's values. Returns why that cannot be, the same
  /// on every rank; empty: they are read. Collective.
  virtual std::string readValueNames() = 0;
  /// See Nonfinite.h; of a step whose inputs are set, after readValueNames().
  virtual std::string firstNonfiniteParameter() = 0;
  virtual FoundValue firstNonfiniteOfStep() = 0;

  virtual bool hasHeldOut() const = 0;
  /// See Evaluate.h. Leaves a batch that was given as it is. Collective.
  virtual std::optional<HeldOutScore> evaluateHeldOut(const GoesOn &goesOn) = 0;
};

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_TRAININGRANK_H
