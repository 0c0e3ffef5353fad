//===- Simulate.h - A step of a problem on a machine ------------*- C++ -*-===//
//
// The programs of a step run one after another, each as often as the step says.
// Each begins when the one before has left all streams idle.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SIMULATION_SIMULATE_H
#define FSDP_SIMULATION_SIMULATE_H

#include "fsdp/Schedule/ProblemLive.h"
#include "fsdp/Simulation/Durations.h"
#include "fsdp/Simulation/StreamTimeline.h"

namespace fsdp::simulation {

/// What the streams do for `sequence` of `program`: an activity for each step.
std::vector<Activity> activitiesOf(const problem::Problem &problem,
                                   const problem::Program &program,
                                   const problem::Sequence &sequence,
                                   const Costs &costs);

/// The same, with durations that are known; into `activities`.
void findActivities(const problem::Sequence &sequence, size_t program,
                    const CostModel &model, StepDurations &durations,
                    std::vector<Activity> &activities);

/// Bytes alive at the peak of a program, by what they are for.
struct PeakMemory {
  int64_t parameters = 0; ///< And gradients, optimizer state, inputs: all that
                          ///< is there before and after a step.
  int64_t outputs = 0;    ///< Of one program alone, kept for who reads them.
  int64_t activations = 0, gathered = 0, gradients = 0, workspaces = 0;
  int64_t total() const {
    return parameters + outputs + activations + gathered + gradients +
           workspaces;
  }
};

struct ProgramResult {
  problem::Id program = 0; ///< Its number.
  int64_t times = 1;
  problem::Sequence sequence;
  Timeline timeline;
  PeakMemory peak;
};

struct StepResult {
  std::vector<ProgramResult> programs; ///< In order.
  Duration total;
  Duration bound; ///< What no order of the same work is faster than.
  Duration compute, link, exposed;
  PeakMemory peak; ///< Of the program with the largest.

  /// By the operations of the model, without what is computed a second time,
  /// of one rank; attention counts all of its scores.
  double modelFlops = 0;
  int64_t tokens = 0, ranks = 1;

  double tokensPerSecond() const; ///< Of all ranks.
  double flopsPerSecond() const;  ///< Of one rank, by modelFlops.
};

/// The step `name` of `problem` under `candidate`. Throws fsdp::Error where the
/// problem has no such step, where the decisions cannot be applied, and where
/// the machine says nothing about a group.
StepResult simulate(const problem::Problem &problem,
                    const problem::Candidate &candidate, std::string_view name,
                    const Costs &costs);

/// The peak of the matmuls' type that most of the step's operations have.
double peakFlopsOf(const problem::Problem &problem, const Machine &machine);

} // namespace fsdp::simulation

#endif // FSDP_SIMULATION_SIMULATE_H
