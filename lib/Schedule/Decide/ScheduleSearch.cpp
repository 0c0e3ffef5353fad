//===- ScheduleSearch.cpp - Which schedules are tried ---------------------===//
#include "ScheduleSearch.h"
#include "BucketChanges.h"
#include "fsdp/Support/ParallelFor.h"
#include <algorithm>
#include <functional>

using namespace fsdp;
using namespace fsdp::problem;

namespace {

class Search {
public:
  Search(const ScheduleDecider &decider, int64_t budget, size_t ops)
      : decider(decider), transfers(decider.transfers()), budget(budget),
        left(std::clamp<size_t>(kOpsTried / std::max<size_t>(ops, 1), kLeast,
                                kMost)) {}

  /// `known`, if any, is where it begins, too.
  std::optional<DecidedSchedule> run(const DecidedSchedule *known) {
    begin(known);
    if (best && !transfers.units.empty()) {
      improve();
      // In addition: where they lead to nothing, nothing is lost.
      left += kTapersTried;
      if (searchTapers())
        improve();
      finish();
    }
    return std::move(best);
  }

  std::optional<DecidedSchedule> runShort(const DecidedSchedule *known) {
    begin(known);
    if (best && !transfers.units.empty()) {
      left /= 2;
      improve();
      finish();
    }
    return std::move(best);
  }

  std::optional<DecidedSchedule> runRoughly() {
    searchBroadly();
    return std::move(best);
  }

private:
  static constexpr size_t kOpsTried = 8'000'000, kLeast = 150, kMost = 2500,
                          kTapersTried = 250, kTriesOfAThread = 2;

  /// Of `count` changes, what number i makes of the best so far; nothing where
  /// it changes nothing.
  using ChangeAt = std::function<std::optional<CommunicationChoice>(size_t)>;

  /// Tries the changes one after another and calls `onBetter` with each whose
  /// schedule is the fastest so far; of equally fast ones the first is, or the
  /// one with fewer bytes. True if there was one. `than` is the best so far.
  ///
  /// Threads try several at once, as if nothing were better. Those after one
  /// that is are tried anew, so that all is found as by one thread.
  bool tryChanges(size_t count, const ChangeAt &changeAt,
                  std::optional<DecidedSchedule> &than,
                  const std::function<void(size_t)> &onBetter = {}) {
    auto atOnce = static_cast<size_t>(decider.threads());
    if (atOnce > 1)
      atOnce *= kTriesOfAThread;
    bool isBetter = false;
    for (size_t next = 0; next < count && left > 0;) {
      std::vector<size_t> numbers;
      std::vector<CommunicationChoice> choices;
      for (; next < count && numbers.size() < std::min(atOnce, left); ++next)
        if (std::optional<CommunicationChoice> choice = changeAt(next)) {
          numbers.push_back(next);
          choices.push_back(std::move(*choice));
        }
      std::vector<std::optional<DecidedSchedule>> tried(numbers.size());
      parallelFor(numbers.size(), decider.threads(), [&](size_t i) {
        tried[i] = decider.decideFaster(budget, choices[i], than);
      });
      auto better = std::find_if(tried.begin(), tried.end(),
                                 [](const auto &one) { return one; });
      auto at = static_cast<size_t>(better - tried.begin());
      if (better == tried.end()) {
        left -= tried.size();
        continue;
      }
      left -= at + 1;
      than = std::move(*better);
      isBetter = true;
      next = numbers[at] + 1;
      if (onBetter)
        onBetter(numbers[at]);
    }
    return isBetter;
  }

  void begin(const DecidedSchedule *known) {
    searchBroadly();
    if (known)
      keepFaster(decider.decide(budget, withoutPlaces(known->communication)));
  }

  void finish() {
    if (isSmall())
      tryEverything();
    best = decider.refine(std::move(*best), budget);
  }

  void keepFaster(std::optional<DecidedSchedule> tried) {
    if (tried && (!best || tried->total < best->total ||
                  (tried->total == best->total && tried->bytes < best->bytes)))
      best = std::move(tried);
  }

  void searchBroadly() {
    if (transfers.units.empty()) {
      best = decider.decide(budget, choiceOf(transfers, {}));
      return;
    }
    tryRules();
    searchFamily();
    keepFaster(std::move(ofFamily));
  }

  /// Whatever a rule takes in more bytes: none is missed.
  void tryRules() {
    const std::vector<NamedChoice> &rules = decider.rules();
    std::vector<std::optional<DecidedSchedule>> tried(
        std::min(rules.size(), left));
    left -= tried.size();
    parallelFor(tried.size(), decider.threads(), [&](size_t i) {
      tried[i] = decider.decide(budget, rules[i].choice);
    });
    for (std::optional<DecidedSchedule> &one : tried)
      keepFaster(std::move(one));
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
        isBetter |= tryFamily(
            family, values.size(),
            [&](BucketFamily &other, size_t i) { other.*member = values[i]; });
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

  /// `set` gives a family the property number i of `count`.
  bool tryFamily(BucketFamily &family, size_t count,
                 const std::function<void(BucketFamily &, size_t)> &set) {
    return tryChanges(
        count,
        [&](size_t i) {
          BucketFamily other = family;
          set(other, i);
          return choiceOf(transfers, other);
        },
        ofFamily, [&](size_t i) { set(family, i); });
  }

  bool trySizes(BucketFamily &family, int BucketFamily::*size,
                BucketFamily::Ramps BucketFamily::*ramps) {
    std::vector<std::pair<int, BucketFamily::Ramps>> all;
    for (int blocks : {-2, 1, 2, 3, 4, 8, 16})
      for (auto end :
           {BucketFamily::Never, BucketFamily::AtEnd, BucketFamily::AtBothEnds})
        if (blocks > 1 || end == BucketFamily::Never)
          all.emplace_back(blocks, end);
    return tryFamily(family, all.size(), [&](BucketFamily &other, size_t i) {
      std::tie(other.*size, other.*ramps) = all[i];
    });
  }

  //===--- Buckets that shrink or grow ------------------------------------===//

  /// Where the link is busy all the time, a pass takes what nothing can hide at
  /// one of its ends: compute after the last gather, or before the first
  /// reduction. A short bucket there leaves little, and each bucket before or
  /// after it may be longer than the next by what compute takes less.
  bool searchTapers() {
    std::vector<std::pair<TransferKind, BucketTaper>> tapers;
    for (TransferKind kind :
         {TransferKind::Forward, TransferKind::Again, TransferKind::Reduce})
      for (uint32_t count : {2, 3, 4, 5, 6, 8, 12})
        for (double ratio : {0.5, 0.65, 0.8, 1.25, 1.5, 2.0})
          for (uint32_t distance : {1, 2})
            if (mayTaper(kind, count, ratio))
              tapers.push_back({kind, {count, ratio, distance}});
    return tryChanges(
        tapers.size(),
        [&](size_t i) {
          auto [kind, taper] = tapers[i];
          CommunicationChoice choice = best->communication;
          choice[kind] = taperedBuckets(transfers[kind], taper);
          return choice;
        },
        best);
  }

  bool mayTaper(TransferKind kind, uint32_t count, double ratio) const {
    bool shrinks = ratio < 1;
    return transfers[kind].size() >= count &&
           (kind != TransferKind::Forward || shrinks) &&
           (kind != TransferKind::Reduce || !shrinks);
  }

  //===--- Single changes -------------------------------------------------===//

  /// Tries each change of the best, and begins again after one that helps,
  /// where it was.
  void improve() {
    for (bool isBetter = true; isBetter && left > 0;) {
      isBetter = transfers.mayKeep && tryKept();
      isBetter |= tryBuckets(byExposure());
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

  bool tryKept() {
    return tryChanges(
        transfers.units.size(),
        [&](size_t unit) {
          CommunicationChoice choice = best->communication;
          choice.isKept[unit] = !choice.isKept[unit];
          return choice;
        },
        best);
  }

  bool tryBuckets(const std::vector<Exposed> &buckets) {
    static constexpr BucketChange kChanges[] = {
        mergeWithNext,    splitInHalves,  takeFromNext, giveToNext,
        takeHalfFromNext, giveHalfToNext, moveFurther,  moveNearer};
    static constexpr size_t kOfBucket = std::size(kChanges);
    return tryChanges(
        buckets.size() * kOfBucket,
        [&](size_t i) -> std::optional<CommunicationChoice> {
          auto [kind, number, time] = buckets[i / kOfBucket];
          CommunicationChoice choice = best->communication;
          if (number < choice[kind].size() &&
              kChanges[i % kOfBucket](choice[kind], number))
            return choice;
          return std::nullopt;
        },
        best);
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
    static constexpr uint32_t kDistances[] = {0, 1, 2, 8};
    static constexpr size_t kOfPartition = std::size(kDistances);
    auto size = static_cast<uint32_t>(transfers[kind].size());
    size_t count = size == 0 ? 0 : (size_t(1) << (size - 1)) * kOfPartition;
    left = std::max(left, count);
    return tryChanges(
        count,
        [&](size_t number) {
          size_t ends = number / kOfPartition;
          uint32_t distance = kDistances[number % kOfPartition];
          CommunicationChoice choice = best->communication;
          for (size_t unit = 0; unit < units; ++unit)
            choice.isKept[unit] = (kept >> unit & 1) != 0;
          choice[kind] = {{1, distance}};
          for (uint32_t i = 0; i + 1 < size; ++i)
            if ((ends >> i & 1) != 0)
              choice[kind].push_back({1, distance});
            else
              ++choice[kind].back().count;
          return choice;
        },
        best);
  }

  static constexpr size_t kFewTransfers = 8, kFewUnits = 4;
  static constexpr uint32_t kKeptParts = 8;

  const ScheduleDecider &decider;
  const Transfers &transfers;
  const int64_t budget;
  size_t left; // schedules to try
  std::optional<DecidedSchedule> best, ofFamily;
};

} // namespace

std::optional<DecidedSchedule>
fsdp::problem::searchSchedules(const ScheduleDecider &decider, int64_t budget,
                               size_t ops) {
  return Search(decider, budget, ops).run(nullptr);
}

std::optional<DecidedSchedule>
fsdp::problem::searchAgain(const ScheduleDecider &decider, int64_t budget,
                           size_t ops, const DecidedSchedule *known) {
  Search search(decider, budget, ops);
  return decider.isLarge() ? search.runShort(known) : search.run(known);
}

std::optional<DecidedSchedule>
fsdp::problem::searchRoughly(const ScheduleDecider &decider, int64_t budget,
                             size_t ops) {
  return Search(decider, budget, ops).runRoughly();
}
