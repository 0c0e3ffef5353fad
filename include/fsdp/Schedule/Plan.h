//===- Plan.h - The schedule as data ----------------------------*- C++ -*-===//
//
// A plan says, for every communication unit, which parameters travel
// together, whether they are gathered again in the backward pass, and when
// collectives start and are awaited. Planners make plans; fsdp-remat,
// fsdp-bucket and fsdp-overlap apply them; a plan never changes a bit of the
// result. It lives in the module attribute `fsdp.plan` and in JSON files.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_PLAN_H
#define FSDP_SCHEDULE_PLAN_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace fsdp::schedule {

/// One communication unit: usually a transformer block.
struct Unit {
  std::string name; // no other unit has it
  /// Parameter names in registration order; this is also the order inside a
  /// bucket.
  std::vector<std::string> parameters;
  /// True: the unit's collectives of one kind and direction become one.
  bool bucket = true;
  /// True: gathered parameters are dropped after the forward pass and gathered
  /// again in the backward pass.
  bool reshardAfterForward = true;
  /// True: collectives run beside compute (fsdp.async).
  bool overlap = true;
  /// The unit's gather starts this many units before it is needed; 0 starts it
  /// where it is needed.
  int64_t forwardPrefetch = 1;
  int64_t backwardPrefetch = 1;
  /// The unit's reduction is awaited after this many later reductions have
  /// started; 0 awaits it at once.
  int64_t reduceDefer = 1;
};

struct Plan {
  std::vector<Unit> units;
};

/// How a parameter set is cut into units.
enum class UnitPolicy {
  Block, ///< One per numbered block, one per module before, one for the rest.
  Whole, ///< One unit for the model.
};
enum class ReshardPolicy {
  Always,
  Never,
  Default, ///< Always, but the last unit stays gathered: it is needed at once.
};

/// The heuristic planner's choices.
struct PlanOptions {
  UnitPolicy units = UnitPolicy::Block;
  ReshardPolicy reshard = ReshardPolicy::Default;
  bool bucket = true;
  bool overlap = true;
  int64_t prefetch = 1;
  int64_t reduceDefer = 1;
};

/// A plan by rule for parameters given in registration order.
Plan planByRule(llvm::ArrayRef<llvm::StringRef> parameters,
                const PlanOptions &options);

/// Checks that every parameter is in exactly one unit, that no unit names an
/// unknown one and that numbers are not negative. Empty string: it is well
/// formed.
std::string check(const Plan &plan, llvm::ArrayRef<llvm::StringRef> parameters);

llvm::json::Value toJSON(const Plan &plan);
/// Refuses unknown keys, wrong types and two units of one name; errors name
/// the place: "plan.units[2].bucket".
llvm::Expected<Plan> parseJSON(llvm::StringRef text);

mlir::Attribute toAttribute(mlir::MLIRContext *context, const Plan &plan);
/// The plan in force on `module`; emits an error if there is none, or if it is
/// not well formed.
mlir::FailureOr<Plan> planOf(mlir::ModuleOp module);

} // namespace fsdp::schedule

#endif // FSDP_SCHEDULE_PLAN_H
