//===- Trainer.h - The run of one rank --------------------------*- C++ -*-===//
#ifndef FSDP_TRAINING_TRAINER_H
#define FSDP_TRAINING_TRAINER_H

#include "Options.h"
#include "Prepare.h"
#include "fsdp/Runtime/Context.h"

namespace fsdp {

/// Trains, evaluates, samples and writes what the run is to leave behind.
/// Collective over the job. Throws fsdp::Error.
void runRank(const PreparedRun &run, const rt::LoadedArtifact &artifact,
             const RunOptions &options, rt::World world);

} // namespace fsdp

#endif // FSDP_TRAINING_TRAINER_H
