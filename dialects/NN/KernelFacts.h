//===- KernelFacts.h - What the kernel of an op reads and gives -*- C++ -*-===//
//
// Learnt by running the op's kernel description once (KernelBuilder.h).
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DIALECTS_NN_KERNELFACTS_H
#define FSDP_DIALECTS_NN_KERNELFACTS_H

#include "dialects/NN/NN.h"
#include "llvm/ADT/MapVector.h"

namespace fsdp::nn {

struct KernelRead {
  KernelAccess access = KernelAccess::Element;
  /// Read while reducing, so in another stage than where results are stored.
  bool inReduction = false;
  /// Bit i: by the function of result i. 0: whatever results are used.
  uint32_t forResults = 0;
};

enum class KernelForm { Element, Row, Columns };

struct KernelFacts {
  /// Not expressible where another column is read, too.
  KernelSpace space;
  /// In order of the first reads.
  llvm::SmallMapVector<mlir::Value, KernelRead, 4> reads;
  llvm::SmallDenseMap<mlir::Value, KernelForm, 2> results;
  /// Element results whose formula needs a transcendental function.
  bool expensive = false;

  /// Whether it can share a kernel with others of its space.
  bool canFuse() const {
    return space.isExpressible() && !space.columnReduction;
  }
  /// Whether it is a sum over rows that can be part of a kernel of these rows,
  /// where that wants at least `leastBlocks` blocks of them.
  bool canJoinRows(int64_t leastBlocks) const {
    return space.columnReduction && space.hasBlocks() &&
           space.cols % kSumVector == 0 &&
           space.rows / kRowBlock >= leastBlocks;
  }
};

/// Gives the facts of ops, one after another.
class KernelProbe {
public:
  explicit KernelProbe(mlir::MLIRContext *context);
  ~KernelProbe();
  KernelFacts run(KernelOpInterface op);

private:
  class Builder;
  std::unique_ptr<Builder> builder;
};

} // namespace fsdp::nn

#endif // FSDP_DIALECTS_NN_KERNELFACTS_H
