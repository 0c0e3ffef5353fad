//===- RunCheckpoints.h - The checkpoints of a run --------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_RUNCHECKPOINTS_H
#define FSDP_RUNTIME_TRAIN_RUNCHECKPOINTS_H

#include "ResumePoint.h"
#include "RunControl.h"

namespace fsdp {

/// The checkpoints of one run, by its schedule, at a signal and at its end.
/// `done` are the steps that are over. All but isDue() is collective and throws
/// as CheckpointWriter.
class RunCheckpoints {
public:
  /// What a run is that saves: its state before the first step, where it began,
  /// and the tokens of all ranks in a step.
  struct Run {
    const RunConfig &config;
    const ResumePoint &start;
    std::optional<checkpoint::RunState> state;
    int64_t tokensOfStep;
  };
  /// `writer` is null in a run that saves none: nothing is due there.
  RunCheckpoints(TrainingRank &rank, RunControl &control,
                 CheckpointWriter *writer, Run run)
      : rank(rank), control(control), writer(writer), run(std::move(run)) {}

  bool isDue(int64_t done) const;
  /// Begins a checkpoint; `skipped` of the steps were left out.
  void save(int64_t done, int64_t skipped);
  /// Waits for the one on its way.
  void finish();
  /// Saves what is over when a signal has asked the run to end.
  void saveBeforeStop(int64_t done, int64_t skipped);
  /// The parameters of a run that trains no step.
  void saveSeed();
  /// After the last step, which is saved, of a run that is not to end early.
  void exportLast(int64_t done);

  /// Whether steps were trained and the last of them is no checkpoint: a save
  /// that fails is tried again by the next one, and the last has none.
  bool lacksLast(int64_t done) const;
  /// Throws fsdp::Error then.
  void requireLast(int64_t done);

private:
  bool isSaved(int64_t done) const;

  TrainingRank &rank;
  RunControl &control;
  CheckpointWriter *writer;
  Run run;
};

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_RUNCHECKPOINTS_H
