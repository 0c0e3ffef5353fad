//===- KernelLowering.h - nn ops to one exec.kernel -------------*- C++ -*-===//
//
// Builds the scalar code of one or several fused nn ops. Element expressions
// are kept as functions and evaluated where a stage (a reduction or the final
// map) needs them: a value that stays inside the kernel is never stored, it is
// computed again in each stage. Within a stage each value is computed once.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_PASSES_EXEC_KERNELLOWERING_H
#define FSDP_PASSES_EXEC_KERNELLOWERING_H

#include "dialects/Exec/Exec.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace fsdp::lower {

/// The memref that holds a tensor: same shape, row-major.
mlir::MemRefType memRefOf(mlir::Type tensor);

/// The value of every element of `tensor` if it is an nn.constant or the
/// nn.seed; kernels then need no buffer for it.
std::optional<double> splatOf(mlir::Value tensor);

/// Gives each distinct kernel one symbol in the module.
class KernelCache {
public:
  explicit KernelCache(mlir::ModuleOp module);

  /// Keeps `name` from being given to a kernel.
  void reserve(llvm::StringRef name) { names.insert(name); }

  /// Takes a kernel that is not in a block yet: returns an equal one of the
  /// module and erases `kernel`, or adds it under the name `wanted`, made
  /// unique by a number.
  exec::KernelOp share(exec::KernelOp kernel, llvm::StringRef wanted);

private:
  mlir::ModuleOp module;
  llvm::StringMap<exec::KernelOp> byText;
  llvm::StringSet<> names;
  llvm::StringMap<int> suffixes; // name -> next number to try
};

/// A launch of a kernel in terms of tensors: what to pass, what it gives.
struct KernelUse {
  exec::KernelOp kernel;
  llvm::SmallVector<mlir::Value> inputs;
  llvm::SmallVector<mlir::Value> outputs;
  /// The op that computes each output: `op` itself, or the one in the fusion.
  llvm::SmallVector<mlir::Operation *> definers;
  /// Of each output that `kernel` gives block by block, the kernel that
  /// combines the blocks into it; else null.
  llvm::SmallVector<exec::KernelOp> ofBlocks;
};

/// The kernel of `op`, an nn.fusion or an op of KernelOpInterface. Results
/// without uses are left out; there must be one that is used. Failure: a
/// diagnostic was emitted.
mlir::FailureOr<KernelUse> lowerToKernel(mlir::Operation *op,
                                         KernelCache &cache);

/// The kernel that fills `tensor`, for which splatOf() has a value.
KernelUse splatKernel(mlir::Value tensor, KernelCache &cache);

} // namespace fsdp::lower

#endif // FSDP_PASSES_EXEC_KERNELLOWERING_H
