//===- DecidePlan.cpp - A plan for a budget of memory ---------------------===//
#include "fsdp/Driver/DecidePlan.h"
#include "dialects/Exec/Exec.h"
#include "fsdp/Driver/Diagnostics.h"
#include "fsdp/Schedule/DecidedPlan.h"
#include "fsdp/Schedule/ProblemOf.h"
#include "fsdp/Schedule/RecomputeDecider.h"
#include "passes/Pipelines.h"

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

namespace {

/// Plans for one module, tried on copies of it.
class PlanTrials {
public:
  PlanTrials(ModuleOp module, const CompileOptions &given)
      : options(given), addressed(module.clone()) {
    options.pipeline.memoryBudget = 0;
  }

  /// Runs the passes that come before a plan.
  LogicalResult address() {
    PassManager passes(addressed->getContext(), ModuleOp::getOperationName());
    buildTrainPipeline(passes, options, PipelineLevel::Addresses);
    return passes.run(*addressed);
  }

  ModuleOp unplanned() const { return *addressed; }

  /// A copy with what `plan`, or the rule alone, decides about each op.
  OwningOpRef<ModuleOp> planned(const schedule::Plan *plan) const {
    OwningOpRef<ModuleOp> copy(unplanned().clone());
    MLIRContext *context = copy->getContext();
    if (plan)
      (*copy)->setAttr(dist::kPlanAttr, schedule::toAttribute(context, *plan));
    PassManager passes(context, ModuleOp::getOperationName());
    addPlan(passes, options);
    if (failed(passes.run(*copy)))
      return nullptr;
    return copy;
  }

  /// The bytes of the arena. A `budget` other than 0 is a limit, and an error
  /// is printed where the arena exceeds it.
  std::optional<int64_t> arena(const schedule::Plan &plan,
                               int64_t budget = 0) const {
    OwningOpRef<ModuleOp> copy = planned(&plan);
    if (!copy)
      return std::nullopt;
    CompileOptions limited = options;
    limited.pipeline.memoryBudget = budget;
    PassManager passes(copy->getContext(), ModuleOp::getOperationName());
    addPlannedArena(passes, limited);
    if (failed(passes.run(*copy)))
      return std::nullopt;
    return (*copy)->getAttrOfType<IntegerAttr>(exec::kArenaBytesAttr).getInt();
  }

private:
  CompileOptions options;
  OwningOpRef<ModuleOp> addressed;
};

} // namespace

/// The plan whose arena is at most `budget`; nothing after an error.
static std::optional<schedule::Plan>
findPlan(const PlanTrials &trials, const problem::Problem &problem,
         const problem::RecomputeDecider &decider, int64_t budget) {
  int64_t target = budget;
  while (std::optional<problem::Decided> decided = decider.decide(target)) {
    schedule::Plan plan =
        schedule::toPlan(problem, decider.options(), decided->choice);
    std::optional<int64_t> arena = trials.arena(plan);
    if (!arena)
      return std::nullopt;
    if (*arena <= budget)
      return plan;
    // How much a plan leaves empty differs from plan to plan: small steps find
    // one that packs well.
    int64_t step = std::max<int64_t>((*arena - budget) / 3, 1);
    target = std::min(target, decided->bytes) - step;
  }
  // The plan of the fewest bytes says what is too large.
  ScopedDiagnosticHandler handler(
      trials.unplanned().getContext(), [](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          diagnostic.attachNote()
              << "compile.plan = auto: no recomputation needs fewer bytes";
        return failure();
      });
  schedule::Plan plan =
      schedule::toPlan(problem, decider.options(), decider.least().choice);
  if (!trials.arena(plan, budget))
    return std::nullopt;
  return plan;
}

llvm::Error fsdp::decidePlan(ModuleOp module, const CompileOptions &options) {
  if (module->hasAttr(dist::kPlanAttr))
    return llvm::createStringError(
        "the text states a plan (fsdp.plan), and compile.plan = \"auto\" "
        "decides itself; leave out one of them");
  CostModel cost(loadMachine(options.compile.machine));
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
  problem::RecomputeDecider decider(
      *problem, schedule::candidateOf(*problem, *byRule), cost);
  std::optional<schedule::Plan> plan =
      findPlan(trials, *problem, decider, options.pipeline.memoryBudget);
  if (!plan)
    return alreadyPrinted();
  module->setAttr(dist::kPlanAttr,
                  schedule::toAttribute(module.getContext(), *plan));
  return llvm::Error::success();
}
