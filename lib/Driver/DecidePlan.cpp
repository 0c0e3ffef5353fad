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
  std::optional<FoundPlan> found; ///< None where no plan fits.
  /// The part of the step that it could lose at most if nothing that is
  /// gathered again left a node.
  double atMostWon = 0;
};

} // namespace

/// A smaller part of a step is not worth another search.
static constexpr double kWorthSearching = 0.05;

/// That is no more than what these gathers take, and than what the step takes
/// beyond its bound.
static double atMostWon(problem::ScheduleDecider &decider,
                        const problem::DecidedSchedule &found) {
  double total = found.total.seconds(), again = 0;
  const problem::BucketTravels travels = decider.travels(found);
  for (const auto &bucket : travels[int(problem::TransferKind::Again)])
    again += bucket.takes.seconds();
  return std::min(again, total - decider.bound(found).seconds()) / total;
}

static llvm::Expected<Trial> tryPlan(ModuleOp module,
                                     const CompileOptions &options,
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
  Trial trial{std::move(*found)};
  if (trial.found && trial.found->schedule)
    trial.atMostWon = atMostWon(decider, *trial.found->schedule);
  return trial;
}

/// The error where nothing fits.
static llvm::Error explainMisfit(ModuleOp module, const CompileOptions &options,
                                 const simulation::Costs &costs) {
  llvm::Expected<std::unique_ptr<Planning>> planning =
      beginPlanning(module, options);
  if (!planning)
    return planning.takeError();
  const Planning &from = **planning;
  problem::ScheduleDecider decider(from.problem, from.byRule, costs, "train",
                                   decidesResharding(options));
  (void)findPlan(from.trials, from.problem, decider,
                 options.pipeline.memoryBudget);
  return alreadyPrinted();
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

llvm::Expected<std::optional<FoundPlan>>
fsdp::decideSettings(ModuleOp module, CompileOptions &options,
                     const simulation::Costs &costs) {
  llvm::Expected<Trial> best = tryPlan(module, options, costs);
  if (!best)
    return best.takeError();
  auto consider = [&](const CompileOptions &other) -> llvm::Error {
    llvm::Expected<Trial> trial = tryPlan(module, other, costs);
    if (!trial)
      return trial.takeError();
    if (trial->found &&
        (!best->found || trial->found->total < best->found->total)) {
      best = std::move(trial);
      options = other;
    }
    return llvm::Error::success();
  };
  CompileOptions other = options;
  other.compile.computeCopy = false;
  if (options.compile.computeCopy)
    if (llvm::Error error = consider(other))
      return std::move(error);
  other = options;
  other.parallelism.fsdpReshardRanks = ranksOfNode(options, costs.model);
  if (other.parallelism.fsdpReshardRanks > 0 &&
      best->atMostWon >= kWorthSearching)
    if (llvm::Error error = consider(other))
      return std::move(error);
  return std::move(best->found);
}

llvm::Error fsdp::decidePlan(ModuleOp module, CompileOptions &options) {
  CostModel model(loadMachine(options.compile.machine));
  QuietPlanning quiet(module);
  simulation::Costs costs{model};
  llvm::Expected<std::optional<FoundPlan>> found =
      decideSettings(module, options, costs);
  if (!found)
    return found.takeError();
  if (!*found)
    return explainMisfit(module, options, costs);
  module->setAttr(dist::kPlanAttr,
                  schedule::toAttribute(module.getContext(), (*found)->plan));
  return llvm::Error::success();
}
