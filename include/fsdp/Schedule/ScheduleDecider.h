//===- ScheduleDecider.h - The fastest step in a budget ---------*- C++ -*-===//
//
// Communication and recomputation together. For what is decided about
// communication, labels find the cheapest recomputation in the memory that is
// left (RecomputeDecider.h), and the simulation says what the step takes. The
// search begins with the rules that others use, goes on in a family of buckets,
// windows and kept blocks, and ends with single merges, splits, shifts and
// windows. The same problem, machine and budget give the same schedule
// everywhere: time is whole picoseconds, and the search counts schedules, not
// seconds.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_SCHEDULEDECIDER_H
#define FSDP_SCHEDULE_SCHEDULEDECIDER_H

#include "fsdp/Schedule/CommunicationRules.h"
#include "fsdp/Schedule/RecomputeDecider.h"
#include <memory>

namespace fsdp::problem {

struct DecidedSchedule {
  CommunicationChoice communication;
  std::vector<uint32_t> choice; ///< Of blocks: RecomputeOptions::sets.
  Candidate candidate;          ///< Both.
  Duration total;               ///< Of the simulated step.
  int64_t bytes = 0;            ///< As Decided::bytes.
};

class ScheduleDecider {
public:
  /// Problem and costs outlive this; `step` is a name. Without `mayKeep`
  /// parameters stay gathered as `base` says. Throws as RecomputeDecider.
  ScheduleDecider(const Problem &problem, Candidate base,
                  const simulation::Costs &costs, std::string_view step,
                  bool mayKeep = true);
  ~ScheduleDecider();

  /// The fastest found in `budget` bytes; nothing if none fits.
  std::optional<DecidedSchedule> decide(int64_t budget);
  /// With that communication.
  std::optional<DecidedSchedule> decide(int64_t budget,
                                        const CommunicationChoice &choice);

  /// What is decided before.
  const Candidate &given() const { return base; }
  const RecomputeDecider &recompute() const { return recomputation; }
  const Transfers &transfers() const { return moved; }
  /// That of the rule of this compiler, or the nearest to `given`.
  const CommunicationChoice &byRule() const { return known.front().choice; }
  /// What others do (knownRules).
  const std::vector<NamedChoice> &rules() const { return known; }

private:
  struct Scorer;

  const Problem &problem;
  Candidate base;
  RecomputeDecider recomputation;
  Transfers moved;
  std::vector<NamedChoice> known;
  std::unique_ptr<Scorer> scorer;
};

} // namespace fsdp::problem

#endif // FSDP_SCHEDULE_SCHEDULEDECIDER_H
