//===- Resume.h - Loading what a run begins with ----------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_RESUME_H
#define FSDP_RUNTIME_TRAIN_RESUME_H

#include "Prepare.h"
#include "Rank.h"
#include "StartPoint.h"

namespace fsdp {

/// Cleans the run's folder, finds what it begins with, and loads this rank's
/// part. Collective. Throws as openStart().
StartPoint beginFromCheckpoint(Rank &rank, const RunConfig &config,
                               const checkpoint::RunState &now);

/// The same for a run that may not load or save anything, which is also refused
/// where the export behind its last step could not be. Collective.
StartPoint beginTraining(Rank &rank, const PreparedRun &run);

/// Loads this rank's parameters from whatever `path` is. Returns what that was:
/// of a folder of steps the newest. Collective. Throws fsdp::Error.
std::string loadParameters(Rank &rank, const std::string &path);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_RESUME_H
