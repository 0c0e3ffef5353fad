//===- ComparePlans.cpp - Decided plans beside known rules ----------------===//
#include "fsdp/Driver/ComparePlans.h"
#include "Milliseconds.h"
#include "PlanTrials.h"
#include "fsdp/Driver/Diagnostics.h"
#include "fsdp/Memory/Report.h"
#include "fsdp/Schedule/PackedArena.h"
#include "fsdp/Schedule/ProblemOf.h"
#include "fsdp/Simulation/Simulate.h"
#include "fsdp/Support/Text.h"
#include <algorithm>

using namespace fsdp;
using namespace mlir;

namespace {

class Comparer {
public:
  explicit Comparer(const Planning &planning, bool mayKeep)
      : planning(planning), packed(planning.problem), mayKeep(mayKeep) {
    appendFormat(result.text, "%-16s %10s %10s %10s %7s %10s %9s %7s  %s\n",
                 "machine", "budget", "decided ms", "bound ms", "/ bound",
                 "arena", "block + 1", "best", "best rule");
  }

  void add(const simulation::Costs &costs,
           const std::vector<int64_t> &budgets) {
    problem::ScheduleDecider decider(planning.problem, planning.byRule, costs,
                                     "train", mayKeep);
    for (int64_t budget : budgets)
      add(costs, decider, budget);
  }

  /// Nothing after an error that has been printed.
  std::optional<Comparison> take() {
    return isGood ? std::optional(std::move(result)) : std::nullopt;
  }

private:
  void add(const simulation::Costs &costs, problem::ScheduleDecider &decider,
           int64_t budget) {
    appendFormat(result.text, "%-16s %10s ", costs.model.machine().name.c_str(),
                 formatBytes(budget).c_str());
    FailureOr<std::optional<FoundPlan>> found =
        fitPlan(planning.trials, planning.problem, decider, budget);
    isGood &= succeeded(found);
    if (failed(found) || !*found) {
      ++result.notFitting;
      result.text += "does not fit\n";
      return;
    }
    ++result.cases;
    OwningOpRef<ModuleOp> planned = planning.trials.planned((*found)->plan);
    isGood &= bool(planned);
    if (!planned)
      return;
    problem::Candidate candidate =
        schedule::candidateOf(planning.problem, *planned);
    simulation::StepResult step =
        simulation::simulate(planning.problem, candidate, "train", costs);
    if ((*found)->schedule)
      step.bound = decider.bound(*(*found)->schedule);
    appendTimes(**found, packed.bytes(candidate), step);
  }

  void appendTimes(const FoundPlan &found, int64_t arena,
                   const simulation::StepResult &step) {
    const RuleStep *best = nullptr;
    result.plans = {{"decided", step.total, schedule::toJSON(found.plan)}};
    for (const RuleStep &rule : found.rules) {
      if (!rule.total)
        continue;
      result.plans.push_back(
          {rule.name, *rule.total, schedule::toJSON(rule.plan)});
      if (!best || *rule.total < *best->total)
        best = &rule;
    }
    double decided = step.total.seconds(), bound = step.bound.seconds();
    appendFormat(result.text, "%10.1f %10.1f %7.4f %10s",
                 milliseconds(step.total), milliseconds(step.bound),
                 decided / bound, formatBytes(arena).c_str());
    if (!best) {
      result.text += "  no rule fits\n";
      return;
    }
    std::optional<Duration> block = found.rules.front().total;
    appendFormat(result.text, " %9s %7.3f  %s\n",
                 block ? format("%.3f", block->seconds() / decided).c_str()
                       : "no",
                 best->total->seconds() / decided, best->name.c_str());
    result.slower += *best->total < step.total;
  }

  const Planning &planning;
  schedule::PackedArena packed;
  bool mayKeep;
  Comparison result;
  bool isGood = true;
};

} // namespace

llvm::Expected<Comparison>
fsdp::comparePlans(ModuleOp module, const CompileOptions &options,
                   const std::vector<simulation::Costs> &costs,
                   const std::vector<int64_t> &budgets) {
  QuietPlanning quiet(module);
  llvm::Expected<std::unique_ptr<Planning>> planning =
      beginPlanning(module, options);
  if (!planning)
    return planning.takeError();
  Comparer comparer(**planning, decidesResharding(options));
  for (const simulation::Costs &one : costs)
    comparer.add(one, budgets);
  std::optional<Comparison> compared = comparer.take();
  if (!compared)
    return alreadyPrinted();
  return std::move(*compared);
}
