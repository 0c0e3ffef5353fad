//===- Durations.h - How long ops of a problem take -------------*- C++ -*-===//
//
// What an op, or a step of a sequence, takes by itself on a machine. A product
// and attention take what a library needs for them. Everything else takes what
// its bytes need: a fused kernel those of the tensors that it reads and
// writes, each once. Each kernel has its launch in addition.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SIMULATION_DURATIONS_H
#define FSDP_SIMULATION_DURATIONS_H

#include "fsdp/Machine/CostModel.h"
#include "fsdp/Schedule/ProblemOrder.h"
#include <optional>
#include <unordered_map>
#include <vector>

namespace fsdp::simulation {

/// The machine, and how sums over ranks are made there that are not the
/// library's; unset: as the problem says, in two levels where nodes are stated.
struct Costs {
  const CostModel &model;
  std::optional<Sums> sums = std::nullopt;
};

/// The nodes that a group lies in, each with `ranksPerNode` consecutive ranks.
/// Where its ranks do not fill nodes evenly, that of as many ranks on more
/// nodes.
GroupShape shapeOf(const problem::Problem &problem,
                   const problem::Collective &collective, int64_t ranksPerNode);

/// Of the collectives that travel together (of one key).
CollectiveCall callOf(const problem::Problem &problem,
                      const problem::Program &program,
                      const std::vector<problem::Member> &members,
                      const Costs &costs);

/// Of `op` as a kernel or a collective of its own; no time where it is no work.
Duration durationOf(const problem::Problem &problem,
                    const problem::Program &program, problem::Id op,
                    const Costs &costs);

/// Of a step of a sequence of `program`; an await takes none.
Duration durationOf(const problem::Problem &problem,
                    const problem::Program &program,
                    const problem::Sequence &sequence,
                    const problem::Step &step, const Costs &costs);

/// Of the steps of one problem, for those who simulate it many times: what
/// follows from an op, or from the collectives that travel together, is
/// computed once. Problem and costs outlive it.
class StepDurations {
public:
  StepDurations(const problem::Problem &problem, const Costs &costs);

  /// As durationOf(), of a sequence of program number `program`.
  Duration of(size_t program, const problem::Sequence &sequence,
              const problem::Step &step);

private:
  struct Hash {
    size_t operator()(const std::vector<problem::Id> &ops) const;
  };

  const problem::Problem &problem;
  const Costs &costs;
  struct Known {
    std::vector<std::optional<Duration>> ofOp;
    std::unordered_map<std::vector<problem::Id>, Duration, Hash> ofCollectives;
  };
  std::vector<Known> known; // by program
  std::vector<problem::Id> ops;
};

} // namespace fsdp::simulation

#endif // FSDP_SIMULATION_DURATIONS_H
