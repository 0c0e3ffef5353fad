//===- RunControl.h - Whether a run goes on ---------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_RUNCONTROL_H
#define FSDP_RUNTIME_TRAIN_RUNCONTROL_H

#include "CheckpointWriter.h"
#include "TrainingRank.h"

namespace fsdp {

/// The limit of steps, and the signals at which a run that saves checkpoints
/// ends early. The same on every rank, wherever a signal has come.
class RunControl {
public:
  /// `writer` is null in a run that saves none: there a signal ends the process
  /// and ranks have nothing to tell each other.
  RunControl(TrainingRank &rank, CheckpointWriter *writer, int64_t steps)
      : rank(rank), writer(writer), steps(steps) {}

  /// What ranks tell each other after every step: the signal that one of them
  /// got, and that a save fails, which all of them finish then. Collective.
  /// Throws as CheckpointWriter::finish().
  void hearOthers();
  /// hearOthers(), and whether the work at hand is still wanted. For work that
  /// is no step.
  bool goesOn();
  /// Whether the run begins another step after `done` of them.
  bool beginsStep(int64_t done) const { return done < steps && !isStopping(); }

  bool isStopping() const { return !why.empty(); }
  /// "stopped by signal 15 (Terminated)"; empty: the run goes on.
  const std::string &whyStopping() const { return why; }

private:
  TrainingRank &rank;
  CheckpointWriter *writer;
  int64_t steps;
  std::string why;
};

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_RUNCONTROL_H
