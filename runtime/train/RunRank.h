//===- RunRank.h - The run of one rank --------------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_RUNRANK_H
#define FSDP_RUNTIME_TRAIN_RUNRANK_H

#include "Options.h"
#include "Prepare.h"
#include "fsdp/Core/Context.h"
#include "runtime/report/LossCurve.h"
#include <exception>
#include <functional>

namespace fsdp {

using HandleError = std::function<void(const std::exception &)>;

/// Trains, evaluates, samples and writes what the run is to leave behind; the
/// curve of the loss as `draw` draws it. Collective over the job. Throws
/// fsdp::Error; `fail` gets what is thrown while the context still lives: its
/// end may wait for other ranks, so a job of several is ended by then.
void runRank(const PreparedRun &run, const rt::LoadedArtifact &artifact,
             const RunOptions &options, rt::World world, const DrawCurve &draw,
             const HandleError &fail);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_RUNRANK_H
