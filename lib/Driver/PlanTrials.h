//===- PlanTrials.h - Plans for one module, tried on copies -----*- C++ -*-===//
#ifndef FSDP_LIB_DRIVER_PLANTRIALS_H
#define FSDP_LIB_DRIVER_PLANTRIALS_H

#include "fsdp/Config/CompileOptions.h"
#include "fsdp/Schedule/Plan.h"
#include "fsdp/Schedule/ScheduleDecider.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Error.h"

namespace fsdp {

class PlanTrials {
public:
  PlanTrials(mlir::ModuleOp module, const CompileOptions &given);

  /// Runs the passes that come before a plan.
  mlir::LogicalResult address();
  mlir::ModuleOp unplanned() const { return *addressed; }

  /// A copy with what `plan` decides about each op.
  mlir::OwningOpRef<mlir::ModuleOp> planned(const schedule::Plan &plan) const;
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

/// What a plan is decided from.
struct Planning {
  PlanTrials trials;
  problem::Problem problem;
  problem::Candidate byRule;
};

/// That of `module`, a model's graph without a plan. Errors are as
/// decidePlan's.
llvm::Expected<std::unique_ptr<Planning>>
beginPlanning(mlir::ModuleOp module, const CompileOptions &options);

/// While it lives, nothing but errors is printed: the rest is said when the
/// decided plan is compiled.
class QuietPlanning {
public:
  explicit QuietPlanning(mlir::ModuleOp module);

private:
  mlir::ScopedDiagnosticHandler handler;
};

/// What a known rule about communication takes in the same budget, with the
/// cheapest recomputation: a step whose arena fits, or where even fewer bytes
/// take longer than what was found, that.
struct RuleStep {
  std::string name;
  /// None where nothing fits.
  std::optional<Duration> total;
  int64_t bytes = 0; ///< DecidedSchedule::bytes.
  /// Where the step is no faster than what was found, its arena may exceed the
  /// budget: it was not packed.
  schedule::Plan plan;
};

/// A plan whose arena fits into a budget.
struct FoundPlan {
  schedule::Plan plan;
  Duration total; ///< Of the simulated step.
  /// The policy of compile.recompute that gives it, or what was decided.
  std::string policy;
  std::optional<problem::DecidedSchedule> schedule;
  /// The live bytes for which it was decided: what packs into the budget.
  int64_t target = 0;
  std::vector<RuleStep> rules; ///< ScheduleDecider::rules(); none is faster.
};

/// Whether it is decided what stays gathered: no setting says it.
bool decidesResharding(const CompileOptions &options);

/// That of the fastest step, or none where nothing fits; fails after an error
/// that has been printed. No policy of knownRecomputePolicies() is faster.
mlir::FailureOr<std::optional<FoundPlan>>
fitPlan(const PlanTrials &trials, const problem::Problem &problem,
        problem::ScheduleDecider &decider, int64_t budget);

/// The same; where nothing fits that is an error, which names the largest
/// buffers of the plan with the smallest arena.
std::optional<FoundPlan> findPlan(const PlanTrials &trials,
                                  const problem::Problem &problem,
                                  problem::ScheduleDecider &decider,
                                  int64_t budget);

/// Whether decideSettings has anything to choose.
bool mayDecideSettings(mlir::ModuleOp module, const CompileOptions &options,
                       const CostModel &model);

/// The plan that decidePlan finds, and in `options` the settings that it is
/// for. Errors are decidePlan's.
llvm::Expected<FoundPlan> decideSettings(mlir::ModuleOp module,
                                         CompileOptions &options,
                                         const simulation::Costs &costs);

} // namespace fsdp

#endif // FSDP_LIB_DRIVER_PLANTRIALS_H
