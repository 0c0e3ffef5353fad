//===- AdjacentReads.h - Parameters that lie side by side -------*- C++ -*-===//
#ifndef FSDP_DIALECTS_NN_ADJACENTREADS_H
#define FSDP_DIALECTS_NN_ADJACENTREADS_H

#include "dialects/NN/NN.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace fsdp::nn {

/// Parameters and buffers that a rank stores side by side, because programs
/// read them as one.
struct AdjacentGroup {
  llvm::SmallVector<mlir::StringAttr> names;
  llvm::SmallVector<int64_t> begins; ///< Of each its first element.
  int64_t elements = 0;
};

/// The groups of a module's programs: the operands of an nn.concat that only
/// matrix products read and whose parts lie one after another, if all of them
/// are whole values of parameters or buffers that nothing keeps from being
/// neighbours. They are of one kind, all but the last have a multiple of
/// `alignment` bytes, and none is in another group already: the first that
/// needs it has it.
///
/// Other readers could take a part of the whole that lies in two tensors, and
/// write it to one of them.
class AdjacentReads {
public:
  AdjacentReads(mlir::ModuleOp module, int64_t alignment);

  /// The group that `op` reads whole, or null.
  const AdjacentGroup *groupOf(ConcatOp op) const;
  /// The group that this parameter or buffer is in, or null.
  const AdjacentGroup *groupOf(llvm::StringRef name) const;

private:
  void add(ConcatOp op, AdjacentGroup group);

  std::vector<AdjacentGroup> groups;
  llvm::DenseMap<mlir::Operation *, size_t> ofConcat;
  llvm::StringMap<size_t> ofName;
};

} // namespace fsdp::nn

#endif // FSDP_DIALECTS_NN_ADJACENTREADS_H
