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

namespace fsdp::simulation {

/// The machine, and how sums over ranks are made there that are not the
/// library's.
struct Costs {
  const CostModel &model;
  Sums sums = Sums::Exact;
};

/// The nodes that a group lies in, each with `ranksPerNode` consecutive ranks.
/// Where its ranks do not fill nodes evenly, that of as many ranks on more
/// nodes.
GroupShape shapeOf(const problem::Problem &problem,
                   const problem::Collective &collective, int64_t ranksPerNode);

/// Of the collectives that travel together (of one key).
CollectiveCall callOf(const problem::Problem &problem,
                      const problem::Program &program,
                      const std::vector<problem::Id> &ops, const Costs &costs);

/// Of `op` as a kernel or a collective of its own; no time where it is no work.
Duration durationOf(const problem::Problem &problem,
                    const problem::Program &program, problem::Id op,
                    const Costs &costs);

/// Of a step of a sequence of `program`; an await takes none.
Duration durationOf(const problem::Problem &problem,
                    const problem::Program &program,
                    const problem::Sequence &sequence,
                    const problem::Step &step, const Costs &costs);

} // namespace fsdp::simulation

#endif // FSDP_SIMULATION_DURATIONS_H
