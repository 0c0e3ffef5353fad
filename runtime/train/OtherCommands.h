//===- OtherCommands.h - What a rank runs instead of training ---*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_OTHERCOMMANDS_H
#define FSDP_RUNTIME_TRAIN_OTHERCOMMANDS_H

#include "ArtifactRank.h"
#include "Reporter.h"

namespace fsdp {

/// Runs the program of --program and prints its outputs. Collective. Throws
/// fsdp::Error.
void runProgramOnce(ArtifactRank &rank, const RunOptions &options);

/// The commands "evaluate" and "sample", with the parameters of `checkpoint`,
/// which are loaded. Collective. Throws fsdp::Error.
void runCommand(ArtifactRank &rank, const PreparedRun &run, Reporter &reporter,
                const std::string &command, const std::string &checkpoint);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_OTHERCOMMANDS_H
