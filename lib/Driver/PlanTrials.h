//===- PlanTrials.h - Plans for one module, tried on copies -----*- C++ -*-===//
#ifndef FSDP_LIB_DRIVER_PLANTRIALS_H
#define FSDP_LIB_DRIVER_PLANTRIALS_H

#include "fsdp/Config/CompileOptions.h"
#include "fsdp/Schedule/Plan.h"
#include "fsdp/Schedule/ScheduleDecider.h"

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
  /// The policy of compile.recompute that gives it, or what was decided.
  std::string policy;
  std::optional<problem::DecidedSchedule> schedule;
  /// The live bytes for which it was decided: what packs into the budget.
  int64_t target = 0;
  int64_t arena = 0;
};

/// Whether it is decided what stays gathered: no setting says it.
bool decidesResharding(const CompileOptions &options);

/// That of the fastest step; nothing after an error, which names the largest
/// buffers of the plan with the smallest arena.
std::optional<FoundPlan> findPlan(const PlanTrials &trials,
                                  const problem::Problem &problem,
                                  problem::ScheduleDecider &decider,
                                  int64_t budget);

} // namespace fsdp

#endif // FSDP_LIB_DRIVER_PLANTRIALS_H
