//===- Resume.h - Where a run begins ----------------------------*- C++ -*-===//
//
// A run that finds a checkpoint in its folder goes on from it: parameters,
// optimizer, step, position in the data. It may have been written on any mesh:
// each rank reads its boxes.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TRAINING_RESUME_H
#define FSDP_TRAINING_RESUME_H

#include "Rank.h"
#include "fsdp/Checkpoint/TensorStore.h"
#include "fsdp/Config/RunConfig.h"

namespace fsdp {

/// Where the steps of a run begin.
struct StartPoint {
  std::string path; // what was loaded; empty: nothing
  /// The steps that are over; those of the data and of the schedule.
  int64_t step = 0, tokens = 0, skippedSteps = 0;
  /// The step with which the learning rate's schedule began.
  int64_t scheduleStart = 0;
  /// Whether it goes on with what a run has begun.
  bool resumes = false;
};

/// What a run is of, as its checkpoints say.
checkpoint::RunState stateOf(const RunConfig &config,
                             const rt::Manifest &manifest,
                             const rt::ByteDataset &text);

/// Cleans the run's folder, finds what it begins with, and loads it. `now` is
/// stateOf() the run. Collective. Throws fsdp::Error that says everything in
/// which checkpoint and run differ.
StartPoint beginFromCheckpoint(Rank &rank, const RunConfig &config,
                               const checkpoint::RunState &now);

/// Loads the parameters alone, from whatever `path` is. Throws fsdp::Error.
void loadParameters(Rank &rank, const std::string &path);

} // namespace fsdp

#endif // FSDP_TRAINING_RESUME_H
