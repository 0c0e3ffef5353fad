//===- RecomputedValues.h - What a policy computes again --------*- C++ -*-===//
#ifndef FSDP_SCHEDULE_RECOMPUTEDVALUES_H
#define FSDP_SCHEDULE_RECOMPUTEDVALUES_H

#include "fsdp/Config/RecomputePolicy.h"
#include "fsdp/Schedule/Decisions.h"
#include "llvm/ADT/DenseSet.h"

namespace fsdp::schedule {

/// The points of `points` that `policy` computes again; none of them is a
/// parameter's collective. Throws fsdp::Error where an entry of a list matches
/// nothing; it names what can be matched.
llvm::DenseSet<dist::OriginAttr>
recomputedValues(const DecisionPoints &points, const RecomputePolicy &policy);

} // namespace fsdp::schedule

#endif // FSDP_SCHEDULE_RECOMPUTEDVALUES_H
