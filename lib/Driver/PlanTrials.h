//===- PlanTrials.h - Plans for one module, tried on copies -----*- C++ -*-===//
#ifndef FSDP_LIB_DRIVER_PLANTRIALS_H
#define FSDP_LIB_DRIVER_PLANTRIALS_H

#include "fsdp/Config/CompileOptions.h"
#include "fsdp/Schedule/Plan.h"
#include "fsdp/Schedule/RecomputeDecider.h"

namespace fsdp {

class PlanTrials {
public:
  PlanTrials(mlir::ModuleOp module, const CompileOptions &given);

  /// Runs the passes that come before a plan.
  mlir::LogicalResult address();
  mlir::ModuleOp unplanned() const { return *addressed; }

  /// A copy with what `plan`, or the rule alone, decides about each op.
  mlir::OwningOpRef<mlir::ModuleOp> planned(const schedule::Plan *plan) const;
  /// The same by rule with that policy of compile.recompute.
  mlir::OwningOpRef<mlir::ModuleOp> plannedBy(const std::string &policy) const;

  /// The bytes of the arena. A `budget` other than 0 is a limit, and an error
  /// is printed where the arena exceeds it.
  std::optional<int64_t> arena(const schedule::Plan &plan,
                               int64_t budget = 0) const;
  /// That of a copy which plannedBy gave, and which it changes.
  std::optional<int64_t> arena(mlir::ModuleOp planned,
                               int64_t budget = 0) const;

private:
  mlir::OwningOpRef<mlir::ModuleOp>
  plannedWith(const schedule::Plan *plan, const CompileOptions &with) const;

  CompileOptions options;
  mlir::OwningOpRef<mlir::ModuleOp> addressed;
};

/// A plan whose arena fits into a budget.
struct FoundPlan {
  schedule::Plan plan;
  /// The policy of compile.recompute that gives it, or what was decided about
  /// each block (RecomputeOptions::sets).
  std::string policy;
  std::vector<uint32_t> choice;
  int64_t arena = 0;
};

/// That of the least compute time; nothing after an error, which names the
/// largest buffers of the plan with the smallest arena.
std::optional<FoundPlan> findPlan(const PlanTrials &trials,
                                  const problem::Problem &problem,
                                  const problem::RecomputeDecider &decider,
                                  int64_t budget);

} // namespace fsdp

#endif // FSDP_LIB_DRIVER_PLANTRIALS_H
