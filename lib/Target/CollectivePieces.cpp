//===- CollectivePieces.cpp - Who reduces what ----------------------------===//
#include "fsdp/Target/CollectivePieces.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Target/CudaWorkspaces.h"
#include <algorithm>

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

bool fsdp::rt::hasTwoLevels(const CollectiveDesc &desc, int item) {
  return desc.nodeRanks > 1 && !(desc.kind == CollectiveKind::AllReduce &&
                                 isSmall(desc, desc.item[item].full));
}

bool fsdp::rt::hasTwoLevels(const CollectiveDesc &desc) {
  for (int i = 0; i < desc.items; ++i)
    if (hasTwoLevels(desc, i))
      return true;
  return false;
}

/// The own piece is read where it is.
static CheckedSize bytesOfOthers(const CollectiveDesc &desc, int64_t elements,
                                 int64_t ranks) {
  return CheckedSize((ranks - 1) * sizeOf(desc.in)) * elements;
}

TwoLevelBytes fsdp::rt::twoLevelBytes(const CollectiveDesc &desc,
                                      int64_t elements, int64_t ranks) {
  int64_t nodes = ranks / desc.nodeRanks, width = sizeOf(DType::F32);
  CheckedSize inside =
      CheckedSize((desc.nodeRanks - 1) * nodes * sizeOf(desc.in)) * elements;
  CheckedSize between = CheckedSize((nodes - 1) * width) * elements;
  return {(CheckedSize(nodes * width) * elements).saturated(),
          std::max(inside.saturated(), between.saturated())};
}

/// Beside what it sends and gives, if `elements` of every piece go at once.
static CheckedSize bytesBeside(const CollectiveDesc &desc, int item,
                               int64_t elements, int64_t ranks) {
  if (!hasTwoLevels(desc, item))
    return bytesOfOthers(desc, elements, ranks);
  TwoLevelBytes bytes = twoLevelBytes(desc, elements, ranks);
  return CheckedSize(bytes.sums) + bytes.received;
}

int64_t fsdp::rt::collectiveWorkspaceBytes(const CollectiveDesc &desc, int item,
                                           int64_t ranks) {
  if (!isReduction(desc.kind))
    return 0;
  return bytesBeside(desc, item, pieceElements(desc, item, ranks), ranks)
      .saturated();
}

/// Less is not worth a round.
static constexpr int64_t kLeastExchanged = 4096;
/// Of all tensors, to one rank of another node: shorter messages do not reach
/// the network's bandwidth.
static constexpr int64_t kLeastMessageBytes = int64_t(1) << 20;

/// The rounds of a reduction that has so many bytes beside what it sends and
/// gives, if all goes at once.
static int64_t roundsOf(const CollectiveDesc &desc, int64_t bytes,
                        int64_t ranks) {
  int64_t rounds = std::max<int64_t>(ceilDiv(bytes, cuda::kExchangeBytes), 1);
  if (desc.nodeRanks <= 1)
    return rounds;
  TwoLevelBytes least =
      twoLevelBytes(desc, kLeastMessageBytes / sizeOf(DType::F32), ranks);
  int64_t leastBytes = (CheckedSize(least.sums) + least.received).saturated();
  return std::min(rounds, std::max<int64_t>(bytes / leastBytes, 1));
}

int64_t fsdp::rt::cuda::exchangeElements(const CollectiveDesc &desc, int item,
                                         int64_t ranks) {
  CheckedSize all = 0;
  for (int i = 0; i < desc.items; ++i)
    all += bytesBeside(desc, i, pieceElements(desc, i, ranks), ranks);
  int64_t rounds = roundsOf(desc, all.saturated(), ranks);
  int64_t piece = pieceElements(desc, item, ranks);
  // Every round begins where wide accesses may.
  int64_t part = roundedUp(ceilDiv(piece, rounds), 64).saturated();
  return std::min(piece, std::max(part, kLeastExchanged));
}

int64_t fsdp::rt::cuda::collectiveWorkspaceBytes(const CollectiveDesc &desc,
                                                 int item, int64_t ranks) {
  if (!isReduction(desc.kind) || desc.fast)
    return 0;
  return bytesBeside(desc, item, exchangeElements(desc, item, ranks), ranks)
      .saturated();
}
