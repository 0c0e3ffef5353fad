//===- ExplainSchedule.h - Why buckets are as they are ----------*- C++ -*-===//
#ifndef FSDP_SCHEDULE_EXPLAINSCHEDULE_H
#define FSDP_SCHEDULE_EXPLAINSCHEDULE_H

#include "fsdp/Schedule/ScheduleDecider.h"

namespace fsdp::problem {

/// A bucket of a decided schedule, in words.
struct ExplainedBucket {
  std::string name; ///< "gather layers.3", "reduce layers.0 to layers.3".
  Duration takes;
  Duration exposed; ///< How long compute waits for it.
  /// What computes while it travels: "bwd layers.4 to layers.3"; "nothing".
  std::string beside;
  /// What the step would take with one change, each with the cheapest
  /// recomputation; nothing where that does not fit.
  struct Change {
    std::string what; ///< "with the next", "in halves".
    std::optional<Duration> total;
  };
  std::vector<Change> changes;
};

/// All buckets of `found`, those first for which compute waits longest; of the
/// first `most` what changes would do in `budget` bytes.
std::vector<ExplainedBucket> explainBuckets(ScheduleDecider &decider,
                                            const DecidedSchedule &found,
                                            int64_t budget, size_t most);

} // namespace fsdp::problem

#endif // FSDP_SCHEDULE_EXPLAINSCHEDULE_H
