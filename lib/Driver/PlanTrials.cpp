//===- PlanTrials.cpp - Plans for one module, tried on copies -------------===//
#include "PlanTrials.h"
#include "dialects/Exec/Exec.h"
#include "fsdp/Config/RecomputePolicy.h"
#include "fsdp/Driver/DecidePlan.h"
#include "fsdp/Driver/Diagnostics.h"
#include "fsdp/Schedule/DecidedPlan.h"
#include "fsdp/Schedule/PackedArena.h"
#include "fsdp/Schedule/ProblemOf.h"
#include "fsdp/Support/ParallelFor.h"
#include "passes/Pipelines.h"
#include <numeric>

using namespace fsdp;
using namespace mlir;

PlanTrials::PlanTrials(ModuleOp module, const CompileOptions &given)
    : options(given), addressed(module.clone()) {
  options.pipeline.memoryBudget = 0;
  // A decider says itself what is computed again.
  options.compile.recompute = "none";
}

LogicalResult PlanTrials::address() {
  PassManager passes(addressed->getContext(), ModuleOp::getOperationName());
  passes.enableVerifier(false);
  buildTrainPipeline(passes, options, PipelineLevel::Addresses);
  return passes.run(*addressed);
}

OwningOpRef<ModuleOp>
PlanTrials::plannedWith(const schedule::Plan *plan,
                        const CompileOptions &with) const {
  OwningOpRef<ModuleOp> copy(unplanned().clone());
  MLIRContext *context = copy->getContext();
  if (plan)
    (*copy)->setAttr(dist::kPlanAttr, schedule::toAttribute(context, *plan));
  PassManager passes(context, ModuleOp::getOperationName());
  // What is decided is verified when it is compiled.
  passes.enableVerifier(false);
  addPlan(passes, with);
  if (failed(passes.run(*copy)))
    return nullptr;
  return copy;
}

OwningOpRef<ModuleOp> PlanTrials::planned(const schedule::Plan &plan) const {
  return plannedWith(&plan, options);
}

OwningOpRef<ModuleOp> PlanTrials::plannedBy(const std::string &policy) const {
  CompileOptions with = options;
  with.compile.recompute = policy;
  return plannedWith(nullptr, with);
}

std::optional<int64_t> PlanTrials::arena(ModuleOp planned,
                                         int64_t budget) const {
  CompileOptions limited = options;
  limited.pipeline.memoryBudget = budget;
  PassManager passes(planned->getContext(), ModuleOp::getOperationName());
  passes.enableVerifier(false);
  addPlannedArena(passes, limited);
  if (failed(passes.run(planned)))
    return std::nullopt;
  return planned->getAttrOfType<IntegerAttr>(exec::kArenaBytesAttr).getInt();
}

std::optional<int64_t> PlanTrials::arena(const schedule::Plan &plan,
                                         int64_t budget) const {
  OwningOpRef<ModuleOp> copy = planned(plan);
  return copy ? arena(*copy, budget) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// What a plan is decided from
//===----------------------------------------------------------------------===//

QuietPlanning::QuietPlanning(ModuleOp module)
    : handler(module.getContext(), [](Diagnostic &diagnostic) {
        return failure(diagnostic.getSeverity() == DiagnosticSeverity::Error);
      }) {}

llvm::Expected<std::unique_ptr<Planning>>
fsdp::beginPlanning(ModuleOp module, const CompileOptions &options) {
  if (module->hasAttr(dist::kPlanAttr))
    return llvm::createStringError(
        "the text states a plan (fsdp.plan), and compile.plan = \"auto\" "
        "decides itself; leave out one of them");
  PlanTrials trials(module, options);
  if (failed(trials.address()))
    return alreadyPrinted();
  llvm::Expected<problem::Problem> problem =
      problemFor(trials.unplanned(), options);
  if (!problem)
    return problem.takeError();
  OwningOpRef<ModuleOp> byRule = trials.plannedBy("none");
  if (!byRule)
    return alreadyPrinted();
  problem::Candidate candidate = schedule::candidateOf(*problem, *byRule);
  return std::make_unique<Planning>(
      Planning{std::move(trials), std::move(*problem), std::move(candidate)});
}

//===----------------------------------------------------------------------===//
// The plan for a budget
//===----------------------------------------------------------------------===//

bool fsdp::decidesResharding(const CompileOptions &options) {
  return options.parallelism.fsdpReshardAfterForward == ReshardPolicy::Default;
}

namespace {

/// Tries schedules that were decided for fewer and fewer bytes, and others that
/// pack well.
class Packer {
public:
  Packer(const PlanTrials &trials, const problem::Problem &problem,
         problem::ScheduleDecider &decider, int64_t budget)
      : trials(trials), problem(problem), decider(decider), packed(problem),
        budget(budget) {}

  /// The fastest that packs into the budget; fails after an error.
  FailureOr<std::optional<FoundPlan>> run() {
    std::optional<problem::DecidedSchedule> first = decider.decide(budget);
    consider(first, budget, /*refines=*/true);
    // Where the buffers of the fastest leave too many gaps, those of another
    // communication, decided for fewer bytes, may not.
    int64_t searched = budget;
    for (int64_t part : {16, 8, 4})
      if (first && !best) {
        searched = budget - budget / part;
        consider(decider.decideAgain(searched), searched, /*refines=*/true);
      }
    // In fewer bytes another communication may be the fastest.
    int64_t before = decider.isLarge() ? searched : budget;
    if (best && best->target < before - budget / kMuch)
      consider(decider.decideAgain(best->target, &*best->schedule),
               best->target, /*refines=*/true);
    std::vector<RuleStep> rules = packRules();
    // What needs the fewest live bytes may pack where nothing else does.
    if (!best)
      consider(decider.least(), budget, /*refines=*/false);
    if (failed(packUniform()) || failed(packPolicies()))
      return failure();
    if (best)
      finish(std::move(rules));
    return std::move(best);
  }

private:
  static constexpr int64_t kMuch = 100, kLeastStep = 1000;

  /// How much a plan leaves empty differs from plan to plan: what is fastest in
  /// live bytes may pack badly, and what a rule does may not. The fastest rule
  /// comes first, because no rule that is slower than the best is packed.
  std::vector<RuleStep> packRules() {
    const std::vector<problem::NamedChoice> &known = decider.rules();
    std::vector<std::optional<problem::DecidedSchedule>> decided(known.size());
    parallelFor(known.size(), decider.threads(), [&](size_t i) {
      decided[i] = decider.decide(budget, known[i].choice);
    });
    std::vector<size_t> order(known.size());
    std::iota(order.begin(), order.end(), 0);
    llvm::stable_sort(order, [&](size_t a, size_t b) {
      return decided[a] &&
             (!decided[b] || decided[a]->total < decided[b]->total);
    });
    std::vector<RuleStep> rules(known.size());
    for (size_t i : order) {
      std::optional<problem::DecidedSchedule> with =
          consider(std::move(decided[i]), budget, /*refines=*/false);
      rules[i].name = known[i].name;
      if (with) {
        rules[i].total = with->total;
        rules[i].bytes = with->bytes;
        rules[i].plan = planOf(with->candidate);
      }
    }
    return rules;
  }

  /// Decides again for the same communication until the arena fits. Gives what
  /// was decided last: it packs, takes as long as the best, or is nothing.
  std::optional<problem::DecidedSchedule>
  consider(std::optional<problem::DecidedSchedule> decided, int64_t target,
           bool refines) {
    for (int tried = 0; decided && (!best || decided->total < best->total);
         ++tried) {
      // One that is decided again need not be known to be far too large.
      int64_t arena = pack(*decided, target, /*onlyEnough=*/refines);
      if (arena <= budget)
        return decided;
      // A small step finds one that packs well, and a large one ends.
      int64_t step = std::max((arena - budget) / (tried == 0 ? 2 : 1),
                              budget / kLeastStep);
      target = std::min(target, decided->bytes) - step;
      decided = refines ? decider.tighten(*decided, step)
                        : decider.decide(target, decided->communication);
    }
    return decided;
  }

  /// The arena of what was decided for `target` bytes, which is the best so far
  /// if it packs.
  int64_t pack(const problem::DecidedSchedule &decided, int64_t target,
               bool onlyEnough = false) {
    int64_t arena = packed.bytes(decided.candidate, budget, onlyEnough);
    if (arena <= budget)
      best = FoundPlan{{}, decided.total, "", decided, target, {}};
    return arena;
  }

  schedule::Plan planOf(const problem::Candidate &candidate) const {
    return schedule::toPlan(problem, decider.given(), candidate);
  }

  /// What is asked of the best alone.
  void finish(std::vector<RuleStep> rules) {
    best->rules = std::move(rules);
    if (best->schedule)
      best->plan = planOf(best->schedule->candidate);
  }

  /// What decides alike about all blocks: a set of the class with the most.
  struct Alike {
    uint32_t set;
    problem::DecidedSchedule schedule;
  };

  /// Blocks that are alike leave few gaps between their buffers: what is alike
  /// in all may pack where what is faster in live bytes does not.
  LogicalResult packUniform() {
    // Where nothing fits yet, the communication that needs the fewest bytes.
    // Policies, which have no schedule, come later.
    std::vector<problem::CommunicationChoice> ways = {
        problem::withoutPlaces(decider.byRule())};
    std::optional<problem::DecidedSchedule> other =
        best ? best->schedule : decider.least();
    if (other)
      if (auto way = problem::withoutPlaces(other->communication);
          !(way == ways.front()))
        ways.push_back(std::move(way));
    FailureOr<problem::Candidate> policies = ruleOfPolicies();
    if (failed(policies))
      return failure();
    const problem::BlockChain &chain = decider.recompute().options().chain;
    uint32_t common = decider.recompute().options().common;
    std::vector<uint32_t> sets(chain.classes[common].size());
    std::iota(sets.begin(), sets.end(), 0);
    std::vector<Alike> alike = decideAlike(sets, ways, *policies);
    // Those before what packs leave too many gaps. What takes little longer may
    // not.
    alike.resize(packFirst(alike));
    (void)packFirst(decideAlike(slowerSets(alike), ways, *policies));
    return success();
  }

  /// Packs until one fits, the fastest first, and gives how many did not.
  size_t packFirst(const std::vector<Alike> &alike) {
    size_t tried = 0;
    while (tried < alike.size() &&
           pack(alike[tried].schedule, alike[tried].schedule.bytes) > budget)
      ++tried;
    return tried;
  }

  /// The steps with `sets` that take less time than the best, and no more live
  /// bytes than there are, in order.
  std::vector<Alike>
  decideAlike(const std::vector<uint32_t> &sets,
              const std::vector<problem::CommunicationChoice> &ways,
              const problem::Candidate &policies) {
    std::optional<Duration> before;
    if (best)
      before = best->total;
    const problem::RecomputeOptions &known = decider.recompute().options();
    const std::vector<std::vector<uint32_t>> choices =
        problem::uniformChoices(problem, known, sets);
    std::vector<std::vector<Alike>> found(choices.size());
    parallelFor(choices.size(), decider.threads(), [&](size_t i) {
      for (const problem::CommunicationChoice &way : ways)
        if (auto with = decider.withOptions(choices[i], way, budget, before))
          found[i].push_back({sets[i], std::move(*with)});
      auto candidate = problem::withRecomputation(policies, known, choices[i]);
      auto score = decider.score(candidate);
      if (score && score->bytes <= budget &&
          (!before || score->total < *before))
        found[i].push_back({sets[i],
                            {decider.byRule(), choices[i], std::move(candidate),
                             score->total, score->bytes, /*room=*/0}});
    });
    std::vector<Alike> alike;
    for (std::vector<Alike> &some : found)
      std::move(some.begin(), some.end(), std::back_inserter(alike));
    llvm::stable_sort(alike, [](const Alike &a, const Alike &b) {
      return a.schedule.total < b.schedule.total;
    });
    return alike;
  }

  /// The sets that are slower than one of `gaps`, which leave too many, and
  /// would take less time than the best where nothing hides what they add.
  std::vector<uint32_t> slowerSets(const std::vector<Alike> &gaps) const {
    const problem::RecomputeOptions &known = decider.recompute().options();
    int64_t blocks = llvm::count(known.chain.classOf, known.common);
    auto number =
        static_cast<uint32_t>(known.chain.classes[known.common].size());
    std::vector<uint32_t> sets;
    for (const problem::SlowerSet &slower : known.slower) {
      auto from = llvm::find_if(
          gaps, [&](const Alike &alike) { return alike.set == slower.option; });
      if (from != gaps.end() &&
          (!best || from->schedule.total + slower.more * blocks < best->total))
        sets.push_back(number);
      ++number;
    }
    return sets;
  }

  /// What the rule decides beside a policy, but for what is computed again.
  FailureOr<problem::Candidate> ruleOfPolicies() {
    OwningOpRef<ModuleOp> copy = trials.plannedBy("free");
    if (!copy)
      return failure();
    problem::Candidate candidate = schedule::candidateOf(problem, *copy);
    const problem::Candidate &given = decider.given();
    auto isRecomputed = [](const problem::Candidate &by, problem::Id decision) {
      return decision != problem::kNone && by.decisions[decision].recompute;
    };
    for (size_t program = 0; program < candidate.programs.size(); ++program)
      for (auto [decided, before] : llvm::zip_equal(
               candidate.programs[program].of, given.programs[program].of))
        if (isRecomputed(candidate, decided) && !isRecomputed(given, before)) {
          problem::Decision decision = candidate.decisions[decided];
          decision.recompute = false;
          decided = candidate.add(decision);
        }
    return candidate;
  }

  /// A policy may repeat what is not decided about: collectives.
  LogicalResult packPolicies() {
    auto blocks =
        static_cast<int64_t>(decider.recompute().options().blocks.all.size());
    for (const std::string &policy : knownRecomputePolicies())
      if (parseRecomputePolicy(policy).every <= blocks &&
          failed(consider(policy)))
        return failure();
    return success();
  }

  LogicalResult consider(const std::string &policy) {
    OwningOpRef<ModuleOp> copy = trials.plannedBy(policy);
    if (!copy)
      return failure();
    problem::Candidate candidate = schedule::candidateOf(problem, *copy);
    std::optional<problem::ScheduleScore> score = decider.score(candidate);
    if (!score || score->bytes > budget ||
        (best && best->total <= score->total) ||
        packed.bytes(candidate, budget) > budget)
      return success();
    FailureOr<schedule::Plan> plan = schedule::planOf(*copy);
    if (failed(plan))
      return failure();
    best = FoundPlan{std::move(*plan), score->total, policy,
                     std::nullopt,     score->bytes, {}};
    return success();
  }

  const PlanTrials &trials;
  const problem::Problem &problem;
  problem::ScheduleDecider &decider;
  schedule::PackedArena packed;
  const int64_t budget;
  std::optional<FoundPlan> best;
};

} // namespace

/// The plan of "full" and its `arena`: what needs the fewest live bytes may
/// leave more gaps.
static std::optional<FoundPlan> planOfFull(const PlanTrials &trials,
                                           int64_t &arena) {
  FoundPlan found;
  found.policy = "full";
  OwningOpRef<ModuleOp> copy = trials.plannedBy(found.policy);
  FailureOr<schedule::Plan> plan =
      copy ? schedule::planOf(*copy) : FailureOr<schedule::Plan>(failure());
  if (failed(plan))
    return std::nullopt;
  found.plan = std::move(*plan);
  std::optional<int64_t> bytes = trials.arena(*copy);
  if (!bytes)
    return std::nullopt;
  arena = *bytes;
  return found;
}

/// The error about `plan`, whose arena is the smallest.
static void failBudget(const PlanTrials &trials, const schedule::Plan &plan,
                       int64_t budget) {
  ScopedDiagnosticHandler handler(
      trials.unplanned().getContext(), [](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          diagnostic.attachNote()
              << "compile.plan = auto: no plan that was tried needs fewer "
                 "bytes; "
                 "more ranks to shard over, tensor parallelism "
                 "(parallelism.tensor_parallel_degree), or fewer tokens per "
                 "rank (training.local_batch_size, training.seq_len) would";
        return failure();
      });
  (void)trials.arena(plan, budget);
}

FailureOr<std::optional<FoundPlan>>
fsdp::fitPlan(const PlanTrials &trials, const problem::Problem &problem,
              problem::ScheduleDecider &decider, int64_t budget) {
  return Packer(trials, problem, decider, budget).run();
}

std::optional<FoundPlan> fsdp::findPlan(const PlanTrials &trials,
                                        const problem::Problem &problem,
                                        problem::ScheduleDecider &decider,
                                        int64_t budget) {
  FailureOr<std::optional<FoundPlan>> found =
      fitPlan(trials, problem, decider, budget);
  if (failed(found))
    return std::nullopt;
  if (*found)
    return std::move(*found);
  int64_t arenaOfFull = 0;
  std::optional<FoundPlan> full = planOfFull(trials, arenaOfFull);
  if (!full || arenaOfFull <= budget)
    return full;
  schedule::Plan smallest = std::move(full->plan);
  if (std::optional<problem::DecidedSchedule> least = decider.least()) {
    schedule::Plan plan =
        schedule::toPlan(problem, decider.given(), least->candidate);
    std::optional<int64_t> arena = trials.arena(plan);
    if (!arena)
      return std::nullopt;
    if (*arena < arenaOfFull)
      smallest = std::move(plan);
  }
  failBudget(trials, smallest, budget);
  return std::nullopt;
}
