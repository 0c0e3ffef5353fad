//===- Peak.h - How fast this machine multiplies ----------------*- C++ -*-===//
#ifndef FSDP_TRAINING_PEAK_H
#define FSDP_TRAINING_PEAK_H

#include "fsdp/Runtime/Context.h"

namespace fsdp {

/// The best rate, in flop/s of one rank, of products of 1024 x 1024 matrices
/// of type `type` (with f32 sums), while all ranks multiply at once. Takes
/// about 0.1 s. Collective. Throws fsdp::Error.
double measurePeak(rt::World world, int threads, rt::DType type);

} // namespace fsdp

#endif // FSDP_TRAINING_PEAK_H
