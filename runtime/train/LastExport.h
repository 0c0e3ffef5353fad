//===- LastExport.h - The last step for Hugging Face ------------*- C++ -*-===//
//
// With checkpoint.last_save_in_hf a run ends with a directory of Hugging Face
// beside its last step, `checkpoint/step-500-hf`, which the first rank makes of
// the committed step as `fsdp-checkpoint export` does.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_TRAIN_LASTEXPORT_H
#define FSDP_RUNTIME_TRAIN_LASTEXPORT_H

#include "ResumePoint.h"
#include "fsdp/Artifact/Loader.h"
#include "fsdp/Config/RunConfig.h"

namespace fsdp {

/// Whether a run ends with an export.
bool exportsLastStep(const RunConfig &config);

/// Throws fsdp::Error if the run could not export what the artifact trains.
void checkLastExport(const RunConfig &config,
                     const rt::ArtifactFolder &artifact);

/// Removes what runs have left that were killed while they wrote the directory
/// of any step. For the process that has the lock of the run's folder.
void removeHalfExports(const RunConfig &config);

/// Throws fsdp::Error if a run that begins so has nothing of its own to export,
/// or is to train steps and the place of the export is taken: without steps an
/// export that is there is its own.
void checkExportPlace(const RunConfig &config, const ResumePoint &start);

/// Writes the directory, from the committed `step`, unless it is there, and
/// says which. One of the run's stop signals interrupts it. Throws fsdp::Error;
/// then, and interrupted, the directory is not there.
void exportStep(const RunConfig &config, int64_t step);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_LASTEXPORT_H
