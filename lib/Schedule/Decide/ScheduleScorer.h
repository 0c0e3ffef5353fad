//===- ScheduleScorer.h - What a candidate takes and needs ------*- C++ -*-===//
#ifndef FSDP_LIB_SCHEDULE_DECIDE_SCHEDULESCORER_H
#define FSDP_LIB_SCHEDULE_DECIDE_SCHEDULESCORER_H

#include "fsdp/Schedule/ProblemEvaluator.h"
#include "fsdp/Simulation/Simulate.h"
#include "fsdp/Support/LeasePool.h"

namespace fsdp::problem {

/// Simulates candidates of one problem, and keeps its memory.
class ScheduleScorer {
public:
  /// Of the step `step`; `trained` is the program whose order and times are
  /// asked for. Problem and costs outlive it.
  ScheduleScorer(const Problem &problem, const simulation::Costs &costs,
                 std::string_view step, size_t trained)
      : problem(problem), model(costs.model), step(problem.find(step)),
        trained(trained), slowdowns(costs.model), evaluator(problem),
        durations(problem, costs) {}

  /// False where the decisions cannot be applied.
  bool run(const Candidate &candidate) { return run(candidate, true); }
  /// Of the programs of the step alone: bytes() is what these need.
  bool runStep(const Candidate &candidate) { return run(candidate, false); }

  Duration total() const { return sum; }
  /// As Decided::bytes.
  int64_t bytes() const { return least; }

  // Of the trained program, under the last candidate.
  const Sequence &sequence() const { return *order; }
  const simulation::Timeline &timeline() const { return times; }
  const Live &live() const { return *alive; }
  int64_t runs() const { return runsOf(problem.programs[trained].name); }
  /// Its collectives on the compute stream.
  Duration held();
  /// Of the other programs of the step.
  Duration boundOfOthers() const { return others; }

private:
  bool run(const Candidate &candidate, bool all);
  int64_t runsOf(Id program) const;

  const Problem &problem;
  const CostModel &model;
  const Id step;
  const size_t trained;
  simulation::Slowdowns slowdowns;
  Evaluator evaluator;
  simulation::StepDurations durations;
  std::vector<simulation::Activity> activities;
  Duration sum, others;
  int64_t least = 0;
  const Sequence *order = nullptr;
  const Live *alive = nullptr;
  simulation::Timeline times;
};

using ScorerPool = LeasePool<ScheduleScorer>;

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_DECIDE_SCHEDULESCORER_H
