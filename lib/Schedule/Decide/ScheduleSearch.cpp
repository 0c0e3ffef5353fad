//===- ScheduleSearch.cpp - Which schedules are tried ---------------------===//
#include "ScheduleSearch.h"
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
      attempt(rule.choice);
    searchFamily();
    if (best)
      improve();
    return std::move(best);
  }

private:
  static constexpr size_t kOpsTried = 6'000'000, kLeast = 150, kMost = 2500;

  /// True if it is the fastest so far; of equally fast ones the first, or the
  /// one with fewer bytes.
  bool attempt(const CommunicationChoice &choice) {
    if (left == 0)
      return false;
    --left;
    std::optional<DecidedSchedule> tried = decider.decide(budget, choice);
    if (!tried ||
        (best && (best->total < tried->total || (best->total == tried->total &&
                                                 best->bytes <= tried->bytes))))
      return false;
    best = std::move(tried);
    return true;
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
          if (attempt(choiceOf(transfers, other))) {
            family = other;
            isBetter = true;
          }
        }
      };
      over(&BucketFamily::kept, kept);
      over(&BucketFamily::keptAt,
           std::vector{BucketFamily::Last, BucketFamily::First,
                       BucketFamily::Spread});
      over(&BucketFamily::gather, std::vector{-2, 1, 2, 3, 4, 8});
      over(&BucketFamily::prefetch,
           std::vector<uint32_t>{0, 1, 2, 3, 4, 8, 32});
      over(&BucketFamily::reduce, std::vector{-2, 1, 2, 3, 4, 8});
      over(&BucketFamily::defer, std::vector<uint32_t>{0, 1, 2, 4, 8, 32});
    }
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
      for (TransferKind kind :
           {TransferKind::Forward, TransferKind::Again, TransferKind::Reduce})
        for (size_t i = 0; i < best->communication[kind].size() && left > 0;
             ++i)
          isBetter |= tryBucket(kind, i);
    }
  }

  bool tryKept(size_t unit) {
    CommunicationChoice choice = best->communication;
    choice.isKept[unit] = !choice.isKept[unit];
    return attempt(choice);
  }

  bool tryBucket(TransferKind kind, size_t i) {
    bool isBetter = false;
    auto with = [&](auto change) {
      CommunicationChoice choice = best->communication;
      if (i < choice[kind].size() && change(choice[kind]))
        isBetter |= attempt(choice);
    };
    using Buckets = std::vector<TransferBucket>;
    with([&](Buckets &all) { return merge(all, i); });
    with([&](Buckets &all) { return split(all, i, all[i].count / 2); });
    with([&](Buckets &all) { return shift(all, i, 1); });
    with([&](Buckets &all) { return shift(all, i, -1); });
    with([&](Buckets &all) { return ++all[i].distance <= kFarthest; });
    with([&](Buckets &all) { return all[i].distance-- > 0; });
    return isBetter;
  }

  static bool merge(std::vector<TransferBucket> &all, size_t i) {
    if (i + 1 == all.size())
      return false;
    all[i].count += all[i + 1].count;
    all.erase(all.begin() + static_cast<ptrdiff_t>(i) + 1);
    return true;
  }

  static bool split(std::vector<TransferBucket> &all, size_t i,
                    uint32_t first) {
    if (first == 0 || first == all[i].count)
      return false;
    TransferBucket second = all[i];
    second.count -= first;
    all[i].count = first;
    all.insert(all.begin() + static_cast<ptrdiff_t>(i) + 1, second);
    return true;
  }

  /// Moves the end of bucket `i` by a transfer.
  static bool shift(std::vector<TransferBucket> &all, size_t i, int by) {
    if (i + 1 == all.size() || (by > 0 ? all[i + 1] : all[i]).count == 1)
      return false;
    all[i].count += static_cast<uint32_t>(by);
    all[i + 1].count -= static_cast<uint32_t>(by);
    return true;
  }

  static constexpr uint32_t kKeptParts = 8, kFarthest = 32;

  ScheduleDecider &decider;
  const Transfers &transfers;
  const int64_t budget;
  size_t left; // schedules to try
  std::optional<DecidedSchedule> best;
};

} // namespace

std::optional<DecidedSchedule>
fsdp::problem::searchSchedules(ScheduleDecider &decider, int64_t budget,
                               size_t ops) {
  return Search(decider, budget, ops).run();
}
