//===- ScheduleSearch.cpp - Which schedules are tried ---------------------===//
#include "ScheduleSearch.h"
#include "BucketChanges.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

namespace {

class Search {
public:
  Search(ScheduleDecider &decider, int64_t budget, size_t ops)
      : decider(decider), transfers(decider.transfers()), budget(budget),
        left(std::clamp<size_t>(kOpsTried / std::max<size_t>(ops, 1), kLeast,
                                kMost)) {}

  std::optional<DecidedSchedule> run() {
    if (transfers.units.empty())
      return decider.decide(budget, choiceOf(transfers, {}));
    for (const NamedChoice &rule : decider.rules())
      attemptRule(rule.choice);
    searchFamily();
    keepFaster(std::move(ofFamily));
    if (best) {
      improve();
      // In addition: where they lead to nothing, nothing is lost.
      left += kTapersTried;
      if (searchTapers())
        improve();
      if (isSmall())
        tryEverything();
      best = decider.refine(std::move(*best), budget);
    }
    return std::move(best);
  }

private:
  static constexpr size_t kOpsTried = 8'000'000, kLeast = 150, kMost = 2500,
                          kTapersTried = 250;

  /// True if it is the fastest so far; of equally fast ones the first, or the
  /// one with fewer bytes.
  bool attempt(const CommunicationChoice &choice) {
    return attempt(choice, best);
  }

  /// The same of those that `than` is the best of.
  bool attempt(const CommunicationChoice &choice,
               std::optional<DecidedSchedule> &than) {
    if (left == 0)
      return false;
    --left;
    std::optional<DecidedSchedule> tried =
        decider.decideFaster(budget, choice, than);
    if (!tried)
      return false;
    than = std::move(tried);
    return true;
  }

  void keepFaster(std::optional<DecidedSchedule> tried) {
    if (tried && (!best || tried->total < best->total ||
                  (tried->total == best->total && tried->bytes < best->bytes)))
      best = std::move(tried);
  }

  /// The same, whatever it takes in more bytes: no rule is missed.
  void attemptRule(const CommunicationChoice &choice) {
    if (left == 0)
      return;
    --left;
    keepFaster(decider.decide(budget, choice));
  }

  //===--- A family of buckets, windows and kept blocks -------------------===//

  /// One property after another, until no other value of any is faster.
  void searchFamily() {
    auto blocks = static_cast<uint32_t>(
        std::count(transfers.isBlock.begin(), transfers.isBlock.end(), true));
    std::vector<uint32_t> kept = {0};
    for (uint32_t part = 1; part <= kKeptParts; ++part)
      if (uint32_t count = blocks * part / kKeptParts; count > kept.back())
        kept.push_back(count);
    BucketFamily family;
    for (bool isBetter = true; isBetter && left > 0;) {
      isBetter = false;
      auto over = [&](auto member, const auto &values) {
        for (const auto &value : values) {
          BucketFamily other = family;
          other.*member = value;
          if (attempt(choiceOf(transfers, other), ofFamily)) {
            family = other;
            isBetter = true;
          }
        }
      };
      over(&BucketFamily::kept, kept);
      over(&BucketFamily::keptAt,
           std::vector{BucketFamily::Last, BucketFamily::First,
                       BucketFamily::Spread});
      isBetter |=
          trySizes(family, &BucketFamily::gather, &BucketFamily::gatherRamps);
      over(&BucketFamily::prefetch,
           std::vector<uint32_t>{0, 1, 2, 3, 4, 8, 32});
      isBetter |=
          trySizes(family, &BucketFamily::reduce, &BucketFamily::reduceRamps);
      over(&BucketFamily::defer, std::vector<uint32_t>{0, 1, 2, 4, 8, 32});
    }
  }

  bool trySizes(BucketFamily &family, int BucketFamily::*size,
                BucketFamily::Ramps BucketFamily::*ramps) {
    bool isBetter = false;
    for (int blocks : {-2, 1, 2, 3, 4, 8, 16})
      for (auto end : {BucketFamily::Never, BucketFamily::AtEnd,
                       BucketFamily::AtBothEnds}) {
        if (blocks <= 1 && end != BucketFamily::Never)
          continue;
        BucketFamily other = family;
        other.*size = blocks;
        other.*ramps = end;
        if (!attempt(choiceOf(transfers, other), ofFamily))
          continue;
        family = other;
        isBetter = true;
      }
    return isBetter;
  }

  //===--- Buckets that shrink or grow ------------------------------------===//

  /// Where the link is busy all the time, a pass takes what nothing can hide at
  /// one of its ends: compute after the last gather, or before the first
  /// reduction. A short bucket there leaves little, and each bucket before or
  /// after it may be longer than the next by what compute takes less.
  bool searchTapers() {
    bool isBetter = false;
    for (TransferKind kind :
         {TransferKind::Forward, TransferKind::Again, TransferKind::Reduce})
      for (uint32_t count : {2, 3, 4, 5, 6, 8, 12})
        for (double ratio : {0.5, 0.65, 0.8, 1.25, 1.5, 2.0})
          for (uint32_t distance : {1, 2})
            isBetter |= tryTaper(kind, {count, ratio, distance});
    return isBetter;
  }

  bool tryTaper(TransferKind kind, const BucketTaper &taper) {
    bool shrinks = taper.ratio < 1;
    if (transfers[kind].size() < taper.count ||
        (kind == TransferKind::Forward && !shrinks) ||
        (kind == TransferKind::Reduce && shrinks))
      return false;
    CommunicationChoice choice = best->communication;
    choice[kind] = taperedBuckets(transfers[kind], taper);
    return attempt(choice);
  }

  //===--- Single changes -------------------------------------------------===//

  /// Tries each change of the best, and begins again after one that helps,
  /// where it was.
  void improve() {
    for (bool isBetter = true; isBetter && left > 0;) {
      isBetter = false;
      for (size_t unit = 0;
           transfers.mayKeep && unit < transfers.units.size() && left > 0;
           ++unit)
        isBetter |= tryKept(unit);
      for (const Exposed &bucket : byExposure())
        if (left > 0)
          isBetter |= tryBucket(bucket.kind, bucket.number);
    }
  }

  struct Exposed {
    TransferKind kind = TransferKind::Forward;
    size_t number = 0;
    Duration time;
  };

  /// The buckets of the best, those first for which compute waits longest.
  std::vector<Exposed> byExposure() {
    std::vector<Exposed> all;
    BucketTravels travels = decider.travels(*best);
    for (TransferKind kind :
         {TransferKind::Forward, TransferKind::Again, TransferKind::Reduce})
      for (size_t i = 0; i < travels[int(kind)].size(); ++i)
        if (travels[int(kind)][i].isMade)
          all.push_back({kind, i, travels[int(kind)][i].exposed});
    std::stable_sort(
        all.begin(), all.end(),
        [](const Exposed &a, const Exposed &b) { return b.time < a.time; });
    return all;
  }

  bool tryKept(size_t unit) {
    CommunicationChoice choice = best->communication;
    choice.isKept[unit] = !choice.isKept[unit];
    return attempt(choice);
  }

  bool tryBucket(TransferKind kind, size_t i) {
    static constexpr BucketChange kChanges[] = {
        mergeWithNext,    splitInHalves,  takeFromNext, giveToNext,
        takeHalfFromNext, giveHalfToNext, moveFurther,  moveNearer};
    bool isBetter = false;
    for (BucketChange change : kChanges) {
      CommunicationChoice choice = best->communication;
      if (i < choice[kind].size() && change(choice[kind], i))
        isBetter |= attempt(choice);
    }
    return isBetter;
  }

  //===--- Few transfers --------------------------------------------------===//

  bool isSmall() const {
    for (const TransferList &list : transfers.lists)
      if (list.size() > kFewTransfers)
        return false;
    return transfers.units.size() <= kFewUnits || !transfers.mayKeep;
  }

  /// Each pass in every partition with every window, for whatever stays
  /// gathered, until nothing helps.
  void tryEverything() {
    for (bool isBetter = true; isBetter;) {
      isBetter = false;
      size_t units = transfers.mayKeep ? transfers.units.size() : 0;
      for (uint32_t kept = 0; kept < 1u << units; ++kept)
        for (TransferKind kind :
             {TransferKind::Forward, TransferKind::Again, TransferKind::Reduce})
          isBetter |= tryPass(kind, units, kept);
    }
  }

  bool tryPass(TransferKind kind, size_t units, uint32_t kept) {
    auto size = static_cast<uint32_t>(transfers[kind].size());
    bool isBetter = false;
    for (uint32_t ends = 0; size != 0 && ends < 1u << (size - 1); ++ends)
      for (uint32_t distance : {0, 1, 2, 8}) {
        CommunicationChoice choice = best->communication;
        for (size_t unit = 0; unit < units; ++unit)
          choice.isKept[unit] = (kept >> unit & 1) != 0;
        choice[kind] = {{1, distance}};
        for (uint32_t i = 0; i + 1 < size; ++i)
          if ((ends >> i & 1) != 0)
            choice[kind].push_back({1, distance});
          else
            ++choice[kind].back().count;
        left = std::max<size_t>(left, 1);
        isBetter |= attempt(choice);
      }
    return isBetter;
  }

  static constexpr size_t kFewTransfers = 8, kFewUnits = 4;
  static constexpr uint32_t kKeptParts = 8;

  ScheduleDecider &decider;
  const Transfers &transfers;
  const int64_t budget;
  size_t left; // schedules to try
  std::optional<DecidedSchedule> best, ofFamily;
};

} // namespace

std::optional<DecidedSchedule>
fsdp::problem::searchSchedules(ScheduleDecider &decider, int64_t budget,
                               size_t ops) {
  return Search(decider, budget, ops).run();
}
