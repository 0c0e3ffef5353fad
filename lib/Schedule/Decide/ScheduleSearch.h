//===- ScheduleSearch.h - Which schedules are tried -------------*- C++ -*-===//
#ifndef FSDP_LIB_SCHEDULE_DECIDE_SCHEDULESEARCH_H
#define FSDP_LIB_SCHEDULE_DECIDE_SCHEDULESEARCH_H

#include "fsdp/Schedule/ScheduleDecider.h"

namespace fsdp::problem {

/// The fastest that is found in `budget` bytes. `ops`, of all programs, says
/// how long it takes to try one, and so how many are tried.
std::optional<DecidedSchedule> searchSchedules(const ScheduleDecider &decider,
                                               int64_t budget, size_t ops);

/// After another search: ScheduleDecider::decideAgain.
std::optional<DecidedSchedule> searchAgain(const ScheduleDecider &decider,
                                           int64_t budget, size_t ops,
                                           const DecidedSchedule *known);

/// Of its known rules and its family alone.
std::optional<DecidedSchedule> searchRoughly(const ScheduleDecider &decider,
                                             int64_t budget, size_t ops);

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_DECIDE_SCHEDULESEARCH_H
