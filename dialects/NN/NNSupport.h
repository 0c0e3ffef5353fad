//===- NNSupport.h - Shape arithmetic of the nn dialect ---------*- C++ -*-===//
//
// Private to dialects/NN: what verifiers, folders, reverse rules and kernels
// ask about tensor types.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DIALECTS_NN_NNSUPPORT_H
#define FSDP_DIALECTS_NN_NNSUPPORT_H

#include "dialects/NN/NN.h"

namespace fsdp::nn {

inline mlir::RankedTensorType typeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return typeOf(value).getShape();
}
inline int64_t elementsOf(mlir::Value value) {
  return typeOf(value).getNumElements();
}

/// Names of ranges and modules are lines of text without control characters,
/// for messages and files show them.
llvm::LogicalResult verifyLine(mlir::Operation *op, llvm::StringRef name);

/// Product of `sizes`; 1 for none.
int64_t product(llvm::ArrayRef<int64_t> sizes);

/// A tensor type with `shape` and the element type of `like`.
mlir::RankedTensorType withShape(mlir::RankedTensorType like,
                                 llvm::ArrayRef<int64_t> shape);

/// The dimensions of a tensor of `rank` that are not in `dims`, in order.
llvm::SmallVector<int64_t> otherDims(int64_t rank,
                                     llvm::ArrayRef<int64_t> dims);

/// The type that a reduction of `type` over `dims` gives.
mlir::RankedTensorType reducedType(mlir::RankedTensorType type,
                                   llvm::ArrayRef<int64_t> dims);

/// `type` without its last dimension, in the accumulation type: what a
/// statistic per row is kept in.
mlir::RankedTensorType rowStatisticType(mlir::RankedTensorType type);

/// Rank 0 in the accumulation type of `type`: what a loss is.
mlir::RankedTensorType lossType(mlir::RankedTensorType type);

/// Where the dimensions `dims` lie in `shape`. Dimensions of size 1 do not
/// count, so that [1] of 1x4x1 is `All`, and of no other size `None`.
enum class DimsPosition { None, Leading, Trailing, All, Mixed };
DimsPosition positionOf(llvm::ArrayRef<int64_t> shape,
                        llvm::ArrayRef<int64_t> dims);

/// The space of a kernel over the rows of the last dimension; one element for
/// rank 0.
KernelSpace rowsOf(mlir::Value tensor);

/// The same rows, combined into one value per column.
KernelSpace columnsOf(mlir::Value tensor);

/// Rows that are combined where `dims` trail, else columns.
KernelSpace reductionSpace(mlir::Value input, llvm::ArrayRef<int64_t> dims);

/// The dimensions of nn.broadcast's result that repeat the operand: new ones,
/// and those where the operand has size 1 and the result has not.
llvm::SmallVector<int64_t> repeatedDims(BroadcastOp op);

} // namespace fsdp::nn

#endif // FSDP_DIALECTS_NN_NNSUPPORT_H
