//===- Pieces.cpp - Who reduces what, and with whom -----------------------===//
#include "Pieces.h"
#include "fsdp/Runtime/CudaWorkspaces.h"
#include "fsdp/Runtime/Mesh.h"
#include "fsdp/Runtime/Runtime.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <string>

using namespace fsdp;
using namespace fsdp::rt;

/// Below this size an all-reduce sends whole tensors to everybody: one round
/// instead of two. The tree, and so the bits, are the same.
static constexpr int64_t kSmallBytes = 4096;

bool fsdp::rt::isSmall(const CollectiveDesc &desc, int64_t full) {
  return full * sizeOf(desc.in) <= kSmallBytes;
}

int64_t fsdp::rt::pieceElements(const CollectiveDesc &desc, int item,
                                int64_t ranks) {
  const CollectiveItem &it = desc.item[item];
  if (desc.kind == CollectiveKind::ReduceScatter)
    return it.shard;
  return isSmall(desc, it.full) ? it.full : ceilDiv(it.full, ranks);
}

Part fsdp::rt::pieceAt(int64_t full, int64_t size, int64_t index) {
  return {std::min(index * size, full),
          std::clamp<int64_t>(full - index * size, 0, size)};
}

Part fsdp::rt::partOf(const CollectiveDesc &desc, int item, int r,
                      int64_t ranks) {
  int64_t full = desc.item[item].full;
  if (desc.kind == CollectiveKind::AllReduce && isSmall(desc, full))
    return {0, full};
  return pieceAt(full, pieceElements(desc, item, ranks), r);
}

/// The own piece is read where it is.
static CheckedSize bytesOfOthers(const CollectiveDesc &desc, int64_t elements,
                                 int64_t ranks) {
  return CheckedSize((ranks - 1) * sizeOf(desc.in)) * elements;
}

int64_t fsdp::rt::collectiveWorkspaceBytes(const CollectiveDesc &desc, int item,
                                           int64_t ranks) {
  if (desc.kind == CollectiveKind::AllGather)
    return 0;
  return bytesOfOthers(desc, pieceElements(desc, item, ranks), ranks)
      .saturated();
}

/// Less is not worth a round.
static constexpr int64_t kLeastExchanged = 4096;

int64_t fsdp::rt::cuda::exchangeElements(const CollectiveDesc &desc, int item,
                                         int64_t ranks) {
  CheckedSize all = 0;
  for (int i = 0; i < desc.items; ++i)
    all += bytesOfOthers(desc, pieceElements(desc, i, ranks), ranks);
  int64_t rounds =
      std::max<int64_t>(ceilDiv(all.saturated(), kExchangeBytes), 1);
  int64_t piece = pieceElements(desc, item, ranks);
  // Every round begins where wide accesses may.
  int64_t part = roundedUp(ceilDiv(piece, rounds), 64).saturated();
  return std::min(piece, std::max(part, kLeastExchanged));
}

int64_t fsdp::rt::cuda::collectiveWorkspaceBytes(const CollectiveDesc &desc,
                                                 int item, int64_t ranks) {
  if (desc.kind == CollectiveKind::AllGather || desc.fast)
    return 0;
  return bytesOfOthers(desc, exchangeElements(desc, item, ranks), ranks)
      .saturated();
}

static std::vector<Digit> digitsOf(const GroupDesc &group,
                                   const std::vector<int64_t> &meshAxes) {
  std::vector<Digit> digits;
  for (int32_t i = 0; i < group.axes; ++i)
    digits.push_back(digitOf(group.axis[i], meshAxes));
  return digits;
}

std::vector<int> fsdp::rt::groupRanks(const GroupDesc &group,
                                      const std::vector<int64_t> &meshAxes,
                                      int rank) {
  std::vector<Digit> digits = digitsOf(group, meshAxes);
  int64_t start = rank;
  for (const Digit &d : digits)
    start -= start / d.stride % d.size * d.stride;
  std::vector<int> ranks{int(start)};
  for (const Digit &d : digits) {
    std::vector<int> next;
    for (int r : ranks)
      for (int64_t i = 0; i < d.size; ++i)
        next.push_back(int(r + i * d.stride));
    ranks = std::move(next);
  }
  return ranks;
}

RankTree fsdp::rt::rankTree(const GroupDesc &group,
                            const std::vector<int64_t> &meshAxes) {
  struct Axis {
    int64_t stride; // in ranks of the job: what orders axes as the mesh does
    RankTree::Axis inGroup;
  };
  std::vector<Axis> axes;
  int positions = 1;
  std::vector<Digit> digits = digitsOf(group, meshAxes);
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    if (digit->size > 1)
      axes.push_back({digit->stride, {int(digit->size), positions}});
    positions *= int(digit->size);
  }
  static_assert(RankTree::kMaxAxes == kMaxCollectiveAxes);
  if (axes.size() > RankTree::kMaxAxes)
    throw Error("a collective goes over " + std::to_string(axes.size()) +
                " axes of the mesh; at most " +
                std::to_string(RankTree::kMaxAxes) + " are possible");
  std::sort(axes.begin(), axes.end(),
            [](const Axis &a, const Axis &b) { return a.stride > b.stride; });
  RankTree tree;
  for (const Axis &axis : axes)
    tree.axis[tree.axes++] = axis.inGroup;
  return tree;
}
