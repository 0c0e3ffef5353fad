//===- EmitCudaKernel.h - Kernels as __global__ functions -------*- C++ -*-===//
#ifndef FSDP_LIB_TARGET_EMITCUDAKERNEL_H
#define FSDP_LIB_TARGET_EMITCUDAKERNEL_H

#include "dialects/Exec/Exec.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

namespace fsdp::emit {

/// How many neighbours a thread of a CUDA kernel takes at a time, in vectors of
/// whole 16 bytes.
struct VectorizedAccess {
  int neighbours = 1;
  /// The neighbours need not be of one row.
  bool isFlat = false;
  /// A row is long enough for a block of threads.
  bool hasBlockPerRow = false;
};
VectorizedAccess vectorizedAccessOf(exec::KernelOp kernel);
/// By kernel; one element at a time where a launch has a buffer that begins
/// within 16 bytes.
llvm::StringMap<VectorizedAccess> vectorizedAccessOf(mlir::ModuleOp module);

/// As emitKernel.
mlir::LogicalResult emitCudaKernel(exec::KernelOp kernel,
                                   const VectorizedAccess &vectorized,
                                   llvm::StringRef name, llvm::StringRef user,
                                   llvm::raw_ostream &os);
/// True if no thread of the kernel needs another's result, so that a CUDA
/// launch gives every element a thread.
bool isPointwise(exec::KernelOp kernel);

} // namespace fsdp::emit

#endif // FSDP_LIB_TARGET_EMITCUDAKERNEL_H
