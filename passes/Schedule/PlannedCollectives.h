//===- PlannedCollectives.h - Collectives and their decisions ---*- C++ -*-===//
//
// Shared by the passes that apply a plan: reads what is decided about the ops
// of a program, and moves ops.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_PASSES_SCHEDULE_PLANNEDCOLLECTIVES_H
#define FSDP_PASSES_SCHEDULE_PLANNEDCOLLECTIVES_H

#include "fsdp/Schedule/Decisions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace fsdp {

/// A collective of a program's block and what is decided about it.
struct PlannedCollective {
  dist::CollectiveOpInterface op;
  dist::CollectiveKind kind = dist::CollectiveKind::AllGather;
  dist::OriginAttr origin; // of the first member, if it is a bucket
  schedule::Decision decision;
  unsigned order = 0; // of its first parameter in the module
  bool afterSeed = false;

  bool isGather() const { return dist::isGather(kind); }
};

/// A program whose ops have their decisions.
class PlannedProgram {
public:
  PlannedProgram(mlir::Block &block,
                 llvm::ArrayRef<llvm::StringRef> parameters);

  mlir::Block &block;
  schedule::Addresses addresses;

  /// The collectives of the block in block order; not those already inside
  /// fsdp.async.
  llvm::SmallVector<PlannedCollective> collectives();

private:
  llvm::StringMap<unsigned> orderOf; // of parameters
};

/// Fails, with an error, if members of a bucket have other decisions than its
/// first one: they start and end together, merged or not. fsdp-plan sees to it;
/// a decision that was written by hand may say else.
mlir::LogicalResult
verifyBuckets(llvm::ArrayRef<PlannedCollective> collectives);

/// Index of every op in the block.
llvm::DenseMap<mlir::Operation *, unsigned> numberOps(mlir::Block &block);

/// The position of the first user of `op` in its block, as an op of that
/// block; null if it has none.
mlir::Operation *firstUser(mlir::Operation *op);

/// The first op in the way of moving `op`, with the producers it needs, before
/// `target`: a producer that computes, or, for a read, a write between. Null if
/// nothing is.
mlir::Operation *obstacle(mlir::Operation *op, mlir::Operation *target);

/// Brings `op` before or after `place`, an op of the same block. Where
/// Operation::moveBefore makes the block number all of its ops again at the
/// next question for their order, here the others keep their numbers.
void placeBefore(mlir::Operation *op, mlir::Operation *place);
void placeAfter(mlir::Operation *op, mlir::Operation *place);

/// Moves `op` and the producers it needs before `target`, in order; obstacle()
/// is null.
void hoistBefore(mlir::Operation *op, mlir::Operation *target);

/// Makes sure that nothing reads the result of `op` before `place`: casts,
/// moves of elements, fsdp.shard_of, an nn.gradient or nn.accumulate and the
/// reductions of a chain go after it. Gives the first user that cannot, such as
/// `place` itself, or what a sum must not cross; null if there is none.
mlir::Operation *sinkUsers(mlir::Operation *op, mlir::Operation *place);

/// Calls `apply` on every program of `module`, whose ops have their decisions,
/// or get them from the plan. Fails without either or where `apply` does.
mlir::LogicalResult
applyPlan(mlir::ModuleOp module,
          llvm::function_ref<mlir::LogicalResult(PlannedProgram &)> apply);

} // namespace fsdp

#endif // FSDP_PASSES_SCHEDULE_PLANNEDCOLLECTIVES_H
