//===- RooflinePeak.h - How fast this machine multiplies --------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_ROOFLINEPEAK_H
#define FSDP_RUNTIME_TRAIN_ROOFLINEPEAK_H

#include "Rank.h"
#include "fsdp/Config/RunConfig.h"

namespace fsdp {

/// What the utilisation of a rank refers to.
struct RooflinePeak {
  double flops = 0; // a second, of one rank; 0: nothing to refer to
  std::string text; // what it is and where it is from, or why it is not known
};

/// metrics.peak_tflops; else what the table knows of the ranks' GPUs; else the
/// best rate of products of matrices (with f32 sums) in a second in which all
/// ranks multiply at once. A run that would be over within ten times that is
/// not worth the measurement, and tenths of the second whose best products
/// differ by more than 5 % measure nothing: then the peak is not known.
/// `flopsOfRun` of one rank. Collective. Throws fsdp::Error.
RooflinePeak findRooflinePeak(const Rank &rank, const RunConfig &config,
                              double flopsOfRun);

/// Flop/s of the data sheet of a GPU, of dense products with f32 sums of bf16
/// or f32; 0: the table does not have it.
double peakOfDevice(const std::string &name, rt::DType type);

/// How far the values, which are positive, lie apart: a share of the largest.
double spreadOf(const std::vector<double> &values);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_ROOFLINEPEAK_H
