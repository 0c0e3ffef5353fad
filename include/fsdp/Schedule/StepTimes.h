//===- StepTimes.h - How long the steps of a sequence compute ---*- C++ -*-===//
#ifndef FSDP_SCHEDULE_STEPTIMES_H
#define FSDP_SCHEDULE_STEPTIMES_H

#include "fsdp/Machine/CostModel.h"
#include "fsdp/Schedule/ProblemLive.h"
#include <functional>

namespace fsdp::problem {

/// How long a step computes; a collective does not. For one thread.
using StepDuration = std::function<Duration(const Sequence &, const Step &)>;

/// Those of the simulation (Durations.h), of a program by its number; a
/// collective takes none. Problem and cost outlive it.
StepDuration stepTimes(const Problem &problem, size_t program,
                       const CostModel &cost);

} // namespace fsdp::problem

#endif // FSDP_SCHEDULE_STEPTIMES_H
