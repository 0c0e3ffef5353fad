//===- Peak.h - How fast this machine multiplies ----------------*- C++ -*-===//
#ifndef FSDP_TRAINING_PEAK_H
#define FSDP_TRAINING_PEAK_H

#include "fsdp/Runtime/Context.h"

namespace fsdp {

/// How fast matrices are multiplied.
struct Peak {
  double flops; // a second, of one rank
  int64_t side; // of the matrices, which are square
};

/// The best rate of products of matrices of type `type` (with f32 sums), while
/// all ranks multiply at once: of 1024 x 1024, on a GPU of larger ones until a
/// product takes a millisecond. Takes about 0.1 s a size. Collective. Throws
/// fsdp::Error.
Peak measurePeak(rt::World world, int threads, rt::DType type);

} // namespace fsdp

#endif // FSDP_TRAINING_PEAK_H
