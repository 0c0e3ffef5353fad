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

namespace {

/// What is decided with some settings.
struct Trial {
  CompileOptions options;
  std::optional<FoundPlan> found; ///< None where no plan fits.
  /// The part of the step beyond its bound: what other communication could win
  /// at most. All of it where a policy gave the plan, which has no bound.
  double beyondBound = 1;
};

} // namespace

/// A smaller part of a step is not worth another search.
static constexpr double kWorthSearching = 0.05;

/// `isSecond`: where the least that is known does not fit, nothing is searched.
static llvm::Expected<Trial> tryPlan(ModuleOp module,
                                     const CompileOptions &options,
                                     const simulation::Costs &costs,
                                     bool isSecond) {
  llvm::Expected<std::unique_ptr<Planning>> planning =
      beginPlanning(module, options);
  if (!planning)
    return planning.takeError();
  const Planning &from = **planning;
  int64_t budget = options.pipeline.memoryBudget;
  problem::ScheduleDecider decider(from.problem, from.byRule, costs, "train",
                                   decidesResharding(options));
  Trial trial{options, std::nullopt};
  if (isSecond) {
    std::optional<problem::DecidedSchedule> least = decider.least();
    if (!least || least->bytes > budget)
      return trial;
  }
  FailureOr<std::optional<FoundPlan>> found =
      fitPlan(from.trials, from.problem, decider, budget);
  if (failed(found))
    return alreadyPrinted();
  trial.found = std::move(*found);
  if (trial.found && trial.found->schedule) {
    double total = trial.found->total.seconds();
    trial.beyondBound =
        (total - decider.bound(*trial.found->schedule).seconds()) / total;
  }
  return trial;
}

/// The ranks of the innermost data axis that share a node of the machine, if
/// the axis has several such groups and it is decided what is gathered again;
/// else 0.
static int64_t ranksOfNode(const CompileOptions &options,
                           const CostModel &model) {
  bool keepsGathers =
      options.pipeline.microbatches != 1 &&
      options.compile.accumulateGathers == AccumulateGathers::Keep;
  if (options.parallelism.fsdpReshardRanks != 0 ||
      !decidesResharding(options) || keepsGathers ||
      options.compile.mode == ShardMode::Replicate)
    return 0;
  int64_t left = model.machine().device.ranksPerNode;
  std::vector<MeshAxisOption> axes = parseMesh(options.pipeline.mesh);
  for (const MeshAxisOption &axis : llvm::reverse(axes)) {
    if (axis.size == 1)
      continue;
    if (axis.kind == AxisKind::Data)
      return left > 1 && axis.size > left && axis.size % left == 0 ? left : 0;
    if (left % axis.size != 0)
      return 0;
    left /= axis.size;
  }
  return 0;
}

bool fsdp::mayDecideSettings(const CompileOptions &options,
                             const CostModel &model) {
  return options.compile.computeCopy || ranksOfNode(options, model) > 0;
}

/// Where nothing fits: what finds the plan with the smallest arena, and fails
/// with its buffers if that does not fit either. Copies of parameters would
/// only add to it.
static llvm::Expected<FoundPlan> findLeast(ModuleOp module,
                                           CompileOptions &options,
                                           const simulation::Costs &costs) {
  options.compile.computeCopy = false;
  llvm::Expected<std::unique_ptr<Planning>> planning =
      beginPlanning(module, options);
  if (!planning)
    return planning.takeError();
  const Planning &from = **planning;
  problem::ScheduleDecider decider(from.problem, from.byRule, costs, "train",
                                   decidesResharding(options));
  std::optional<FoundPlan> found = findPlan(from.trials, from.problem, decider,
                                            options.pipeline.memoryBudget);
  if (!found)
    return alreadyPrinted();
  return std::move(*found);
}

llvm::Expected<FoundPlan> fsdp::decideSettings(ModuleOp module,
                                               CompileOptions &options,
                                               const simulation::Costs &costs) {
  std::vector<Trial> trials;
  auto tryWith = [&](const CompileOptions &with) -> llvm::Error {
    llvm::Expected<Trial> trial =
        tryPlan(module, with, costs, /*isSecond=*/!trials.empty());
    if (!trial)
      return trial.takeError();
    trials.push_back(std::move(*trial));
    return llvm::Error::success();
  };
  if (llvm::Error error = tryWith(options))
    return std::move(error);
  if (options.compile.computeCopy) {
    CompileOptions without = options;
    without.compile.computeCopy = false;
    if (llvm::Error error = tryWith(without))
      return std::move(error);
  }
  // What a node gathers again by itself needs more bytes, never fewer.
  int64_t ranks = ranksOfNode(options, costs.model);
  for (size_t i = 0, count = trials.size(); ranks > 0 && i < count; ++i) {
    CompileOptions inside = trials[i].options;
    inside.parallelism.fsdpReshardRanks = ranks;
    if (trials[i].found && trials[i].beyondBound >= kWorthSearching)
      if (llvm::Error error = tryWith(inside))
        return std::move(error);
  }
  Trial *best = nullptr;
  for (Trial &trial : trials)
    if (trial.found && (!best || trial.found->total < best->found->total))
      best = &trial;
  if (!best)
    return findLeast(module, options, costs);
  options = best->options;
  return std::move(*best->found);
}

llvm::Error fsdp::decidePlan(ModuleOp module, CompileOptions &options) {
  CostModel model(loadMachine(options.compile.machine));
  QuietPlanning quiet(module);
  llvm::Expected<FoundPlan> found = decideSettings(module, options, {model});
  if (!found)
    return found.takeError();
  module->setAttr(dist::kPlanAttr,
                  schedule::toAttribute(module.getContext(), found->plan));
  return llvm::Error::success();
}
