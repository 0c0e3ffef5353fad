//===- OwnedBoxes.cpp - Which rank writes what ----------------------------===//
#include "CheckpointFolder.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/RangeNames.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <map>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;

/// Sums of gradients are zero between two steps.
bool checkpoint::isSaved(const RangeInfo &range) {
  if (range.role == RangeRole::Parameter)
    return true;
  return range.role == RangeRole::State &&
         !endsWith(range.name, range_name::kGradientSumSuffix);
}

namespace {

/// The ranks that hold one box: those that differ only in digits of the rank
/// that no axis of the placement names.
class Replicas {
public:
  Replicas(const RangePlacement &placement, const std::vector<int64_t> &mesh,
           int64_t ranks) {
    std::vector<Digit> used;
    for (const RangePlacement::Dim &dim : placement.dims)
      for (const auto *axes : {&dim.compute, &dim.storage})
        for (const AxisRef &axis : *axes) {
          // One of size 1 covers nothing, and may begin where another does.
          Digit digit = digitOf(axis, mesh);
          if (digit.size > 1)
            used.push_back(digit);
        }
    std::sort(used.begin(), used.end(), [](const Digit &a, const Digit &b) {
      return a.stride < b.stride;
    });
    int64_t end = 1; // the least stride that no digit before covers
    for (const Digit &digit : used) {
      addFree(end, digit.stride / end);
      end = digit.stride * digit.size;
    }
    addFree(end, ranks / end);
  }

  int64_t count() const {
    int64_t count = 1;
    for (const Digit &digit : free)
      count *= digit.size;
    return count;
  }
  int64_t indexOf(int64_t rank) const {
    int64_t index = 0;
    for (const Digit &digit : free)
      index = index * digit.size + rank / digit.stride % digit.size;
    return index;
  }
  /// Placements with the same replicas have the same key.
  std::vector<std::pair<int64_t, int64_t>> key() const {
    std::vector<std::pair<int64_t, int64_t>> key;
    for (const Digit &digit : free)
      key.emplace_back(digit.stride, digit.size);
    return key;
  }

private:
  void addFree(int64_t stride, int64_t size) {
    if (size > 1)
      free.push_back({stride, size});
  }

  std::vector<Digit> free;
};

/// Hands boxes to replicas so that all get about as many bytes.
class Turns {
public:
  /// The replica that writes a box of `bytes`, of those that `replicas` are.
  int64_t next(const Replicas &replicas, uint64_t bytes) {
    std::vector<uint64_t> &given = byReplicas[replicas.key()];
    given.resize(static_cast<size_t>(replicas.count()));
    auto least = std::min_element(given.begin(), given.end());
    *least += bytes;
    return least - given.begin();
  }

private:
  std::map<std::vector<std::pair<int64_t, int64_t>>, std::vector<uint64_t>>
      byReplicas;
};

} // namespace

std::vector<OwnedBox> checkpoint::ownedBoxes(const Manifest &manifest,
                                             int64_t rank) {
  std::vector<OwnedBox> boxes;
  std::vector<int64_t> mesh = manifest.meshSizes();
  int64_t ranks = manifest.ranks();
  Turns turns;
  for (const RangeInfo &range : manifest.ranges) {
    if (!isSaved(range))
      continue;
    if (!range.placement && ranks > 1)
      throw Error("the " + roleName(range.role) + " '" + range.name +
                  "' of the artifact has no placement: its contents are each "
                  "rank's own, which a checkpoint cannot store");
    Replicas replicas(range.placement.value_or(RangePlacement{}), mesh, ranks);
    // All ranks count alike, whoever asks.
    if (turns.next(replicas, range.bytes) != replicas.indexOf(rank))
      continue;
    ShardView view = manifest.shardView(range, rank);
    SavedChunk chunk{view, range.name, range.role, range.dtype, range.full, {}};
    // The last pieces of a tensor may be padding alone. One without elements
    // is written for its name.
    bool isNothing = chunk.elements() == 0 && elementCount(range.full) != 0;
    if (!isNothing)
      boxes.push_back({&range, std::move(view), std::move(chunk)});
  }
  return boxes;
}
