//===- CommunicationRules.cpp - What others do about communication --------===//
#include "fsdp/Schedule/CommunicationRules.h"
#include "OverlapRules.h"
#include <algorithm>
#include <functional>

using namespace fsdp;
using namespace fsdp::problem;

static constexpr int64_t kMB = 1'000'000;

//===----------------------------------------------------------------------===//
// Buckets of blocks
//===----------------------------------------------------------------------===//

/// Splits a list where `endsAfter` says that a bucket ends after an element.
template <typename EndsAfter>
static std::vector<TransferBucket>
bucketsOf(const TransferList &list, uint32_t distance, EndsAfter endsAfter) {
  std::vector<TransferBucket> buckets;
  uint32_t count = 0;
  for (Id i = 0; i < list.size(); ++i) {
    ++count;
    if (i + 1 < list.size() && !endsAfter(i))
      continue;
    buckets.push_back({count, distance});
    count = 0;
  }
  return buckets;
}

/// How many blocks each bucket has.
static std::vector<int> bucketSizes(int blocks, int size,
                                    BucketFamily::Ramps ramps) {
  std::vector<int> sizes, last;
  auto take = [&](std::vector<int> &from, int most) {
    if (blocks == 0)
      return;
    from.push_back(std::min(most, blocks));
    blocks -= from.back();
  };
  if (ramps != BucketFamily::Never)
    for (int most = 1; most < size; most *= 2) {
      take(last, most);
      if (ramps == BucketFamily::AtBothEnds)
        take(sizes, most);
    }
  while (blocks > 0)
    take(sizes, size);
  sizes.insert(sizes.end(), last.rbegin(), last.rend());
  return sizes;
}

/// A bucket for each unit, or for about so many equal parts of it.
static std::vector<TransferBucket> unitBuckets(const Transfers &transfers,
                                               TransferKind kind, int parts,
                                               uint32_t distance) {
  const TransferList &list = transfers[kind];
  std::vector<int64_t> bytes(transfers.units.size());
  for (const Transfer &transfer : list)
    bytes[transfer.unit] += transfer.bytes;
  int64_t sent = 0;
  return bucketsOf(list, distance, [&](Id i) {
    uint32_t unit = list[i].unit;
    sent += list[i].bytes;
    bool ends = unit != list[i + 1].unit || sent >= bytes[unit] / parts;
    if (ends)
      sent = 0;
    return ends;
  });
}

/// Into buckets of `size` blocks; see BucketFamily.
static std::vector<TransferBucket> blockBuckets(const Transfers &transfers,
                                                TransferKind kind, int size,
                                                BucketFamily::Ramps ramps,
                                                uint32_t distance) {
  const TransferList &list = transfers[kind];
  if (size == 0)
    return bucketsOf(list, distance, [](Id) { return true; });
  if (size < 0)
    return unitBuckets(transfers, kind, -size, distance);
  std::vector<bool> isThere(transfers.units.size());
  for (const Transfer &transfer : list)
    isThere[transfer.unit] = transfers.isBlock[transfer.unit];
  std::vector<int> sizes = bucketSizes(
      static_cast<int>(std::count(isThere.begin(), isThere.end(), true)), size,
      ramps);
  size_t bucket = 0;
  int blocks = 0;
  return bucketsOf(list, distance, [&](Id i) {
    uint32_t unit = list[i].unit, next = list[i + 1].unit;
    if (unit == next)
      return false;
    if (transfers.isBlock[unit] && bucket < sizes.size() &&
        ++blocks == sizes[bucket]) {
      ++bucket;
      blocks = 0;
      return true;
    }
    return !transfers.isBlock[unit] || !transfers.isBlock[next];
  });
}

std::vector<TransferBucket>
fsdp::problem::taperedBuckets(const TransferList &list,
                              const BucketTaper &taper) {
  double all = 0, parts = 0, part = 1;
  for (const Transfer &transfer : list)
    all += double(transfer.bytes);
  for (uint32_t i = 0; i < taper.count; ++i, part *= taper.ratio)
    parts += part;
  double size = all / parts, end = size, sent = 0;
  return bucketsOf(list, taper.distance, [&](Id i) {
    sent += double(list[i].bytes);
    // Half of a transfer more is as near as half of it less.
    if (sent + double(list[i + 1].bytes) / 2 < end)
      return false;
    size *= taper.ratio;
    end += size;
    return true;
  });
}

static std::vector<bool> keptUnits(const Transfers &transfers,
                                   const BucketFamily &family) {
  if (!transfers.mayKeep)
    return transfers.isKept;
  std::vector<uint32_t> blocks;
  for (uint32_t unit = 0; unit < transfers.units.size(); ++unit)
    if (transfers.isBlock[unit])
      blocks.push_back(unit);
  std::vector<bool> isKept = transfers.isKept;
  for (uint32_t block : blocks)
    isKept[block] = false;
  auto count = static_cast<uint32_t>(blocks.size()),
       kept = std::min(family.kept, count);
  for (uint32_t i = 0; i < kept; ++i)
    isKept[blocks[family.keptAt == BucketFamily::Last    ? count - 1 - i
                  : family.keptAt == BucketFamily::First ? i
                                                         : i * count / kept]] =
        true;
  return isKept;
}

CommunicationChoice fsdp::problem::choiceOf(const Transfers &transfers,
                                            const BucketFamily &family) {
  CommunicationChoice choice;
  for (TransferKind kind : {TransferKind::Forward, TransferKind::Again})
    choice[kind] = blockBuckets(transfers, kind, family.gather,
                                family.gatherRamps, family.prefetch);
  choice[TransferKind::Reduce] =
      blockBuckets(transfers, TransferKind::Reduce, family.reduce,
                   family.reduceRamps, family.defer);
  choice.isKept = keptUnits(transfers, family);
  return choice;
}

//===----------------------------------------------------------------------===//
// Rules by bytes and times
//===----------------------------------------------------------------------===//

namespace {

class RuleMaker {
public:
  RuleMaker(const Transfers &transfers, const TransferTimes &times)
      : transfers(transfers), times(times) {}

  /// With buckets of `gather` and `reduce`, whose arguments are those of
  /// endsAfter and where the bucket begins.
  template <typename EndsAfter>
  CommunicationChoice with(uint32_t distance, EndsAfter endsAfter) const {
    CommunicationChoice choice = choiceOf(transfers, {});
    for (TransferKind kind :
         {TransferKind::Forward, TransferKind::Again, TransferKind::Reduce}) {
      Id begin = 0;
      choice[kind] = bucketsOf(transfers[kind], distance, [&](Id i) {
        bool ends = endsAfter(kind, begin, i);
        if (ends)
          begin = i + 1;
        return ends;
      });
    }
    return choice;
  }

  int64_t bytes(TransferKind kind, Id begin, Id end) const {
    return times.bytes(kind, begin, end);
  }

  /// As DDP and XLA's combiners: up to a number of bytes.
  CommunicationChoice capped(int64_t most) const {
    return with(1, [&](TransferKind kind, Id begin, Id i) {
      return bytes(kind, begin, i + 2) > most;
    });
  }

  /// As DeepCompile: while joining is nearly free, and up to 1 GB.
  CommunicationChoice fusedWhileFree() const {
    return with(1, [&](TransferKind kind, Id begin, Id i) {
      Duration one = times.travel(kind, begin, i + 1),
               next = times.travel(kind, i + 1, i + 2),
               both = times.travel(kind, begin, i + 2);
      return bytes(kind, begin, i + 2) > 1000 * kMB ||
             std::max(one.picoseconds(), next.picoseconds()) * 1.2 <=
                 double(both.picoseconds());
    });
  }

  /// As SimpleFSDP: while what computes beside it hides it, and up to a fifth
  /// of all; the first bucket, which nothing hides, has one member.
  CommunicationChoice greedy() const {
    Duration hides;
    Id first = 0;
    return with(1, [&](TransferKind kind, Id begin, Id i) {
      if (begin == 0)
        hides = {};
      else if (begin != first)
        hides = computeOf(kind, first, begin);
      bool isFull = begin == 0 || hides < times.travel(kind, begin, i + 2) ||
                    bytes(kind, begin, i + 2) * 5 >
                        bytes(kind, 0, Id(transfers[kind].size()));
      if (isFull)
        first = begin;
      return isFull;
    });
  }

private:
  Duration computeOf(TransferKind kind, Id begin, Id end) const {
    Duration sum;
    for (Id i = begin; i < end; ++i)
      sum += times.compute(kind, i);
    return sum;
  }

  const Transfers &transfers;
  const TransferTimes &times;
};

} // namespace

std::vector<NamedChoice>
fsdp::problem::knownRules(const Problem &problem, const Candidate &base,
                          const Transfers &transfers,
                          const simulation::Costs &costs) {
  TransferTimes times(problem, base, transfers, costs);
  RuleMaker maker(transfers, times);
  auto family = [&](int buckets, uint32_t ahead, bool keeps) {
    BucketFamily family;
    family.gather = family.reduce = buckets;
    family.prefetch = ahead;
    CommunicationChoice choice = choiceOf(transfers, family);
    if (keeps && transfers.mayKeep)
      choice.isKept.assign(choice.isKept.size(), true);
    return choice;
  };
  std::vector<NamedChoice> rules = {
      {"block, 1 ahead", family(1, 1, false)},
      {"block, none ahead", family(1, 0, false)},
      {"block, 2 ahead", family(1, 2, false)},
      {"block, never reshard", family(1, 1, true)},
      {"parameter", family(0, 1, false)},
      {"parameter, 4 ahead", family(0, 4, false)},
  };
  for (int64_t size : {25, 100, 500, 1000})
    rules.push_back({std::to_string(size) + " MB", maker.capped(size * kMB)});
  rules.push_back({"fuse while nearly free", maker.fusedWhileFree()});
  rules.push_back({"SimpleFSDP's greedy", maker.greedy()});
  rules.push_back({"merge while it overlaps", mergedWhileHidden(times)});
  rules.push_back({"PyTorch's overlap", pytorchOverlap(times)});
  return rules;
}
