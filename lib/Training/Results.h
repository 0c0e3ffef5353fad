//===- Results.h - What a program computed ----------------------*- C++ -*-===//
#ifndef FSDP_TRAINING_RESULTS_H
#define FSDP_TRAINING_RESULTS_H

#include "Rank.h"

namespace fsdp {

/// The outputs of a program on this rank, a line each: scalars by value, other
/// ranges by shape, least, largest and mean element and a checksum.
std::string describeResults(const Rank &rank, const std::string &program);

/// One line of it; `data` holds the range.
std::string describeRange(const rt::RangeInfo &range, const std::byte *data);

} // namespace fsdp

#endif // FSDP_TRAINING_RESULTS_H
