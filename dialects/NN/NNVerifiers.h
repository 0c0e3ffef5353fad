//===- NNVerifiers.h - Checks shared by the nn verifiers --------*- C++ -*-===//
//
// Private to dialects/NN. Every check emits "expects <what> …, got …" at `op`.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DIALECTS_NN_NNVERIFIERS_H
#define FSDP_DIALECTS_NN_NNVERIFIERS_H

#include "dialects/NN/NNSupport.h"

namespace fsdp::nn {

mlir::LogicalResult expectType(mlir::Operation *op, llvm::StringRef what,
                               mlir::Type actual,
                               mlir::RankedTensorType expected);
mlir::LogicalResult expectShape(mlir::Operation *op, llvm::StringRef what,
                                mlir::Value value,
                                llvm::ArrayRef<int64_t> shape);
mlir::LogicalResult expectElementType(mlir::Operation *op, llvm::StringRef what,
                                      mlir::Value value, mlir::Value like);
mlir::LogicalResult expectRank(mlir::Operation *op, llvm::StringRef what,
                               mlir::Value value, int64_t rank);
mlir::LogicalResult expectRankAtLeast(mlir::Operation *op, llvm::StringRef what,
                                      mlir::Value value, int64_t rank);
/// The divisor of a mean is positive.
mlir::LogicalResult expectCount(mlir::Operation *op, int64_t count);

} // namespace fsdp::nn

#endif // FSDP_DIALECTS_NN_NNVERIFIERS_H
