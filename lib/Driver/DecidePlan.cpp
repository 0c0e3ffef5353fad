//===- DecidePlan.cpp - A plan for a budget of memory ---------------------===//
#include "fsdp/Driver/DecidePlan.h"
#include "PlanTrials.h"
#include "fsdp/Driver/Diagnostics.h"
#include "fsdp/Schedule/ProblemOf.h"

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
  lowering.referenceAttention =
      options.compile.attention == AttentionKernel::Reference;
  lowering.fastReductions = options.compile.reduce == ReduceOrder::Fast;
  lowering.fuses = options.compile.fuse != Fusion::None;
  FailureOr<problem::Problem> problem =
      schedule::problemOf(module, *target, lowering);
  if (failed(problem))
    return alreadyPrinted();
  return std::move(*problem);
}

llvm::Error fsdp::decidePlan(ModuleOp module, const CompileOptions &options) {
  if (module->hasAttr(dist::kPlanAttr))
    return llvm::createStringError(
        "the text states a plan (fsdp.plan), and compile.plan = \"auto\" "
        "decides itself; leave out one of them");
  CostModel model(loadMachine(options.compile.machine));
  PlanTrials trials(module, options);
  // What is no error is said when the decided plan is compiled.
  ScopedDiagnosticHandler quiet(
      module.getContext(), [](Diagnostic &diagnostic) {
        return failure(diagnostic.getSeverity() == DiagnosticSeverity::Error);
      });
  if (failed(trials.address()))
    return alreadyPrinted();
  llvm::Expected<problem::Problem> problem =
      problemFor(trials.unplanned(), options);
  if (!problem)
    return problem.takeError();
  OwningOpRef<ModuleOp> byRule = trials.planned(nullptr);
  if (!byRule)
    return alreadyPrinted();
  simulation::Costs costs{model};
  problem::ScheduleDecider decider(*problem,
                                   schedule::candidateOf(*problem, *byRule),
                                   costs, "train", decidesResharding(options));
  std::optional<FoundPlan> found =
      findPlan(trials, *problem, decider, options.pipeline.memoryBudget);
  if (!found)
    return alreadyPrinted();
  module->setAttr(dist::kPlanAttr,
                  schedule::toAttribute(module.getContext(), found->plan));
  return llvm::Error::success();
}
