//===- BatchRows.h - Values of microbatches and of the batch ----*- C++ -*-===//
//
// A program takes a batch whose examples lie along the first dimension of its
// arguments. Run on one microbatch after the other, it gives of every value the
// batch's in one of three ways, or in none. Which one follows from the sharding
// rules: a microbatch has of a value what one rank has of it where the batch is
// sharded over ranks.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_PASSES_GRAPH_BATCHROWS_H
#define FSDP_PASSES_GRAPH_BATCHROWS_H

#include "dialects/NN/NN.h"
#include "dialects/NN/ShardingRule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace fsdp {

class BatchRows {
public:
  enum class Kind {
    Shared, ///< The same for every microbatch: a parameter, a constant.
    Rows,   ///< A slice of the batch's value for each, in order.
    Parts,  ///< They add up to the batch's value.
    Mixed,  ///< None of these: a maximum over the batch, the log of a sum.
  };
  struct Place {
    Kind kind = Kind::Mixed;
    /// Of Rows: the dimension along which the slices lie, and how many examples
    /// one has. The dimension has them outermost: [batch * sequence] is Rows
    /// too.
    int64_t dim = -1, examples = 0;
    /// Of Shared, for each dimension: of how many equal slices it consists, one
    /// after the other; of as many as its size if all its elements are equal.
    llvm::SmallVector<int64_t, 4> repeats = {};
  };

  /// Follows the one block of `program`. `known`, if there is one, is there
  /// before the first microbatch: the count of the labels of all of them.
  explicit BatchRows(mlir::func::FuncOp program, mlir::Value known = {});

  Place of(mlir::Value value) const { return places.lookup(value); }

  /// Fails, with an error that begins with `what` and stands where the reason
  /// is, unless those of microbatches add up to the batch's `value`.
  mlir::LogicalResult verifyIsSum(mlir::Value value,
                                  const llvm::Twine &what) const;

private:
  Place placeOf(mlir::OpResult result) const;
  Place ofParts(mlir::Operation *op) const;
  Place ofReshape(nn::ReshapeOp op) const;
  Place ofRows(mlir::Operation *op, unsigned result,
               const nn::ShardingRule &rule) const;
  Place ofShared(mlir::Operation *op, unsigned result,
                 const nn::ShardingRule &rule) const;
  std::pair<int64_t, int64_t> factorOfRows(mlir::Operation *op,
                                           const nn::ShardingRule &rule) const;
  int64_t repeatsOf(mlir::Value value, const nn::ShardingRule::Dims &dims,
                    const nn::ShardingRule &rule, unsigned factor) const;
  mlir::OpOperand *findUnlike(mlir::Operation *op, const nn::ShardingRule &rule,
                              unsigned factor, int64_t examples) const;
  std::string whyMixed(mlir::Operation *op) const;
  bool isPart(mlir::Value value) const;
  mlir::Value findOperand(mlir::Operation *op, Kind kind) const;

  llvm::DenseMap<mlir::Value, Place> places;
};

} // namespace fsdp

#endif // FSDP_PASSES_GRAPH_BATCHROWS_H
