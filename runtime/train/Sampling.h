//===- Sampling.h - A sample of text, as it is generated --------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_SAMPLING_H
#define FSDP_RUNTIME_TRAIN_SAMPLING_H

#include "Evaluate.h"
#include "Prepare.h"

namespace fsdp {

/// Says what a sample costs, generates it, and prints it with its progress.
/// Returns its text, or nothing if it does not go on. Collective. Throws
/// fsdp::Error.
std::optional<std::string> printSample(Rank &rank, const PreparedRun &run,
                                       const GoesOn &goesOn);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_SAMPLING_H
