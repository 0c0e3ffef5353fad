//===- CheckpointSchedule.h - When a run saves, and what --------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_CHECKPOINTSCHEDULE_H
#define FSDP_RUNTIME_TRAIN_CHECKPOINTSCHEDULE_H

#include "CheckpointWriter.h"
#include "fsdp/Config/RunConfig.h"

namespace fsdp {

/// Whether a run that saves checkpoints saves one after `done` steps: every
/// checkpoint.interval, after the last step, and after the first if it is asked
/// for.
bool isCheckpointDue(const RunConfig &config, int64_t done);

/// What that checkpoint has.
SaveContents contentsOfCheckpoint(const RunConfig &config, int64_t done);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_CHECKPOINTSCHEDULE_H
