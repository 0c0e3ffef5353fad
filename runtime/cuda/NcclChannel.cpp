//===- NcclChannel.cpp - Collectives by NCCL ------------------------------===//
//
// NCCL moves bytes; what is added in which order is ours, as on the CPU: an
// all-to-all of the pieces, then one kernel for all tensors that adds them in
// the order of RankTree.h. What is large goes in rounds, which
// changes no bit: every element is added by itself. Where nodes are stated,
// each round has both twice: inside the node, then between nodes.
//
// A sum that is `fast` is NCCL's own instead.
//
//===----------------------------------------------------------------------===//
#include "CudaContext.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Target/CollectivePieces.h"
#include "fsdp/Target/CudaWorkspaces.h"
#include "kernels/Reduce.h"
#include "runtime/collectives/Groups.h"
#include <algorithm>
#include <optional>
#include <utility>

using namespace fsdp;
using namespace fsdp::rt;

namespace {

/// Transfers that NCCL begins together. One that is refused under capture
/// leaves no group open, in which all later calls would wait.
class GroupCall {
public:
  explicit GroupCall(const char *serves) : serves(serves) {
    check(ncclGroupStart(), serves);
  }
  ~GroupCall() {
    if (isOpen)
      ncclGroupEnd();
  }
  GroupCall(const GroupCall &) = delete;
  GroupCall &operator=(const GroupCall &) = delete;

  void end() {
    isOpen = false;
    check(ncclGroupEnd(), serves);
  }

private:
  const char *const serves;
  bool isOpen = true;
};

/// Sums over the same ranks in the same order, in as few launches as hold them.
class Sums {
public:
  Sums(CudaContext &c, Stream stream, ReduceKind kind, DType in, int me,
       const RankTree &ranks)
      : c(c), stream(stream), kind(kind), in(in) {
    pieces.me = me;
    pieces.ranks = ranks;
  }

  void add(const Pieces::Item &item) {
    if (item.count == 0)
      return;
    if (pieces.items == Pieces::kItems)
      launch();
    pieces.item[pieces.items++] = item;
  }
  /// What was added since the last launch.
  void launch() {
    reducePieces(c, stream, kind, in, pieces);
    pieces.items = 0;
  }

private:
  CudaContext &c;
  const Stream stream;
  const ReduceKind kind;
  const DType in;
  Pieces pieces{};
};

} // namespace

NcclChannel::NcclChannel(ncclComm_t world, const GroupDesc &group,
                         int nodeRanks, const std::vector<int64_t> &meshAxes,
                         int rank)
    : ranks(groupRanks(group, meshAxes, rank)),
      tree(rankTree(group, meshAxes)) {
  me = int(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  if (nodeRanks > 1)
    levels = nodeLevels(tree, nodeRanks, me);
  // A group is known by its first rank.
  require(ncclCommSplit(world, ranks[0], me, &communicator, nullptr),
          "NCCL communicator");
}

/// Older libraries do not have the call.
static bool hasWindows() {
  int version = 0;
  return ncclGetVersion(&version) == ncclSuccess &&
         version >= NCCL_VERSION(2, 27, 0);
}

bool NcclChannel::makeWindow(Ptr arena, uint64_t bytes) {
  if (hasWindows() &&
      ncclCommWindowRegister(communicator, arena, bytes, &window,
                             NCCL_WIN_COLL_SYMMETRIC) != ncclSuccess)
    window = nullptr;
  return window;
}

bool NcclChannel::registerArena(Ptr arena, uint64_t bytes) {
  if (ncclCommRegister(communicator, arena, bytes, &registration) !=
      ncclSuccess)
    registration = nullptr;
  return registration;
}

void NcclChannel::deregister() {
  if (window)
    ncclCommWindowDeregister(communicator, std::exchange(window, nullptr));
  if (registration)
    ncclCommDeregister(communicator, std::exchange(registration, nullptr));
}

NcclChannel::~NcclChannel() {
  deregister();
  if (communicator)
    ncclCommDestroy(communicator);
}

ncclResult_t NcclChannel::asynchronousError() const {
  ncclResult_t found = ncclSuccess;
  ncclResult_t asked = ncclCommGetAsyncError(communicator, &found);
  return asked == ncclSuccess ? found : asked;
}

void NcclChannel::run(CudaContext &c, Stream stream, const CollectiveDesc &desc,
                      const Ptr *in, const Ptr *out,
                      const Ptr *workspace) const {
  cudaStream_t on = c.stream(stream);
  if (desc.kind == CollectiveKind::AllGather)
    return allGather(on, desc, in, out);
  if (desc.fast) {
    reduceFast(on, desc, in, out);
    if (desc.kind == CollectiveKind::ReduceScatter)
      fillPadding(c, stream, desc, out);
    return;
  }
  int64_t rounds = roundsOf(desc);
  for (int64_t round = 0; round < rounds; ++round) {
    exchange(on, desc, round, in, workspace);
    addInside(c, stream, desc, round, in, workspace);
    exchangeBetween(on, desc, round, workspace);
    addOwnParts(c, stream, desc, round, in, out, workspace);
  }
  if (desc.kind == CollectiveKind::AllReduce)
    gatherParts(on, desc, out);
  else
    fillPadding(c, stream, desc, out);
}

int64_t NcclChannel::roundsOf(const CollectiveDesc &desc) const {
  int64_t rounds = 1;
  for (int i = 0; i < desc.items; ++i)
    if (int64_t each = cuda::exchangeElements(desc, i, size()); each > 0)
      rounds = std::max(rounds, ceilDiv(pieceElements(desc, i, size()), each));
  return rounds;
}

/// What of a rank's part of an item goes in a round.
Part NcclChannel::partInRound(const CollectiveDesc &desc, int item, int r,
                              int64_t round) const {
  Part part = partOf(desc, item, r, size());
  Part slice =
      pieceAt(part.count, cuda::exchangeElements(desc, item, size()), round);
  return {part.offset + slice.offset, slice.count};
}

/// The padding of a shard is zero.
void NcclChannel::fillPadding(CudaContext &c, Stream stream,
                              const CollectiveDesc &desc,
                              const Ptr *out) const {
  int64_t element = sizeOf(desc.out);
  for (int i = 0; i < desc.items; ++i) {
    int64_t count = partOf(desc, i, me, size()).count;
    int64_t padding = (desc.item[i].shard - count) * element;
    if (padding > 0)
      fillZero(c, stream, out[i] + count * element, padding);
  }
}

void NcclChannel::allGather(cudaStream_t stream, const CollectiveDesc &desc,
                            const Ptr *in, const Ptr *out) const {
  GroupCall transfers(desc.serves);
  for (int i = 0; i < desc.items; ++i)
    check(ncclAllGather(in[i], out[i],
                        size_t(desc.item[i].shard * sizeOf(desc.in)), ncclInt8,
                        communicator, stream),
          desc.serves);
  transfers.end();
}

/// What is added keeps its type.
static ncclDataType_t sumTypeOf(const CollectiveDesc &desc) {
  return desc.out == DType::I64 ? ncclInt64 : ncclFloat32;
}

/// One group call of NCCL's own sums, which need no workspace.
void NcclChannel::reduceFast(cudaStream_t stream, const CollectiveDesc &desc,
                             const Ptr *in, const Ptr *out) const {
  GroupCall transfers(desc.serves);
  for (int i = 0; i < desc.items; ++i) {
    const CollectiveItem &item = desc.item[i];
    if (desc.kind == CollectiveKind::AllReduce)
      check(ncclAllReduce(in[i], out[i], size_t(item.full), sumTypeOf(desc),
                          ncclSum, communicator, stream),
            desc.serves);
    else if (item.full == item.shard * size())
      check(ncclReduceScatter(in[i], out[i], size_t(item.shard),
                              sumTypeOf(desc), ncclSum, communicator, stream),
            desc.serves);
    else
      reduceParts(stream, desc, i, in[i], out[i]);
  }
  transfers.end();
}

/// NCCL scatters equal parts. Where the last ones are short or empty, every
/// part is a sum of its own, to the rank that has it.
void NcclChannel::reduceParts(cudaStream_t stream, const CollectiveDesc &desc,
                              int item, Ptr in, Ptr out) const {
  for (int r = 0; r < size(); ++r) {
    Part part = partOf(desc, item, r, size());
    if (part.count > 0)
      check(ncclReduce(in + part.offset * sizeOf(desc.in),
                       r == me ? out : nullptr, size_t(part.count),
                       sumTypeOf(desc), ncclSum, r, communicator, stream),
            desc.serves);
  }
}

/// Sends `count` elements to `peer` and takes as many as it sends.
void NcclChannel::swap(cudaStream_t stream, const CollectiveDesc &desc,
                       int peer, Ptr send, int64_t sendBytes, Ptr receive,
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

void NcclChannel::exchange(cudaStream_t stream, const CollectiveDesc &desc,
                           int64_t round, const Ptr *in,
                           const Ptr *workspace) const {
  if (size() == 1)
    return;
  GroupCall transfers(desc.serves);
  for (int i = 0; i < desc.items; ++i)
    if (hasTwoLevels(desc, i))
      exchangeInside(stream, desc, i, round, in[i], workspace[i]);
    else
      exchangeItem(stream, desc, i, round, in[i], workspace[i]);
  transfers.end();
}

void NcclChannel::exchangeItem(cudaStream_t stream, const CollectiveDesc &desc,
                               int item, int64_t round, Ptr in,
                               Ptr space) const {
  int64_t element = sizeOf(desc.in);
  int64_t slot = cuda::exchangeElements(desc, item, size()) * element;
  int64_t mine = partInRound(desc, item, me, round).count * element;
  for (int p = 0; p < size(); ++p) {
    if (p == me)
      continue;
    Part theirs = partInRound(desc, item, p, round);
    swap(stream, desc, p, in + theirs.offset * element, theirs.count * element,
         space, mine);
    space += slot;
  }
}

//===----------------------------------------------------------------------===//
// Two levels
//===----------------------------------------------------------------------===//

/// Where what arrives is, behind the partial sums.
Ptr NcclChannel::received(const CollectiveDesc &desc, int item,
                          Ptr space) const {
  int64_t slot = cuda::exchangeElements(desc, item, size());
  return space + twoLevelBytes(desc, slot, size()).sums;
}

/// The first level: from every rank of the own node what it has of the pieces
/// of the ranks at the own place, one for each node.
void NcclChannel::exchangeInside(cudaStream_t stream,
                                 const CollectiveDesc &desc, int item,
                                 int64_t round, Ptr in, Ptr space) const {
  int64_t element = sizeOf(desc.in);
  int64_t slot = cuda::exchangeElements(desc, item, size()) * element;
  Ptr to = received(desc, item, space);
  for (int node = 0; node < levels->nodes(); ++node) {
    Part mine =
        partInRound(desc, item, levels->position(node, levels->place), round);
    for (int place = 0; place < levels->places(); ++place) {
      if (place == levels->place)
        continue;
      Part theirs =
          partInRound(desc, item, levels->position(node, place), round);
      swap(stream, desc, levels->position(levels->node, place),
           in + theirs.offset * element, theirs.count * element, to,
           mine.count * element);
      to += slot;
    }
  }
}

/// The own node's sum of each of these pieces.
void NcclChannel::addInside(CudaContext &c, Stream stream,
                            const CollectiveDesc &desc, int64_t round,
                            const Ptr *in, const Ptr *workspace) const {
  if (!hasTwoLevels(desc))
    return;
  Sums sums(c, stream, desc.reduce, desc.in, levels->place, levels->inside);
  int64_t element = sizeOf(desc.in);
  for (int i = 0; i < desc.items; ++i) {
    if (!hasTwoLevels(desc, i))
      continue;
    int64_t slot = cuda::exchangeElements(desc, i, size());
    Ptr others = received(desc, i, workspace[i]), sum = workspace[i];
    for (int node = 0; node < levels->nodes(); ++node) {
      Part part =
          partInRound(desc, i, levels->position(node, levels->place), round);
      sums.add({in[i] + part.offset * element, others, sum, slot, part.count});
      others += (levels->places() - 1) * slot * element;
      sum += slot * sizeOf(DType::F32);
    }
  }
  sums.launch();
}

/// The second level: from the ranks at the own place of all nodes, what their
/// nodes have of the own piece.
void NcclChannel::exchangeBetween(cudaStream_t stream,
                                  const CollectiveDesc &desc, int64_t round,
                                  const Ptr *workspace) const {
  if (!hasTwoLevels(desc))
    return;
  int64_t element = sizeOf(DType::F32);
  GroupCall transfers(desc.serves);
  for (int i = 0; i < desc.items; ++i) {
    if (!hasTwoLevels(desc, i))
      continue;
    int64_t slot = cuda::exchangeElements(desc, i, size()) * element;
    int64_t mine = partInRound(desc, i, me, round).count * element;
    Ptr to = received(desc, i, workspace[i]);
    for (int node = 0; node < levels->nodes(); ++node) {
      if (node == levels->node)
        continue;
      int peer = levels->position(node, levels->place);
      swap(stream, desc, peer, workspace[i] + node * slot,
           partInRound(desc, i, peer, round).count * element, to, mine);
      to += slot;
    }
  }
  transfers.end();
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Adds what the own parts got in a round. A scattered result is the own part
/// alone.
void NcclChannel::addOwnParts(CudaContext &c, Stream stream,
                              const CollectiveDesc &desc, int64_t round,
                              const Ptr *in, const Ptr *out,
                              const Ptr *workspace) const {
  Sums flat(c, stream, desc.reduce, desc.in, me, tree);
  std::optional<Sums> between;
  if (hasTwoLevels(desc))
    between.emplace(c, stream, desc.reduce, DType::F32, levels->node,
                    levels->between);
  for (int i = 0; i < desc.items; ++i) {
    Part mine = partInRound(desc, i, me, round), result = mine;
    if (desc.kind == CollectiveKind::ReduceScatter)
      result.offset -= partOf(desc, i, me, size()).offset;
    Ptr to = out[i] + result.offset * sizeOf(desc.out);
    int64_t slot = cuda::exchangeElements(desc, i, size());
    if (hasTwoLevels(desc, i))
      between->add({workspace[i] + levels->node * slot * sizeOf(DType::F32),
                    received(desc, i, workspace[i]), to, slot, mine.count});
    else
      flat.add({in[i] + mine.offset * sizeOf(desc.in),
                size() == 1 ? nullptr : workspace[i], to, slot, mine.count});
  }
  flat.launch();
  if (between)
    between->launch();
}

/// The second half of an all-reduce: every rank's reduced part to everybody. In
/// two levels to its place in all nodes first, from where each node's ranks get
/// it.
void NcclChannel::gatherParts(cudaStream_t stream, const CollectiveDesc &desc,
                              const Ptr *out) const {
  bool anyLarge = false;
  for (int i = 0; i < desc.items; ++i)
    anyLarge |= !isSmall(desc, desc.item[i].full);
  if (size() == 1 || !anyLarge)
    return;
  auto group = [&](auto gather) {
    GroupCall transfers(desc.serves);
    for (int i = 0; i < desc.items; ++i)
      if (!isSmall(desc, desc.item[i].full))
        gather(i);
    transfers.end();
  };
  if (desc.nodeRanks <= 1)
    return group([&](int item) {
      for (int p = 0; p < size(); ++p)
        gatherPart(stream, desc, item, p, me, p, out[item]);
    });
  group([&](int item) {
    for (int node = 0; node < levels->nodes(); ++node) {
      int peer = levels->position(node, levels->place);
      gatherPart(stream, desc, item, peer, me, peer, out[item]);
    }
  });
  group([&](int item) {
    for (int place = 0; place < levels->places(); ++place)
      for (int node = 0; node < levels->nodes(); ++node)
        gatherPart(stream, desc, item, levels->position(levels->node, place),
                   levels->position(node, levels->place),
                   levels->position(node, place), out[item]);
  });
}

/// Sends the part of position `mine` to `peer`, and gets that of `theirs`.
void NcclChannel::gatherPart(cudaStream_t stream, const CollectiveDesc &desc,
                             int item, int peer, int mine, int theirs,
                             Ptr out) const {
  if (peer == me)
    return;
  int64_t element = sizeOf(desc.out);
  Part sent = partOf(desc, item, mine, size());
  Part got = partOf(desc, item, theirs, size());
  swap(stream, desc, peer, out + sent.offset * element, sent.count * element,
       out + got.offset * element, got.count * element);
}
