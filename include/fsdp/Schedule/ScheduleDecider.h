//===- ScheduleDecider.h - The fastest step in a budget ---------*- C++ -*-===//
//
// Communication and recomputation together. For what is decided about
// communication, labels find the cheapest recomputation in the memory that is
// left (RecomputeDecider.h), and the simulation says what the step takes. The
// search begins with the rules that others use, goes on in a family of buckets,
// windows and kept blocks and with buckets that shrink or grow, and ends with
// single merges, splits, shifts and windows. The same problem, machine and
// budget give the same schedule everywhere: time is whole picoseconds, and the
// search counts schedules, not seconds. It tries several at once on the threads
// of this computer; what it finds does not depend on how many.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_SCHEDULEDECIDER_H
#define FSDP_SCHEDULE_SCHEDULEDECIDER_H

#include "fsdp/Schedule/CommunicationRules.h"
#include "fsdp/Schedule/RecomputeDecider.h"
#include "fsdp/Simulation/StreamTimeline.h"
#include "fsdp/Support/LeasePool.h"
#include <array>
#include <memory>

namespace fsdp::problem {

struct DecidedSchedule {
  CommunicationChoice communication;
  std::vector<uint32_t> choice; ///< Of blocks: RecomputeOptions::sets.
  Candidate candidate;          ///< Both.
  Duration total;               ///< Of the simulated step.
  int64_t bytes = 0;            ///< As Decided::bytes.
  /// What the labels of recomputation had (RecomputeDecider::choose).
  int64_t room = 0;
};

/// What a candidate's step takes, simulated, and its programs need.
struct ScheduleScore {
  Duration total;
  int64_t bytes = 0; ///< As Decided::bytes.
};

/// How a bucket travels.
struct BucketTravel {
  bool isMade = false;     ///< It has a transfer that is not left out.
  Duration takes, exposed; ///< exposed: compute waits for it.
  std::string beside;      ///< ExplainedBucket::beside, where it is asked for.
};
/// Of the buckets of a choice, by TransferKind.
using BucketTravels = std::array<std::vector<BucketTravel>, kTransferKinds>;

class ScheduleScorer;

/// What is const may be called by several threads at once.
class ScheduleDecider {
public:
  /// Problem and costs outlive this; `step` is a name. Without `mayKeep`
  /// parameters stay gathered as `base` says. Throws as RecomputeDecider.
  /// `threads` as threads(); 0: all there are, 16 at most, or one.
  ScheduleDecider(const Problem &problem, Candidate base,
                  const simulation::Costs &costs, std::string_view step,
                  bool mayKeep = true, int threads = 0);
  ~ScheduleDecider();

  /// The fastest found in `budget` bytes; nothing if none fits.
  std::optional<DecidedSchedule> decide(int64_t budget) const;
  /// Whether a search takes seconds, so that few are worth their time.
  bool isLarge() const { return ops >= kLargeOps; }
  /// As decide() after another search, of a large problem with half as many
  /// single changes and no tapers. It also begins with the communication of
  /// `known`.
  std::optional<DecidedSchedule>
  decideAgain(int64_t budget, const DecidedSchedule *known = nullptr) const;
  /// The fastest of the known rules and the family, found in a fraction of the
  /// time. What decide() does beyond that wins a few percent.
  std::optional<DecidedSchedule> decideRoughly(int64_t budget) const;
  /// With that communication.
  std::optional<DecidedSchedule>
  decide(int64_t budget, const CommunicationChoice &choice) const;
  /// The same, or nothing where that is no faster than `best`, or as fast and
  /// needs as many bytes. Nothing too where it is no faster in more bytes.
  std::optional<DecidedSchedule>
  decideFaster(int64_t budget, const CommunicationChoice &choice,
               const std::optional<DecidedSchedule> &best) const;
  /// Of the known rules, with all that can be computed again, the one that
  /// needs the fewest bytes; nothing if none can be applied.
  std::optional<DecidedSchedule> least() const;
  /// What `candidate`, which others decided, takes and needs; nothing where it
  /// cannot be applied.
  std::optional<ScheduleScore> score(const Candidate &candidate) const;
  /// What the computation of `found` takes at least, whatever is decided about
  /// communication (lib/Schedule/Decide/ScheduleBound.h).
  Duration bound(const DecidedSchedule &found) const;
  /// How each bucket of `found` travels.
  BucketTravels travels(const DecidedSchedule &found,
                        bool saysBeside = false) const;
  /// With gathers that start as late, and reductions that are awaited as early
  /// as takes no time, where that needs fewer bytes; with these less is
  /// computed again. No slower than `found`.
  DecidedSchedule refine(DecidedSchedule found, int64_t budget) const;
  /// The communication of `found` where what is computed again leaves `fewer`
  /// bytes less; starts and awaits are found anew. Nothing if none fits.
  std::optional<DecidedSchedule> tighten(const DecidedSchedule &found,
                                         int64_t fewer) const;

  /// That communication, with late places, where of each block that option is
  /// computed again (RecomputeOptions::sets). Nothing where that cannot be
  /// applied, is no faster than `best`, or does not fit into `budget` bytes.
  std::optional<DecidedSchedule>
  withOptions(std::vector<uint32_t> options, const CommunicationChoice &choice,
              int64_t budget, std::optional<Duration> best) const;

  /// What is decided before.
  const Candidate &given() const { return base; }
  const RecomputeDecider &recompute() const { return recomputation; }
  const Transfers &transfers() const { return moved; }
  /// That of the rule of this compiler, or the nearest to `given`.
  const CommunicationChoice &byRule() const { return known.front().choice; }
  /// What others do (knownRules).
  const std::vector<NamedChoice> &rules() const { return known; }
  /// On which schedules are worth trying at once: one where each is tried in
  /// less time than a thread takes to start.
  int threads() const { return threadCount; }

private:
  static constexpr int kRefinements = 4;
  static constexpr size_t kLargeOps = 8000;
  static constexpr int64_t kLeastPart = 2000;

  /// What labels choose in `room` bytes.
  std::optional<DecidedSchedule>
  decideIn(int64_t room, const CommunicationChoice &choice) const;
  std::optional<DecidedSchedule> apply(std::vector<uint32_t> options,
                                       const CommunicationChoice &choice) const;
  /// What fits into `budget`, from `room` on, by the programs of the step.
  std::optional<DecidedSchedule>
  decideFrom(int64_t room, int64_t budget, const CommunicationChoice &choice,
             const std::optional<DecidedSchedule> &best) const;
  DecidedSchedule placeLate(DecidedSchedule found) const;

  const Problem &problem;
  const simulation::Costs costs;
  const size_t ops; // of all programs
  const int threadCount;
  Candidate base;
  RecomputeDecider recomputation;
  Transfers moved;
  std::vector<NamedChoice> known;
  std::unique_ptr<LeasePool<ScheduleScorer>> scorers; // they keep no result
};

} // namespace fsdp::problem

#endif // FSDP_SCHEDULE_SCHEDULEDECIDER_H
