//===- Step.cpp - The programs of a training step -------------------------===//
#include "Step.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/RangeNames.h"

using namespace fsdp;
using namespace fsdp::rt;

std::vector<ProgramRuns> fsdp::trainStepOf(const Manifest &manifest) {
  auto step = manifest.steps.find(kTrainStep);
  return step == manifest.steps.end() ? std::vector<ProgramRuns>()
                                      : step->second;
}

static const ProgramInfo &programOf(const Manifest &manifest,
                                    const ProgramRuns &runs) {
  return manifest.programs[runs.program];
}

int64_t fsdp::microbatchesOf(const Manifest &manifest) {
  const ProgramInfo *first = nullptr;
  int64_t times = 1;
  for (const ProgramRuns &runs : trainStepOf(manifest)) {
    const ProgramInfo &program = programOf(manifest, runs);
    if (!takesMicrobatch(program))
      continue;
    if (first && runs.times != times)
      throw Error("the artifact's step '" + std::string(kTrainStep) +
                  "' runs '" + first->name + "' on " + std::to_string(times) +
                  " microbatches and '" + program.name + "' on " +
                  std::to_string(runs.times));
    first = &program;
    times = runs.times;
  }
  return times;
}

/// The sum over the programs of the step, each as often as it runs.
static double sumOfStep(const Manifest &manifest, double ProgramInfo::*value) {
  double sum = 0;
  for (const ProgramRuns &runs : trainStepOf(manifest))
    sum += programOf(manifest, runs).*value * static_cast<double>(runs.times);
  return sum;
}

double fsdp::flopsOfStep(const Manifest &manifest) {
  return sumOfStep(manifest, &ProgramInfo::flops);
}

double fsdp::modelFlopsOfStep(const Manifest &manifest) {
  return sumOfStep(manifest, &ProgramInfo::modelFlops);
}

RangeInfo fsdp::ofStep(RangeInfo range, int64_t microbatches) {
  CheckedSize shape = CheckedSize(range.shape[0]) * microbatches,
              full = CheckedSize(range.full[0]) * microbatches;
  CheckedSize bytes = productOf(range.full) * microbatches;
  bytes *= sizeOf(range.dtype);
  if (!bytes.fits(kMaxTensorBytes) || !shape.fits(kMaxTensorBytes) ||
      !full.fits(kMaxTensorBytes))
    throw Error("the '" + range.name + "' of " + std::to_string(microbatches) +
                " microbatches are more than 2^56 bytes");
  range.name += range_name::kOfStepSuffix;
  range.shape[0] = shape.get();
  range.full[0] = full.get();
  range.bytes *= static_cast<uint64_t>(microbatches);
  return range;
}

void fsdp::checkInputsOfStep(const Manifest &manifest) {
  int64_t microbatches = microbatchesOf(manifest);
  for (const char *name : {range_name::kTokens, range_name::kTargets}) {
    RangeInfo whole = ofStep(*manifest.findRange(name), microbatches);
    const RangeInfo *range = manifest.findRange(whole.name);
    if (range &&
        (range->dtype != whole.dtype || range->shape != whole.shape ||
         range->full != whole.full || !(range->placement == whole.placement)))
      throw Error("the artifact's input '" + whole.name + "' is not that of " +
                  std::to_string(microbatches) + " microbatches of '" + name +
                  "'");
  }
}
