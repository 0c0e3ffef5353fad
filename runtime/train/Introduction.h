//===- Introduction.h - What a run says before its steps --------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_INTRODUCTION_H
#define FSDP_RUNTIME_TRAIN_INTRODUCTION_H

#include "ArtifactRank.h"
#include "runtime/report/Metrics.h"

namespace fsdp {

/// What of a training is not in its description.
struct IntroducedRun {
  bool checksValues;
  std::optional<uint64_t> stagingBytes; // of a run that saves checkpoints
};

/// Measures what a step costs; the first rank says of what the run is, of which
/// `done` steps are over. Collective. Throws fsdp::Error, also if a step of the
/// artifact gives no loss.
StepCosts introduceRun(ArtifactRank &rank, const PreparedRun &run, int64_t done,
                       const IntroducedRun &what);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_INTRODUCTION_H
