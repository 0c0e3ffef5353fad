//===- ResumePoint.h - Where a run begins -----------------------*- C++ -*-===//
//
// A run that finds a checkpoint in its folder goes on from it: parameters,
// optimizer, step, position in the data. It may have been written on any mesh.
// What is here needs no ranks: a checkpoint that does not fit is refused before
// they are started.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_TRAIN_RESUMEPOINT_H
#define FSDP_RUNTIME_TRAIN_RESUMEPOINT_H

#include "fsdp/Config/RunConfig.h"
#include "fsdp/Data/Dataset.h"
#include "runtime/checkpoint/store/TensorStore.h"

namespace fsdp {

/// Where the steps of a run begin.
struct ResumePoint {
  std::string path; // what was loaded; empty: nothing
  /// The steps that are over; those of the data and of the schedule.
  int64_t step = 0, tokens = 0, skippedSteps = 0;
  /// The step with which the learning rate's schedule began.
  int64_t scheduleStart = 0;
  /// The steps that the optimizer does not count; see RunState.
  int64_t optimizerStart = 0;
  /// Whether it goes on with the steps of the run before it in its folder.
  bool isOwn = false;
};

/// A checkpoint that fits an artifact and a run.
struct FittingCheckpoint {
  std::unique_ptr<checkpoint::TensorStore> store; // null: there is none
  ResumePoint start;
  /// What is to be loaded, and from where.
  std::vector<
      std::pair<const rt::RangeInfo *, const checkpoint::StoredTensor *>>
      tensors;
};

/// What a run is of, as its checkpoints say. Reads all of the data.
checkpoint::RunState stateOf(const RunConfig &config,
                             const rt::Manifest &manifest,
                             const rt::Dataset &data);

/// The checkpoint of the run's own folder to go on from; empty: it has none.
/// Throws fsdp::Error if checkpoint.load_step is not there.
std::string findOwnCheckpoint(const RunConfig &config);

/// "the same command", and the options that it has to leave out to go on from
/// the newest checkpoint of its folder: those of a beginning.
std::string commandThatGoesOn(const RunConfig &config);

/// Whether checkpoint.load_step is not there, at least before the folder is
/// cleaned.
bool lacksLoadStep(const RunConfig &config);

/// What a run is to begin with.
struct ResumeSource {
  std::string path; // empty: nothing
  bool isOwn = false;
};

/// findOwnCheckpoint(), or else what checkpoint.initial_load_path is now: of a
/// folder of steps the newest. Two looks may find two steps, so one rank looks
/// for all. Throws as findOwnCheckpoint().
ResumeSource findResumeSource(const RunConfig &config);

/// Opens what findResumeSource() found. `now` is stateOf() the run. Throws
/// fsdp::Error that says everything in which checkpoint and run differ.
FittingCheckpoint openResumeSource(const RunConfig &config,
                                   const rt::Manifest &manifest,
                                   const checkpoint::RunState &now,
                                   const ResumeSource &from);

/// What to do about a checkpoint of the run's own folder that cannot be read:
/// lines for the end of a message.
std::string remedyOfDamage(const RunConfig &config, const std::string &path);

/// Opens whatever `path` is for its parameters alone. Throws fsdp::Error.
FittingCheckpoint openParameters(const rt::Manifest &manifest,
                                 const std::string &path);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_RESUMEPOINT_H
