//===- ScheduleSearch.h - Which schedules are tried -------------*- C++ -*-===//
#ifndef FSDP_LIB_SCHEDULE_DECIDE_SCHEDULESEARCH_H
#define FSDP_LIB_SCHEDULE_DECIDE_SCHEDULESEARCH_H

#include "fsdp/Schedule/ScheduleDecider.h"

namespace fsdp::problem {

/// The fastest that is found in `budget` bytes. `ops`, of all programs, says
/// how long it takes to try one, and so how many are tried.
std::optional<DecidedSchedule> searchSchedules(const ScheduleDecider &decider,
                                               int64_t budget, size_t ops);

/// In less time, where `known` was found in about as many bytes.
std::optional<DecidedSchedule> searchNear(const ScheduleDecider &decider,
                                          const DecidedSchedule &known,
                                          int64_t budget, size_t ops);

/// Of its known rules and its family alone.
std::optional<DecidedSchedule> searchRoughly(const ScheduleDecider &decider,
                                             int64_t budget, size_t ops);

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_DECIDE_SCHEDULESEARCH_H
