//===- StepTimes.h - How long the steps of a sequence compute ---*- C++ -*-===//
#ifndef FSDP_SCHEDULE_STEPTIMES_H
#define FSDP_SCHEDULE_STEPTIMES_H

#include "fsdp/Machine/CostModel.h"
#include "fsdp/Schedule/RecomputeOptions.h"

namespace fsdp::problem {

/// Products of matrices by the sizes that follow from flops and bytes of an op,
/// attention by half its flops (causal), all else by the bytes of the step's
/// buffers; each kernel's launch besides. A problem outlives it.
StepDuration stepTimes(const Problem &problem, const Program &program,
                       const CostModel &cost);

} // namespace fsdp::problem

#endif // FSDP_SCHEDULE_STEPTIMES_H
