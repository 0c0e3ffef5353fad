//===- LatePlaces.h - Starts as late, awaits as early as may be -*- C++ -*-===//
//
// A gather that has been waiting for the link, or that is over long before its
// use, holds its buffer for nothing; so does a reduction that is over long
// before it is awaited. Where that is at the peak of memory, it is said by
// address when the gather starts and when the reduction is awaited.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_LIB_SCHEDULE_DECIDE_LATEPLACES_H
#define FSDP_LIB_SCHEDULE_DECIDE_LATEPLACES_H

#include "ScheduleScorer.h"
#include "fsdp/Schedule/ScheduleDecider.h"

namespace fsdp::problem {

/// `found` with such places in its buckets and its candidate: it takes no
/// longer, and needs as many bytes or fewer. `base` decides about all else than
/// communication, recomputation too.
DecidedSchedule withLatePlaces(const Problem &problem, const Candidate &base,
                               const Transfers &transfers,
                               DecidedSchedule found, ScheduleScorer &scorer);

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_DECIDE_LATEPLACES_H
