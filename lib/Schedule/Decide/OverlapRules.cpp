//===- OverlapRules.cpp - Rules that look at overlap ----------------------===//
//
// Both see one pass at a time: its transfers on a link of their own, beside the
// compute of the rule's order. They see neither what else the link carries nor
// memory nor that communication slows compute.
//
//===----------------------------------------------------------------------===//
#include "OverlapRules.h"
#include "fsdp/Schedule/CommunicationRules.h"
#include <algorithm>
#include <numeric>

using namespace fsdp;
using namespace fsdp::problem;

static constexpr int64_t kGB = 1'000'000'000;
static constexpr int64_t kLargestBucket = 2 * kGB;

namespace {

/// The buckets of a pass as they merge.
class PassBuckets {
public:
  PassBuckets(const TransferTimes &times, TransferKind kind)
      : times(times), kind(kind), size(times.transfers()[kind].size()) {
    for (Id i = 0; i < size; ++i)
      buckets.push_back({i, i + 1, i, times.travel(kind, i, i + 1)});
    exposedOf.resize(size);
    exposed = simulate();
  }

  /// Each gather starts at the wait of the one before.
  void startOneAhead() {
    for (Bucket &bucket : buckets)
      bucket.start = bucket.begin == 0 ? 0 : bucket.begin - 1;
    exposed = simulate();
  }

  /// Each gather starts at the first wait from which on no more than `bytes`
  /// are in flight and no more than `kernels` compute before its use.
  void startEarly(int64_t bytes, uint32_t kernels) {
    for (Bucket &bucket : buckets) {
      int64_t inFlight = times.bytes(kind, bucket.begin, bucket.end);
      uint32_t between = 0;
      for (bucket.start = bucket.begin; bucket.start > 0; --bucket.start) {
        Id before = bucket.start - 1;
        inFlight += times.bytes(kind, before, bucket.start);
        between += times.kernels(kind, before);
        if (inFlight > bytes || between > kernels)
          break;
      }
    }
    exposed = simulate();
  }

  size_t count() const { return buckets.size(); }
  /// How long compute waits for a transfer.
  Duration exposedAt(Id transfer) const { return exposedOf[transfer]; }

  /// The bucket that has a transfer.
  size_t bucketAt(Id transfer) const {
    auto at = std::upper_bound(
        buckets.begin(), buckets.end(), transfer,
        [](Id number, const Bucket &bucket) { return number < bucket.end; });
    return at - buckets.begin();
  }

  /// Joins a bucket and the next one; false where more is exposed then, or the
  /// bucket becomes too large.
  bool merge(size_t i) {
    if (i + 1 >= buckets.size() ||
        times.bytes(kind, buckets[i].begin, buckets[i + 1].end) >
            kLargestBucket)
      return false;
    std::vector<Bucket> before = buckets;
    buckets[i].end = buckets[i + 1].end;
    buckets[i].takes = times.travel(kind, buckets[i].begin, buckets[i].end);
    buckets.erase(buckets.begin() + static_cast<ptrdiff_t>(i) + 1);
    Duration now = simulate();
    if (now <= exposed) {
      exposed = now;
      return true;
    }
    buckets = std::move(before);
    (void)simulate();
    return false;
  }

  std::vector<TransferBucket> result() const {
    std::vector<TransferBucket> all;
    for (size_t i = 0; i < buckets.size(); ++i) {
      size_t distance = kind == TransferKind::Reduce
                            ? startedBeforeEnd(i)
                            : i - bucketAt(buckets[i].start);
      all.push_back(
          {buckets[i].end - buckets[i].begin, static_cast<uint32_t>(distance)});
    }
    return all;
  }

private:
  struct Bucket {
    Id begin = 0, end = 0; ///< Transfers.
    Id start = 0;          ///< The transfer at whose wait a gather starts.
    Duration takes;
  };

  /// How many reductions start until number `i` is over, and one more.
  size_t startedBeforeEnd(size_t i) const {
    size_t next = i + 1;
    while (next < buckets.size() && readyAt[next] < overAt[i])
      ++next;
    return next - i;
  }

  /// How long compute waits.
  Duration simulate() {
    return kind == TransferKind::Reduce ? simulateReductions()
                                        : simulateGathers();
  }

  Duration simulateGathers() {
    Duration now, link, sum;
    size_t next = 0;
    std::vector<Duration> ends(buckets.size());
    for (size_t i = 0; i < buckets.size(); ++i) {
      const Bucket &bucket = buckets[i];
      for (; next < buckets.size() &&
             (next <= i || buckets[next].start < bucket.end);
           ++next)
        link = ends[next] = std::max(link, now) + buckets[next].takes;
      Duration over = std::max(ends[i], now);
      exposedOf[bucket.begin] =
          Duration::ofPicoseconds(over.picoseconds() - now.picoseconds());
      sum += exposedOf[bucket.begin];
      now = over;
      for (Id transfer = bucket.begin; transfer < bucket.end; ++transfer)
        now += times.compute(kind, transfer);
    }
    return sum;
  }

  Duration simulateReductions() {
    Duration now, link;
    readyAt.clear();
    overAt.clear();
    for (const Bucket &bucket : buckets) {
      for (Id transfer = bucket.begin; transfer + 1 < bucket.end; ++transfer)
        now += times.compute(kind, transfer);
      link = std::max(link, now) + bucket.takes;
      readyAt.push_back(now);
      overAt.push_back(link);
      now += times.compute(kind, bucket.end - 1);
    }
    return link < now ? Duration()
                      : Duration::ofPicoseconds(link.picoseconds() -
                                                now.picoseconds());
  }

  const TransferTimes &times;
  const TransferKind kind;
  const Id size;
  std::vector<Bucket> buckets;
  std::vector<Duration> exposedOf; // of each transfer that begins a bucket
  std::vector<Duration> readyAt, overAt; // of each bucket of reductions
  Duration exposed;
};

} // namespace

static constexpr TransferKind kKinds[] = {
    TransferKind::Forward, TransferKind::Again, TransferKind::Reduce};

CommunicationChoice
fsdp::problem::mergedWhileHidden(const TransferTimes &times) {
  CommunicationChoice choice = choiceOf(times.transfers(), {});
  for (TransferKind kind : kKinds) {
    PassBuckets pass(times, kind);
    pass.startOneAhead();
    for (size_t i = 0; i + 1 < pass.count();)
      if (!pass.merge(i))
        ++i;
    choice[kind] = pass.result();
  }
  return choice;
}

CommunicationChoice fsdp::problem::pytorchOverlap(const TransferTimes &times) {
  static constexpr int64_t kInFlight = 5 * kGB;
  static constexpr uint32_t kAhead = 200;
  CommunicationChoice choice = choiceOf(times.transfers(), {});
  for (TransferKind kind : kKinds) {
    PassBuckets pass(times, kind);
    pass.startEarly(kInFlight, kAhead);
    std::vector<Id> byExposure(times.transfers()[kind].size());
    std::iota(byExposure.begin(), byExposure.end(), 0);
    std::stable_sort(byExposure.begin(), byExposure.end(), [&](Id a, Id b) {
      return pass.exposedAt(b) < pass.exposedAt(a);
    });
    for (Id transfer : byExposure)
      while (pass.merge(pass.bucketAt(transfer))) {
      }
    choice[kind] = pass.result();
  }
  return choice;
}
