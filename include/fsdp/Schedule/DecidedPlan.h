//===- DecidedPlan.h - Decisions of a solver as a plan ----------*- C++ -*-===//
#ifndef FSDP_SCHEDULE_DECIDEDPLAN_H
#define FSDP_SCHEDULE_DECIDEDPLAN_H

#include "fsdp/Schedule/Plan.h"
#include "fsdp/Schedule/RecomputeOptions.h"

namespace fsdp::schedule {

/// Rules that compute again what `choice` does, the option of each block; one
/// for all ops of the same blocks, which a glob "layers.{0,1,2}" names.
Plan toPlan(const problem::Problem &problem,
            const problem::RecomputeOptions &options,
            const std::vector<uint32_t> &choice);

} // namespace fsdp::schedule

#endif // FSDP_SCHEDULE_DECIDEDPLAN_H
