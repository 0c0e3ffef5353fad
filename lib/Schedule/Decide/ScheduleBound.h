//===- ScheduleBound.h - What no communication is faster than ---*- C++ -*-===//
#ifndef FSDP_LIB_SCHEDULE_DECIDE_SCHEDULEBOUND_H
#define FSDP_LIB_SCHEDULE_DECIDE_SCHEDULEBOUND_H

#include "TransferTimes.h"

namespace fsdp::problem {

/// What one run of the program of `times` takes at least, whatever is decided
/// about its transfers, where it computes for `compute` and has collectives for
/// `held` on the compute stream. The longer of
///
///   - that, with the gather of the first parameter and the reduction of the
///     last, which nothing hides, and the least by which the others slow it;
///   - all gathers of the forward pass, what computes until the first
///     reduction, all reductions and what computes behind them.
///
/// Collectives count as if all of a pass travelled as one, and no parameter is
/// gathered twice.
Duration boundOf(const TransferTimes &times, Duration compute, Duration held,
                 const CostModel &model);

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_DECIDE_SCHEDULEBOUND_H
