//===- ScheduleDecider.cpp - The fastest step in a budget -----------------===//
#include "fsdp/Schedule/ScheduleDecider.h"
#include "ScheduleSearch.h"
#include "fsdp/Schedule/ProblemEvaluator.h"
#include "fsdp/Simulation/Simulate.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

/// Simulates candidates.
struct ScheduleDecider::Scorer {
  Scorer(const Problem &problem, const simulation::Costs &costs,
         std::string_view step)
      : problem(problem), model(costs.model), step(problem.find(step)),
        slowdowns(costs.model), evaluator(problem), durations(problem, costs) {}

  /// False where the decisions cannot be applied.
  bool run(const Candidate &candidate) {
    std::vector<int64_t> peaks;
    total = {};
    for (size_t i = 0; i < problem.programs.size(); ++i) {
      const Sequence &sequence = evaluator.order(candidate, i);
      if (!sequence.refusal.empty())
        return false;
      peaks.push_back(evaluator.live(i).peak);
      if (int64_t times = runsOf(problem.programs[i].name)) {
        simulation::findActivities(sequence, i, model, durations, activities);
        total += simulation::run(activities, slowdowns).total * times;
      }
    }
    std::vector<int64_t> bounds = lowerBounds(problem, peaks);
    bytes = *std::max_element(bounds.begin(), bounds.end());
    return true;
  }

  int64_t runsOf(Id program) const {
    int64_t times = 0;
    for (const StepRun &one : problem.steps)
      if (one.step == step && one.program == program)
        times += one.times;
    return times;
  }

  const Problem &problem;
  const CostModel &model;
  const Id step;
  simulation::Slowdowns slowdowns;
  Evaluator evaluator;
  simulation::StepDurations durations;
  std::vector<simulation::Activity> activities;
  Duration total;
  int64_t bytes = 0;
};

ScheduleDecider::ScheduleDecider(const Problem &problem, Candidate given,
                                 const simulation::Costs &costs,
                                 std::string_view step, bool mayKeep)
    : problem(problem), base(std::move(given)),
      recomputation(problem, base, costs.model),
      moved(transfersOf(problem, base, recomputation.options().blocks.program,
                        mayKeep)),
      known(knownRules(problem, base, moved, costs)),
      scorer(std::make_unique<Scorer>(problem, costs, step)) {}

ScheduleDecider::~ScheduleDecider() = default;

std::optional<DecidedSchedule>
ScheduleDecider::decide(int64_t budget, const CommunicationChoice &choice) {
  DecidedSchedule found;
  found.communication = choice;
  Candidate communicates = withCommunication(base, moved, choice);
  int64_t room = recomputation.roomIn(budget);
  // What stays gathered, and what is in flight, needs bytes too. Each round
  // takes off what the last one had too much.
  while (std::optional<std::vector<uint32_t>> chosen =
             recomputation.choose(room)) {
    found.choice = std::move(*chosen);
    found.candidate = withRecomputation(problem, communicates,
                                        recomputation.options(), found.choice);
    if (!scorer->run(found.candidate))
      return std::nullopt;
    found.total = scorer->total;
    found.bytes = scorer->bytes;
    if (found.bytes <= budget)
      return found;
    room -= found.bytes - budget;
  }
  return std::nullopt;
}

std::optional<DecidedSchedule> ScheduleDecider::decide(int64_t budget) {
  size_t ops = 0;
  for (const Program &program : problem.programs)
    ops += program.ops.size();
  return searchSchedules(*this, budget, ops);
}
