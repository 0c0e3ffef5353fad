//===- Step.h - The programs of a training step -----------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_STEP_H
#define FSDP_RUNTIME_TRAIN_STEP_H

#include "fsdp/Artifact/Manifest.h"

namespace fsdp {

/// The name of the step that a run repeats.
constexpr const char *kTrainStep = "train";

/// The runs that the step "train" lists; none if the artifact has no such step.
std::vector<ProgramRuns> trainStepOf(const rt::Manifest &manifest);

/// Microbatches of the step "train". Throws fsdp::Error if programs that take
/// one each run different numbers of times.
int64_t microbatchesOf(const rt::Manifest &manifest);

/// Floating point operations of one step on one rank.
double flopsOfStep(const rt::Manifest &manifest);
/// The same without what is computed a second time.
double modelFlopsOfStep(const rt::Manifest &manifest);

/// What the slices of an input, which `range` is one of, are together. Throws
/// fsdp::Error if that is more than a tensor may be.
rt::RangeInfo ofStep(rt::RangeInfo range, int64_t microbatches);

/// Throws fsdp::Error if an input that holds all slices of a step is not that
/// of this many microbatches.
void checkInputsOfStep(const rt::Manifest &manifest);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_STEP_H
