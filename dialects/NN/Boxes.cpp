//===- Boxes.cpp - Boxes whose elements follow each other ----------------===//
#include "dialects/NN/Boxes.h"

using namespace mlir;
using namespace fsdp;

/// Every dimension after the first one that is longer than 1 must be whole.
std::optional<int64_t> nn::contiguousOffset(SliceOp slice) {
  auto input = cast<RankedTensorType>(slice.getInput().getType());
  auto box = cast<RankedTensorType>(slice.getType());
  int64_t position = 0;
  bool started = false;
  for (auto [size, part, offset] :
       llvm::zip(input.getShape(), box.getShape(), slice.getOffsets())) {
    if (started && part != size)
      return std::nullopt;
    started |= part != 1;
    position = position * size + offset;
  }
  return position;
}

bool nn::hasContiguousParts(ConcatOp op) {
  auto shape = cast<RankedTensorType>(op.getType()).getShape();
  return llvm::all_of(shape.take_front(op.getDim()),
                      [](int64_t size) { return size == 1; });
}
