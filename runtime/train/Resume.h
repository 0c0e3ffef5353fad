//===- Resume.h - Loading what a run begins with ----------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_RESUME_H
#define FSDP_RUNTIME_TRAIN_RESUME_H

#include "Prepare.h"
#include "Rank.h"
#include "ResumePoint.h"

namespace fsdp {

/// Cleans the run's folder, finds what it begins with, and loads this rank's
/// part. Collective. Throws as openResumeSource().
ResumePoint beginFromCheckpoint(Rank &rank, const RunConfig &config,
                                const checkpoint::RunState &now);

/// beginFromCheckpoint() for a run with checkpoints; others begin with nothing.
/// Also refuses a run whose last step could not be exported. Collective. Throws
/// fsdp::Error.
ResumePoint beginTraining(Rank &rank, const PreparedRun &run);

/// Loads this rank's parameters from whatever `path` is. Returns what that was:
/// of a folder of steps the newest. Collective. Throws fsdp::Error.
std::string loadParameters(Rank &rank, const std::string &path);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_RESUME_H
