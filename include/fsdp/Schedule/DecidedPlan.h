//===- DecidedPlan.h - Decisions of a solver as a plan ----------*- C++ -*-===//
#ifndef FSDP_SCHEDULE_DECIDEDPLAN_H
#define FSDP_SCHEDULE_DECIDEDPLAN_H

#include "fsdp/Schedule/Plan.h"
#include "fsdp/Schedule/ProblemOrder.h"

namespace fsdp::schedule {

/// Rules that turn what `base` decides into `candidate`: one for all ops about
/// which the same changes. A glob "layers.{0,1,2}" names those of several
/// blocks.
Plan toPlan(const problem::Problem &problem, const problem::Candidate &base,
            const problem::Candidate &candidate);

} // namespace fsdp::schedule

#endif // FSDP_SCHEDULE_DECIDEDPLAN_H
