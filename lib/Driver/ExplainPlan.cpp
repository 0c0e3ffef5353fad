//===- ExplainPlan.cpp - What a budget of memory costs --------------------===//
#include "fsdp/Driver/ExplainPlan.h"
#include "Milliseconds.h"
#include "PlanTrials.h"
#include "fsdp/Config/RecomputePolicy.h"
#include "fsdp/Driver/DecidePlan.h"
#include "fsdp/Driver/Diagnostics.h"
#include "fsdp/Memory/Report.h"
#include "fsdp/Schedule/ExplainSchedule.h"
#include "fsdp/Schedule/PackedArena.h"
#include "fsdp/Schedule/ProblemOf.h"
#include "fsdp/Simulation/Simulate.h"
#include "fsdp/Support/Text.h"

using namespace fsdp;
using namespace mlir;

static constexpr int64_t kGiB = int64_t(1) << 30;

static double gibibytes(int64_t bytes) {
  return static_cast<double>(bytes) / kGiB;
}

namespace {

struct Row {
  std::string name;
  int64_t arena = 0;
  simulation::StepResult step;
};

class Explainer {
public:
  Explainer(const PlanTrials &trials, const problem::Problem &problem,
            problem::Candidate given, const simulation::Costs &costs,
            const CompileOptions &options)
      : trials(trials), problem(problem), packed(problem),
        base(std::move(given)), costs(costs),
        budget(options.pipeline.memoryBudget), machine(options.compile.machine),
        schedules(problem, base, costs, "train", decidesResharding(options)),
        decider(schedules.recompute()) {}

  /// Explains `found`, or what is found in the budget. Nothing after an error.
  std::optional<std::string> run(std::optional<FoundPlan> found) {
    if (!found)
      found = findPlan(trials, problem, schedules, budget);
    if (!found || !addPolicies())
      return std::nullopt;
    OwningOpRef<ModuleOp> planned = trials.planned(found->plan);
    if (!planned)
      return std::nullopt;
    problem::Candidate candidate = schedule::candidateOf(problem, *planned);
    Row decided{"decided", packed.bytes(candidate), simulate(candidate)};
    appendAnswer(decided);
    appendRows(decided);
    appendRules(decided, *found);
    if (found->schedule)
      appendBuckets(*found);
    appendPrices();
    appendWords(*found);
    appendNotes();
    return std::move(text);
  }

private:
  simulation::StepResult simulate(const problem::Candidate &candidate) const {
    return simulation::simulate(problem, candidate, "train", costs);
  }

  bool addPolicies() {
    size_t blocks = decider.options().blocks.all.size();
    for (const std::string &name : knownRecomputePolicies()) {
      RecomputePolicy policy = parseRecomputePolicy(name);
      if (policy.every > static_cast<int64_t>(blocks))
        continue;
      OwningOpRef<ModuleOp> copy = trials.plannedBy(name);
      if (!copy)
        return false;
      problem::Candidate candidate = schedule::candidateOf(problem, *copy);
      rows.push_back({name, packed.bytes(candidate), simulate(candidate)});
    }
    return true;
  }

  /// What a policy computes beyond "none", which is the first one.
  double lost(const Row &row) const {
    return milliseconds(row.step.compute) -
           milliseconds(rows.front().step.compute);
  }

  void appendAnswer(const Row &decided) {
    const Row &none = rows.front();
    double step = milliseconds(decided.step.total),
           before = milliseconds(none.step.total),
           compute = milliseconds(decided.step.compute),
           link = milliseconds(decided.step.link);
    appendFormat(text, "%s on %lld ranks, budget %s (%lld bytes)\n",
                 costs.model.machine().name.c_str(),
                 static_cast<long long>(problem.ranks),
                 formatBytes(budget).c_str(), static_cast<long long>(budget));
    const Row &standard = *llvm::find_if(rows, [](const Row &row) {
      return row.name == recomputePolicyFor("auto", /*saysOfValues=*/false);
    });
    if (none.arena <= budget)
      appendFormat(text, "fits as it is: %s when nothing is computed again\n",
                   formatBytes(none.arena).c_str());
    else if (standard.arena <= budget)
      appendFormat(text, "fits as it is: %s by the default (%s)\n",
                   formatBytes(standard.arena).c_str(), standard.name.c_str());
    appendFormat(
        text,
        "fits in %s: a step takes %.1f ms, %+.1f ms (%+.1f %%) against "
        "computing nothing again, which needs %s\n",
        formatBytes(decided.arena).c_str(), step, step - before,
        100 * (step - before) / before, formatBytes(none.arena).c_str());
    appendFormat(text,
                 "%s-bound: compute takes %.1f ms, communication %.1f ms, "
                 "of which compute waits for %.1f ms\n\n",
                 compute < link ? "communication" : "compute", compute, link,
                 milliseconds(decided.step.exposed));
  }

  void appendRow(const Row &row) {
    bool fits = row.arena <= budget;
    appendFormat(text, "%-11s %10s  %-5s %10.1f %+11.1f %10.1f\n",
                 row.name.c_str(), formatBytes(row.arena).c_str(),
                 fits ? "fits" : "no", milliseconds(row.step.compute),
                 lost(row), milliseconds(row.step.total));
  }

  void appendRows(const Row &decided) {
    appendFormat(text, "%-11s %10s  %-5s %10s %11s %10s\n", "plan", "arena", "",
                 "compute ms", "beyond none", "step ms");
    appendRow(decided);
    for (const Row &row : rows)
      appendRow(row);
  }

  /// What others do about communication, with the best recomputation in the
  /// same memory.
  void appendRules(const Row &decided, const FoundPlan &found) {
    appendFormat(text, "\n%-23s %10s %10s %12s\n", "communication", "step ms",
                 "/ decided", "live bytes");
    appendFormat(text, "%-23s %10.1f\n", "bound",
                 milliseconds(found.schedule ? schedules.bound(*found.schedule)
                                             : decided.step.bound));
    appendFormat(text, "%-23s %10.1f %10.3f\n", "decided",
                 milliseconds(decided.step.total), 1.0);
    for (const RuleStep &rule : found.rules) {
      if (!rule.total) {
        appendFormat(text, "%-23s %10s\n", rule.name.c_str(), "no");
        continue;
      }
      appendFormat(text, "%-23s %10.1f %10.3f %12s\n", rule.name.c_str(),
                   milliseconds(*rule.total),
                   rule.total->seconds() / decided.step.total.seconds(),
                   formatBytes(rule.bytes).c_str());
    }
  }

  /// What hides each bucket, and why it is no other one.
  void appendBuckets(const FoundPlan &found) {
    static constexpr size_t kShown = 8;
    std::vector<problem::ExplainedBucket> buckets = problem::explainBuckets(
        schedules, *found.schedule, found.target, kShown);
    appendFormat(text, "\n%-36s %8s %10s  %s\n", "collective", "takes ms",
                 "exposed ms", "beside; what a change would take");
    size_t hidden = 0;
    for (size_t i = 0; i < buckets.size(); ++i) {
      hidden += buckets[i].exposed == Duration();
      if (i < kShown)
        appendBucket(buckets[i], found.schedule->total);
    }
    appendFormat(text, "%zu collectives, of which %zu are hidden wholly\n",
                 buckets.size(), hidden);
  }

  void appendBucket(const problem::ExplainedBucket &bucket, Duration total) {
    std::string changes;
    for (const problem::ExplainedBucket::Change &change : bucket.changes) {
      std::string by = change.total
                           ? format("%+.1f", milliseconds(*change.total) -
                                                 milliseconds(total))
                           : "does not fit";
      if (by != "+0.0" && by != "-0.0")
        changes += (changes.empty() ? "; " : ", ") + change.what + " " + by;
    }
    appendFormat(text, "%-36s %8.1f %10.1f  %s%s\n", bucket.name.c_str(),
                 milliseconds(bucket.takes), milliseconds(bucket.exposed),
                 bucket.beside.c_str(), changes.c_str());
  }

  /// What each GiB costs where the budget is a few of them larger or smaller.
  void appendPrices() {
    appendFormat(text, "\n%-11s %10s  %-5s %10s %11s %10s\n", "live bytes",
                 "GiB", "", "compute ms", "ms per GiB", "step ms");
    std::optional<std::pair<double, double>> last; // GiB, ms
    for (int64_t more : {8, 4, 2, 1, 0, -1, -2, -4, -8}) {
      std::optional<problem::Decided> decided =
          decider.decide(budget + more * kGiB);
      double size = gibibytes(budget + more * kGiB);
      if (!decided) {
        appendFormat(text,
                     "budget %+3lld %11.1f  nothing fits; the least is %s\n",
                     static_cast<long long>(more), size,
                     formatBytes(decider.least().bytes).c_str());
        return;
      }
      simulation::StepResult step = simulate(
          problem::withRecomputation(base, decider.options(), decided->choice));
      double compute = milliseconds(step.compute);
      std::string price =
          last ? format("%.1f", (compute - last->second) / (last->first - size))
               : "";
      appendFormat(text, "budget %+3lld %11.1f  %-5s %10.1f %11s %10.1f\n",
                   static_cast<long long>(more), size, "", compute,
                   price.c_str(), milliseconds(step.total));
      last = {size, compute};
    }
  }

  /// What `choice` computes again in a block, by names inside it.
  std::string wordsOf(const std::vector<uint32_t> &choice,
                      size_t number) const {
    const problem::Blocks &blocks = decider.options().blocks;
    const problem::Program &program = problem.programs[blocks.program];
    const problem::Block &block = blocks.all[number];
    problem::OpSet set =
        decider.options().sets[blocks.classOf[number]][choice[number]];
    std::string words;
    for (size_t bit = 0; bit < block.ops.size(); ++bit) {
      if ((set >> bit & 1) == 0)
        continue;
      const problem::Op &op = program.ops[block.ops[bit]];
      std::string name = addressOf(problem, op), before(phaseName(op.phase));
      before += " ";
      before += problem.text(block.name);
      if (name.compare(0, before.size(), before) == 0)
        name.erase(0, before.size() + 1);
      words += (words.empty() ? "" : ", ") + name;
    }
    return words.empty() ? "nothing" : words;
  }

  void appendWords(const FoundPlan &found) {
    text += "\ncomputed again in the backward pass\n";
    if (!found.policy.empty()) {
      text += "  what compile.recompute = \"" + found.policy +
              "\" says; collectives are those of the rule\n";
      return;
    }
    const problem::Blocks &blocks = decider.options().blocks;
    for (size_t begin = 0, end = 0; begin < blocks.all.size(); begin = end) {
      std::string words = wordsOf(found.schedule->choice, begin);
      for (end = begin + 1; end < blocks.all.size(); ++end)
        if (wordsOf(found.schedule->choice, end) != words)
          break;
      std::string from(problem.text(blocks.all[begin].name)),
          to(problem.text(blocks.all[end - 1].name));
      text +=
          "  " + (from == to ? from : from + " to " + to) + ": " + words + "\n";
    }
  }

  void appendNotes() {
    appendFormat(text,
                 "\nto compile it: --compile.plan auto --compile.machine %s "
                 "--memory-budget %lld; "
                 "a GPU also holds CUDA's context and NCCL's buffers, beside "
                 "the arena\n",
                 machine.c_str(), static_cast<long long>(budget));
  }

  const PlanTrials &trials;
  const problem::Problem &problem;
  schedule::PackedArena packed;
  problem::Candidate base;
  const simulation::Costs &costs;
  int64_t budget;
  const std::string machine; ///< Name or path.
  problem::ScheduleDecider schedules;
  const problem::RecomputeDecider &decider;
  std::vector<Row> rows; ///< Of policies, "none" first.
  std::string text;
};

} // namespace

llvm::Expected<std::string> fsdp::explainPlan(ModuleOp module,
                                              const CompileOptions &given,
                                              const simulation::Costs &costs) {
  QuietPlanning quiet(module);
  CompileOptions options = given;
  std::optional<FoundPlan> found;
  if (mayDecideSettings(module, options, costs.model)) {
    auto decided = decideSettings(module, options, costs);
    if (!decided)
      return decided.takeError();
    found = std::move(*decided);
  }
  llvm::Expected<std::unique_ptr<Planning>> planning =
      beginPlanning(module, options);
  if (!planning)
    return planning.takeError();
  const Planning &from = **planning;
  Explainer explainer(from.trials, from.problem, from.byRule, costs, options);
  std::optional<std::string> text = explainer.run(std::move(found));
  if (!text)
    return alreadyPrinted();
  if (options.compile.computeCopy != given.compile.computeCopy)
    *text = "without compile.compute_copy: copies of parameters take more time "
            "than they save, or do not fit\n" +
            *text;
  if (options.compile.embeddingRows != given.compile.embeddingRows)
    *text = "with compile.embedding_rows: ranks exchange the rows of the "
            "embedding that they read, not its table\n" +
            *text;
  if (int64_t ranks = options.parallelism.fsdpReshardRanks;
      ranks != given.parallelism.fsdpReshardRanks)
    *text = "with parallelism.fsdp_reshard_ranks = " + std::to_string(ranks) +
            ": parameters are gathered again inside nodes\n" + *text;
  return std::move(*text);
}
