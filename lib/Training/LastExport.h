//===- LastExport.h - The last step for Hugging Face ------------*- C++ -*-===//
//
// With checkpoint.last_save_in_hf a run ends with a directory of Hugging Face
// beside its last step, `checkpoint/step-500-hf`, which the first rank makes of
// the committed step as `fsdp-checkpoint export` does.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TRAINING_LASTEXPORT_H
#define FSDP_TRAINING_LASTEXPORT_H

#include "fsdp/Config/RunConfig.h"
#include "fsdp/Runtime/Manifest.h"

namespace fsdp {

/// Whether a run ends with an export.
bool exportsLastStep(const RunConfig &config);

/// Throws fsdp::Error if the run could not export what the artifact trains.
void checkLastExport(const RunConfig &config, const rt::Manifest &manifest);

/// Throws fsdp::Error if the place of the export is taken. For a run that is to
/// train steps: without them an export that is there is its own.
void checkExportPlace(const RunConfig &config);

/// Writes the directory, from the committed `step`, unless it is there, and
/// says so. A signal interrupts it. Throws fsdp::Error; then the directory is
/// not there.
void exportStep(const RunConfig &config, int64_t step);

} // namespace fsdp

#endif // FSDP_TRAINING_LASTEXPORT_H
