//===- Units.h - Which unit a collective serves -----------------*- C++ -*-===//
//
// Shared by the passes that apply a plan: finds the parameters behind a
// collective, its unit in the plan and its direction.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_PASSES_SCHEDULE_UNITS_H
#define FSDP_PASSES_SCHEDULE_UNITS_H

#include "dialects/Fsdp/Fsdp.h"
#include "fsdp/Schedule/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace fsdp {

/// A collective that serves parameters of one unit.
struct UnitCollective {
  mlir::Operation *op;
  unsigned unit;     ///< Index into the plan.
  unsigned order;    ///< Registration order of its first parameter.
  bool backward;     ///< After nn.seed.
  unsigned position; ///< Index in the block.
};

/// Looks up parameters in a plan.
class Units {
public:
  explicit Units(const schedule::Plan &plan);

  /// The parameter collectives of a program's block, in block order.
  /// Collectives that serve no parameter (the gradient norm's) are left out; so
  /// are those already inside fsdp.async. Fails on a parameter without unit.
  mlir::FailureOr<llvm::SmallVector<UnitCollective>>
  collect(mlir::Block &block) const;

  const schedule::Unit &operator[](unsigned index) const {
    return plan.units[index];
  }
  unsigned size() const { return plan.units.size(); }

private:
  const schedule::Plan &plan;
  struct Place {
    unsigned unit, order;
  };
  llvm::StringMap<Place> places;
};

/// Index of every op in the block.
llvm::DenseMap<mlir::Operation *, unsigned> numberOps(mlir::Block &block);

/// The position of the first user of `op` in its block, as an op of that
/// block; null if it has none.
mlir::Operation *
firstUser(mlir::Operation *op,
          const llvm::DenseMap<mlir::Operation *, unsigned> &number);

/// Moves `op` and the pure producers it needs before `target`, in order. The
/// producers must be nn.read, nn.cast, nn.recompute_from or nn.reshape chains.
void hoistBefore(mlir::Operation *op, mlir::Operation *target,
                 llvm::DenseMap<mlir::Operation *, unsigned> &number);

/// Calls `apply` on the block of every program of `module`, with the units of
/// the module's plan. Fails without a plan or where `apply` does.
mlir::LogicalResult
applyPlan(mlir::ModuleOp module,
          llvm::function_ref<mlir::LogicalResult(mlir::Block &, const Units &)>
              apply);

} // namespace fsdp

#endif // FSDP_PASSES_SCHEDULE_UNITS_H
