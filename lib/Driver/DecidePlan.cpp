//===- DecidePlan.cpp - A plan for a budget of memory ---------------------===//
#include "fsdp/Driver/DecidePlan.h"
#include "PlanTrials.h"
#include "dialects/NN/NN.h"
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

/// Whether some embedding looks up fewer rows than its table has, no setting
/// says whether they travel, and no bit would change: fsdp-embedding-rows looks
/// closer.
static bool mayExchangeRows(ModuleOp module, const CompileOptions &options) {
  if (options.compile.embeddingRows || !options.pipeline.mayChooseRows ||
      options.compile.reduce == ReduceOrder::Fast)
    return false;
  bool isAny = false;
  module.walk([&](nn::EmbeddingOp op) {
    auto table = cast<RankedTensorType>(op.getTable().getType()),
         rows = cast<RankedTensorType>(op.getIndices().getType());
    isAny |= rows.getNumElements() < table.getDimSize(0);
  });
  return isAny;
}

bool fsdp::mayDecideSettings(ModuleOp module, const CompileOptions &options,
                             const CostModel &model) {
  return options.compile.computeCopy || ranksOfNode(options, model) > 0 ||
         mayExchangeRows(module, options);
}

/// The fewest bytes that are known to do.
static int64_t leastBytes(const Planning &from, const CompileOptions &options,
                          const simulation::Costs &costs) {
  problem::ScheduleDecider decider(from.problem, from.byRule, costs, "train",
                                   decidesResharding(options));
  std::optional<problem::DecidedSchedule> least = decider.least();
  return least ? least->bytes : INT64_MAX;
}

/// Where nothing fits: what finds the plan with the smallest arena, and fails
/// with its buffers if that does not fit either. Copies of parameters would
/// only add to it; rows of an embedding may need less than its table.
static llvm::Expected<FoundPlan> findLeast(ModuleOp module,
                                           CompileOptions &options,
                                           const simulation::Costs &costs) {
  options.compile.computeCopy = false;
  llvm::Expected<std::unique_ptr<Planning>> planning =
      beginPlanning(module, options);
  if (!planning)
    return planning.takeError();
  if (mayExchangeRows(module, options)) {
    CompileOptions with = options;
    with.compile.embeddingRows = true;
    llvm::Expected<std::unique_ptr<Planning>> rows =
        beginPlanning(module, with);
    if (!rows)
      return rows.takeError();
    if (leastBytes(**rows, with, costs) <
        leastBytes(**planning, options, costs)) {
      options = with;
      planning = std::move(rows);
    }
  }
  const Planning &from = **planning;
  problem::ScheduleDecider decider(from.problem, from.byRule, costs, "train",
                                   decidesResharding(options));
  std::optional<FoundPlan> found = findPlan(from.trials, from.problem, decider,
                                            options.pipeline.memoryBudget);
  if (!found)
    return alreadyPrinted();
  return std::move(*found);
}

namespace {

/// What is decided with some settings.
struct Trial {
  CompileOptions options;
  std::optional<FoundPlan> found; ///< None where no plan fits.
  Duration byRule;                ///< Of the rule's step.
  /// The part of the step beyond its bound: what other communication could win
  /// at most. All of it where a policy gave the plan, which has no bound.
  double beyondBound = 1;
};

/// Decides with some settings after others. A search takes seconds, so it is
/// left out where it cannot win much.
class SettingsDecider {
public:
  SettingsDecider(ModuleOp module, const simulation::Costs &costs)
      : module(module), costs(costs) {}

  llvm::Error run(const CompileOptions &options) {
    if (llvm::Error error = tryPlan(options, std::nullopt))
      return error;
    if (options.compile.computeCopy)
      if (llvm::Error error = tryEach(
              [](CompileOptions &with) { with.compile.computeCopy = false; },
              std::nullopt))
        return error;
    if (mayExchangeRows(module, options))
      if (llvm::Error error = tryEach(
              [](CompileOptions &with) { with.compile.embeddingRows = true; },
              kWorthExchanging))
        return error;
    // What a node gathers again by itself needs more bytes, never fewer.
    int64_t ranks = ranksOfNode(options, costs.model);
    if (ranks == 0)
      return llvm::Error::success();
    return tryEach(
        [&](CompileOptions &with) {
          with.parallelism.fsdpReshardRanks = ranks;
        },
        std::nullopt,
        [](const Trial &from) {
          return from.found && from.beyondBound >= kWorthSearching;
        });
  }

  /// The fastest; none where nothing fits.
  Trial *best() {
    Trial *best = nullptr;
    for (Trial &trial : trials)
      if (trial.found && (!best || trial.found->total < best->found->total))
        best = &trial;
    return best;
  }

private:
  /// Smaller parts of a step are not worth another search.
  static constexpr double kWorthSearching = 0.05, kWorthExchanging = 0.01;
  /// More than what the rest of a search wins as a rule.
  static constexpr double kTooSlow = 1.07;

  /// Each trial that `isWorth` it with a setting changed. `wins`: where the
  /// rule's step wins that part by it.
  llvm::Error
  tryEach(llvm::function_ref<void(CompileOptions &)> change,
          std::optional<double> wins,
          llvm::function_ref<bool(const Trial &)> isWorth = nullptr) {
    for (size_t i = 0, count = trials.size(); i < count; ++i) {
      if (isWorth && !isWorth(trials[i]))
        continue;
      CompileOptions with = trials[i].options;
      change(with);
      std::optional<double> most;
      // Where nothing fits yet, it may with this.
      if (wins && best())
        most = trials[i].byRule.seconds() * (1 - *wins);
      if (llvm::Error error = tryPlan(with, most))
        return error;
    }
    return llvm::Error::success();
  }

  /// `most`, in seconds: nothing is searched where the rule's step takes
  /// longer.
  llvm::Error tryPlan(const CompileOptions &options,
                      std::optional<double> most) {
    llvm::Expected<std::unique_ptr<Planning>> planning =
        beginPlanning(module, options);
    if (!planning)
      return planning.takeError();
    const Planning &from = **planning;
    Trial trial;
    trial.options = options;
    trial.byRule =
        simulation::simulate(from.problem, from.byRule, "train", costs).total;
    if (most && *most < trial.byRule.seconds())
      return llvm::Error::success();
    problem::ScheduleDecider decider(from.problem, from.byRule, costs, "train",
                                     decidesResharding(options));
    if (!isHopeless(decider, options) && failed(search(from, decider, trial)))
      return alreadyPrinted();
    trials.push_back(std::move(trial));
    return llvm::Error::success();
  }

  /// Whether another trial is much faster. What fits by no rule may still pack
  /// where blocks are alike, but not what only needs more bytes than a trial.
  bool isHopeless(const problem::ScheduleDecider &decider,
                  const CompileOptions &options) {
    const Trial *known = best();
    if (!known)
      return false;
    int64_t budget = options.pipeline.memoryBudget;
    if (auto rough = decider.decideRoughly(budget))
      return known->found->total.seconds() * kTooSlow < rough->total.seconds();
    bool needsMore = options.parallelism.fsdpReshardRanks !=
                     trials.front().options.parallelism.fsdpReshardRanks;
    std::optional<problem::DecidedSchedule> least =
        needsMore ? decider.least() : std::nullopt;
    return least && least->bytes > budget;
  }

  static LogicalResult search(const Planning &from,
                              problem::ScheduleDecider &decider, Trial &trial) {
    FailureOr<std::optional<FoundPlan>> found =
        fitPlan(from.trials, from.problem, decider,
                trial.options.pipeline.memoryBudget);
    if (failed(found))
      return failure();
    trial.found = std::move(*found);
    if (trial.found && trial.found->schedule) {
      double total = trial.found->total.seconds();
      trial.beyondBound =
          (total - decider.bound(*trial.found->schedule).seconds()) / total;
    }
    return success();
  }

  ModuleOp module;
  const simulation::Costs &costs;
  std::vector<Trial> trials;
};

} // namespace

llvm::Expected<FoundPlan> fsdp::decideSettings(ModuleOp module,
                                               CompileOptions &options,
                                               const simulation::Costs &costs) {
  SettingsDecider decider(module, costs);
  if (llvm::Error error = decider.run(options))
    return std::move(error);
  Trial *best = decider.best();
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
