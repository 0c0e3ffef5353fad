//===- Boxes.h - Boxes whose elements follow each other --------*- C++ -*-===//
#ifndef FSDP_DIALECTS_NN_BOXES_H
#define FSDP_DIALECTS_NN_BOXES_H

#include "dialects/NN/NN.h"

namespace fsdp::nn {

/// The position of the first element of a slice if its elements lie one after
/// another in the input, so that it needs no copy.
std::optional<int64_t> contiguousOffset(SliceOp slice);

/// True if the parts of `op` lie one after another in its result.
bool hasContiguousParts(ConcatOp op);

} // namespace fsdp::nn

#endif // FSDP_DIALECTS_NN_BOXES_H
