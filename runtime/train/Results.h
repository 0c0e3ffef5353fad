//===- Results.h - What a program computed ----------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_RESULTS_H
#define FSDP_RUNTIME_TRAIN_RESULTS_H

#include "Rank.h"

namespace fsdp {

/// The outputs of a program on this rank, a line each: scalars by value, other
/// ranges by shape, least, largest and mean element and a checksum.
std::string describeResults(const Rank &rank, const std::string &program);

/// One line of it; `data` holds the range.
std::string describeRange(const rt::RangeInfo &range, const std::byte *data);

/// "f32 4x64x256".
std::string typeText(rt::DType type, const std::vector<int64_t> &shape);
/// An element of a tensor.
double elementAt(rt::DType type, const std::byte *data, int64_t index);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_RESULTS_H
