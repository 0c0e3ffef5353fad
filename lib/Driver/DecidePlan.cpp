//===- DecidePlan.cpp - A plan for a budget of memory ---------------------===//
#include "fsdp/Driver/DecidePlan.h"
#include "PlanTrials.h"
#include "fsdp/Driver/Diagnostics.h"
#include "fsdp/Schedule/ProblemOf.h"
#include "fsdp/Simulation/Simulate.h"

using namespace fsdp;
using namespace mlir;

llvm::Expected<problem::Problem>
fsdp::problemFor(ModuleOp module, const CompileOptions &options) {
  std::string why;
  std::unique_ptr<TargetInfo> target =
      makeTarget(options.pipeline.target, int(options.compile.threads), why);
  if (!target)
    return llvm::createStringError(why);
  schedule::LoweringOptions lowering;
  lowering.attention = {options.compile.attention == AttentionKernel::Reference,
                        options.compile.attention == AttentionKernel::Fast};
  lowering.fastReductions = options.compile.reduce == ReduceOrder::Fast;
  lowering.fuses = options.compile.fuse != Fusion::None;
  FailureOr<problem::Problem> problem =
      schedule::problemOf(module, *target, lowering);
  if (failed(problem))
    return alreadyPrinted();
  return std::move(*problem);
}

/// The step of the plan that is found with these settings, or none that fits.
static llvm::Expected<std::optional<Duration>>
decidedStep(ModuleOp module, const CompileOptions &options,
            const simulation::Costs &costs) {
  llvm::Expected<std::unique_ptr<Planning>> planning =
      beginPlanning(module, options);
  if (!planning)
    return planning.takeError();
  const Planning &from = **planning;
  problem::ScheduleDecider decider(from.problem, from.byRule, costs, "train",
                                   decidesResharding(options));
  FailureOr<std::optional<FoundPlan>> found = fitPlan(
      from.trials, from.problem, decider, options.pipeline.memoryBudget);
  if (failed(found))
    return alreadyPrinted();
  if (!*found)
    return std::nullopt;
  OwningOpRef<ModuleOp> planned = from.trials.planned((*found)->plan);
  if (!planned)
    return alreadyPrinted();
  return simulation::simulate(from.problem,
                              schedule::candidateOf(from.problem, *planned),
                              "train", costs)
      .total;
}

llvm::Error fsdp::decideCopies(ModuleOp module, CompileOptions &options,
                               const simulation::Costs &costs) {
  if (!options.compile.computeCopy)
    return llvm::Error::success();
  QuietPlanning quiet(module);
  CompileOptions without = options;
  without.compile.computeCopy = false;
  auto copies = decidedStep(module, options, costs);
  if (!copies)
    return copies.takeError();
  auto none = decidedStep(module, without, costs);
  if (!none)
    return none.takeError();
  options.compile.computeCopy = *copies && (!*none || !(**none < **copies));
  return llvm::Error::success();
}

llvm::Error fsdp::decidePlan(ModuleOp module, const CompileOptions &options) {
  CostModel model(loadMachine(options.compile.machine));
  QuietPlanning quiet(module);
  llvm::Expected<std::unique_ptr<Planning>> planning =
      beginPlanning(module, options);
  if (!planning)
    return planning.takeError();
  const Planning &from = **planning;
  simulation::Costs costs{model};
  problem::ScheduleDecider decider(from.problem, from.byRule, costs, "train",
                                   decidesResharding(options));
  std::optional<FoundPlan> found = findPlan(from.trials, from.problem, decider,
                                            options.pipeline.memoryBudget);
  if (!found)
    return alreadyPrinted();
  module->setAttr(dist::kPlanAttr,
                  schedule::toAttribute(module.getContext(), found->plan));
  return llvm::Error::success();
}
