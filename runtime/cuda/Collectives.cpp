//===- Collectives.cpp - Collectives by NCCL ------------------------------===//
//
// NCCL moves bytes; what is added in which order is ours, as on the CPU: an
// all-to-all of the pieces, then one kernel that adds them in the order of
// RankTree.h and scales once.
//
//===----------------------------------------------------------------------===//
#include "../collectives/Pieces.h"
#include "CudaContext.h"
#include "kernels/Reduce.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::rt;

Channel::Channel(ncclComm_t world, const GroupDesc &group,
                 const std::vector<int64_t> &meshAxes, int rank, Ptr arena,
                 uint64_t arenaBytes)
    : ranks(groupRanks(group, meshAxes, rank)),
      tree(rankTree(group, meshAxes)) {
  me = int(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  // A group is known by its first rank.
  require(ncclCommSplit(world, ranks[0], me, &communicator, nullptr),
          "NCCL communicator");
  require(ncclCommRegister(communicator, arena, arenaBytes, &registration),
          "NCCL registration");
}

Channel::~Channel() {
  if (registration)
    ncclCommDeregister(communicator, registration);
  if (communicator)
    ncclCommDestroy(communicator);
}

void Channel::run(Context &c, Stream stream, const CollectiveDesc &desc,
                  const Ptr *in, const Ptr *out, const Ptr *workspace) const {
  cudaStream_t on = c.stream(stream);
  if (desc.kind == CollectiveKind::AllGather)
    return allGather(on, desc, in, out);
  exchange(on, desc, in, workspace);
  bool anyLarge = false;
  int64_t element = sizeOf(desc.out);
  for (int i = 0; i < desc.items; ++i) {
    Part mine = partOf(desc, i, me, size());
    bool scatters = desc.kind == CollectiveKind::ReduceScatter;
    anyLarge |= !scatters && !isSmall(desc, desc.item[i].full);
    Ptr to = out[i] + (scatters ? 0 : mine.offset * element);
    reduce(c, stream, desc, i, in[i], to, size() == 1 ? nullptr : workspace[i]);
    // The padding of a shard is zero.
    int64_t padding = (desc.item[i].shard - mine.count) * element;
    if (scatters && padding > 0)
      fillZero(c, stream, to + mine.count * element, padding);
  }
  if (anyLarge)
    gatherParts(on, desc, out);
}

void Channel::allGather(cudaStream_t stream, const CollectiveDesc &desc,
                        const Ptr *in, const Ptr *out) const {
  check(ncclGroupStart(), desc.serves);
  for (int i = 0; i < desc.items; ++i)
    check(ncclAllGather(in[i], out[i],
                        size_t(desc.item[i].shard * sizeOf(desc.in)), ncclInt8,
                        communicator, stream),
          desc.serves);
  check(ncclGroupEnd(), desc.serves);
}

/// Sends `count` elements to `peer` and takes as many as it sends.
void Channel::swap(cudaStream_t stream, const CollectiveDesc &desc, int peer,
                   Ptr send, int64_t sendBytes, Ptr receive,
                   int64_t receiveBytes) const {
  if (sendBytes > 0)
    check(
        ncclSend(send, size_t(sendBytes), ncclInt8, peer, communicator, stream),
        desc.serves);
  if (receiveBytes > 0)
    check(ncclRecv(receive, size_t(receiveBytes), ncclInt8, peer, communicator,
                   stream),
          desc.serves);
}

void Channel::exchange(cudaStream_t stream, const CollectiveDesc &desc,
                       const Ptr *in, const Ptr *workspace) const {
  if (size() == 1)
    return;
  int64_t element = sizeOf(desc.in);
  check(ncclGroupStart(), desc.serves);
  for (int i = 0; i < desc.items; ++i) {
    int64_t slot = pieceElements(desc, i, size()) * element;
    int64_t mine = partOf(desc, i, me, size()).count * element;
    Ptr space = workspace[i];
    for (int p = 0; p < size(); ++p) {
      if (p == me)
        continue;
      Part theirs = partOf(desc, i, p, size());
      swap(stream, desc, p, in[i] + theirs.offset * element,
           theirs.count * element, space, mine);
      space += slot;
    }
  }
  check(ncclGroupEnd(), desc.serves);
}

/// Reduces the own part of an item to `out`.
void Channel::reduce(Context &c, Stream stream, const CollectiveDesc &desc,
                     int item, Ptr in, Ptr out, Ptr workspace) const {
  Part mine = partOf(desc, item, me, size());
  Pieces pieces;
  pieces.own = in + mine.offset * sizeOf(desc.in);
  pieces.others = workspace;
  pieces.slot = pieceElements(desc, item, size());
  pieces.count = mine.count;
  pieces.me = me;
  pieces.ranks = tree;
  reducePieces(c, stream, desc.reduce, desc.in, float(desc.scale), pieces, out);
}

/// The second half of an all-reduce: every rank's reduced part to everybody.
void Channel::gatherParts(cudaStream_t stream, const CollectiveDesc &desc,
                          const Ptr *out) const {
  if (size() == 1)
    return;
  int64_t element = sizeOf(desc.out);
  check(ncclGroupStart(), desc.serves);
  for (int i = 0; i < desc.items; ++i) {
    if (isSmall(desc, desc.item[i].full))
      continue;
    Part mine = partOf(desc, i, me, size());
    for (int p = 0; p < size(); ++p) {
      Part theirs = partOf(desc, i, p, size());
      if (p != me)
        swap(stream, desc, p, out[i] + mine.offset * element,
             mine.count * element, out[i] + theirs.offset * element,
             theirs.count * element);
    }
  }
  check(ncclGroupEnd(), desc.serves);
}
