//===- Channel.cpp - Collectives of one stream and group ------------------===//
#include "Channel.h"
#include "HostProgress.h"
#include "Transport.h"
#include "fsdp/Rendezvous/Environment.h"
#include "fsdp/Support/Text.h"
#include "runtime/core/Job.h"
#include "runtime/core/Timeline.h"
#include "runtime/kernels/Kernels.h"
#include <algorithm>
#include <cstring>

using namespace fsdp;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// Channel
//===----------------------------------------------------------------------===//

Channel::Channel(const ChannelSetting &setting, const GroupDesc &group,
                 int nodeRanks, int index, Stream stream)
    : ranks(groupRanks(group, setting.meshAxes, joinWorld().rank)),
      tree(rankTree(group, setting.meshAxes)), index(index), stream(stream),
      timeout(setting.timeoutSeconds), progress(setting.progress),
      monitor(setting.monitor),
      pieces(ranks.size() * size_t(setting.maxItems)) {
  int rank = joinWorld().rank;
  me = int(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  // Groups of one mesh have equal sizes: either all ranks return here or none.
  if (ranks.size() == 1)
    return;
  if (nodeRanks > 1)
    levels = nodeLevels(tree, nodeRanks, me);
  transport = createSharedTransport(setting.arena, ranks, me, index, timeout);
  // Making a communicator is collective over the job, so all agree first.
  bool areShared = job::everyone(transport != nullptr);
  if (!areShared && !job::usesMPI())
    abortWorld("a program with so many groups of ranks and streams, " +
               std::to_string(index + 1) +
               " or more, needs messages; start the ranks with mpirun");
  if (!areShared)
    transport = createMPITransport(ranks, me, setting.maxItems, timeout);
  transport->onTimeout = [this] { endLate(); };
}

Channel::~Channel() = default;

void Channel::endLate() const {
  std::string problem =
      nameOfCollective(current, *progress.channels.artifact) + " on stream " +
      streamName(stream) +
      format(
          " has not ended within %g s (FSDP_TIMEOUT sets the limit): another "
          "rank is dead, stuck or runs another program",
          timeout);
  if (monitor)
    monitor->fail(problem);
  abortWorld(problem, kLostJobStatus);
}

void Channel::run(const CollectiveDesc &desc, uint64_t counter, const Ptr *in,
                  const Ptr *out, const Ptr *workspace) {
  // A rank that is alone in its group waits for nobody.
  if (!transport)
    return dispatch(desc, in, out, workspace);
  current = counter;
  progress.enter(size_t(index), counter);
  dispatch(desc, in, out, workspace);
  progress.leave(size_t(index), counter);
}

void Channel::dispatch(const CollectiveDesc &desc, const Ptr *in,
                       const Ptr *out, const Ptr *workspace) {
  switch (desc.kind) {
  case CollectiveKind::AllGather:
    return allGather(desc, in, out);
  case CollectiveKind::ReduceScatter:
    return reduceScatter(desc, in, out, workspace);
  case CollectiveKind::AllReduce:
    return allReduce(desc, in, out, workspace);
  }
}

static void place(std::byte *to, const std::byte *from, int64_t bytes) {
  if (to != from && bytes > 0)
    std::memcpy(to, from, size_t(bytes));
}

void Channel::allGather(const CollectiveDesc &desc, const Ptr *in,
                        const Ptr *out) {
  if (transport)
    transport->open();
  for (int i = 0; i < desc.items; ++i) {
    int64_t bytes = desc.item[i].shard * sizeOf(desc.in);
    for (int p = 0; p < size(); ++p) {
      std::byte *to = out[i] + p * bytes;
      place(to,
            p == me ? in[i]
                    : transport->swap(p, in[i], bytes, in[i], to, bytes),
            bytes);
    }
  }
  if (!transport)
    return;
  transport->close();
  transport->done();
}

Part Channel::part(const CollectiveDesc &desc, int item, int r) const {
  return partOf(desc, item, r, size());
}

using Reduction = decltype(Kernels::sumF32);

static Reduction reductionFor(const CollectiveDesc &desc) {
  const Kernels &k = kernels();
  bool sum = desc.reduce == ReduceKind::Sum;
  if (desc.in == DType::F32 && desc.out == DType::F32)
    return sum ? k.sumF32 : k.maxF32;
  if (desc.in == DType::BF16 && desc.out == DType::F32 && sum)
    return k.sumBF16;
  if (desc.in == DType::I64 && desc.out == DType::I64 && sum)
    return k.sumI64;
  return nullptr;
}

bool fsdp::rt::isSupported(const CollectiveDesc &desc) {
  return !isReduction(desc.kind) || reductionFor(desc);
}

/// The all-to-all of the pieces of every item; `pieces` then says where each
/// rank's contribution to the own part lies, or in two levels each node's.
void Channel::exchange(const CollectiveDesc &desc, const Ptr *in,
                       const Ptr *workspace) {
  if (!transport)
    return keepOwn(desc, in);
  transport->open();
  for (int i = 0; i < desc.items; ++i)
    if (hasTwoLevels(desc, i))
      exchangeInside(desc, i, in[i], workspace[i]);
    else
      exchangeItem(desc, i, in[i], workspace[i]);
  transport->close();
  if (!hasTwoLevels(desc))
    return;
  for (int i = 0; i < desc.items; ++i)
    if (hasTwoLevels(desc, i))
      addInside(desc, i, workspace[i]);
  transport->open();
  for (int i = 0; i < desc.items; ++i)
    if (hasTwoLevels(desc, i))
      exchangeBetween(desc, i, workspace[i]);
  transport->close();
}

/// A rank that is alone has the only contributions.
void Channel::keepOwn(const CollectiveDesc &desc, const Ptr *in) {
  for (int i = 0; i < desc.items; ++i)
    piece(i, me) = in[i] + part(desc, i, me).offset * sizeOf(desc.in);
}

void Channel::exchangeItem(const CollectiveDesc &desc, int item, std::byte *in,
                           std::byte *space) {
  int64_t element = sizeOf(desc.in);
  Part mine = part(desc, item, me);
  int64_t slot = pieceElements(desc, item, size()) * element;
  std::byte *source = in + mine.offset * element;
  for (int p = 0; p < size(); ++p) {
    if (p == me) {
      piece(item, p) = source;
      continue;
    }
    Part theirs = part(desc, item, p);
    piece(item, p) =
        transport->swap(p, in + theirs.offset * element, theirs.count * element,
                        source, space, mine.count * element);
    space += slot;
  }
}

/// The first level: from every rank of the own node what it has of the pieces
/// of the ranks at the own place, one for each node.
void Channel::exchangeInside(const CollectiveDesc &desc, int item,
                             std::byte *in, std::byte *space) {
  int64_t element = sizeOf(desc.in), each = pieceElements(desc, item, size());
  space += twoLevelBytes(desc, each, size()).sums;
  for (int node = 0; node < levels->nodes(); ++node) {
    Part mine = part(desc, item, levels->position(node, levels->place));
    std::byte *source = in + mine.offset * element;
    for (int place = 0; place < levels->places(); ++place) {
      const void *&found = piece(item, node * levels->places() + place);
      if (place == levels->place) {
        found = source;
        continue;
      }
      Part theirs = part(desc, item, levels->position(node, place));
      found = transport->swap(
          levels->position(levels->node, place), in + theirs.offset * element,
          theirs.count * element, source, space, mine.count * element);
      space += each * element;
    }
  }
}

/// The own node's sum of each of these pieces.
void Channel::addInside(const CollectiveDesc &desc, int item,
                        std::byte *space) {
  int64_t slot = pieceElements(desc, item, size()) * sizeOf(DType::F32);
  for (int node = 0; node < levels->nodes(); ++node)
    reductionFor(desc)(
        &piece(item, node * levels->places()), levels->inside,
        part(desc, item, levels->position(node, levels->place)).count,
        space + node * slot);
}

/// The second level: from the ranks at the own place of all nodes, what their
/// nodes have of the own piece.
void Channel::exchangeBetween(const CollectiveDesc &desc, int item,
                              std::byte *space) {
  int64_t element = sizeOf(DType::F32),
          each = pieceElements(desc, item, size()),
          mine = part(desc, item, me).count * element;
  std::byte *sums = space, *own = sums + levels->node * each * element;
  space += twoLevelBytes(desc, each, size()).sums;
  for (int node = 0; node < levels->nodes(); ++node) {
    if (node == levels->node) {
      piece(item, node) = own;
      continue;
    }
    int peer = levels->position(node, levels->place);
    piece(item, node) = transport->swap(peer, sums + node * each * element,
                                        part(desc, item, peer).count * element,
                                        own, space, mine);
    space += each * element;
  }
}

/// Reduces the own part of an item to `out`.
void Channel::reduce(const CollectiveDesc &desc, int item, std::byte *out) {
  int64_t count = part(desc, item, me).count;
  if (transport && hasTwoLevels(desc, item))
    kernels().sumF32(&piece(item, 0), levels->between, count, out);
  else
    reductionFor(desc)(&piece(item, 0), tree, count, out);
}

void Channel::reduceScatter(const CollectiveDesc &desc, const Ptr *in,
                            const Ptr *out, const Ptr *workspace) {
  exchange(desc, in, workspace);
  int64_t element = sizeOf(desc.out);
  for (int i = 0; i < desc.items; ++i) {
    reduce(desc, i, out[i]);
    int64_t count = part(desc, i, me).count;
    std::memset(out[i] + count * element, 0,
                size_t((desc.item[i].shard - count) * element));
  }
  if (transport)
    transport->done();
}

void Channel::allReduce(const CollectiveDesc &desc, const Ptr *in,
                        const Ptr *out, const Ptr *workspace) {
  exchange(desc, in, workspace);
  int64_t element = sizeOf(desc.out);
  bool anyLarge = false;
  for (int i = 0; i < desc.items; ++i) {
    if (isSmall(desc, desc.item[i].full) && transport) {
      keepPieces(desc, i, workspace[i]);
      continue;
    }
    anyLarge = transport != nullptr;
    reduce(desc, i, out[i] + part(desc, i, me).offset * element);
  }
  if (!transport)
    return;
  if (anyLarge)
    gatherParts(desc, out);
  transport->done();
  // The output of a small item may be its input, which peers were reading.
  for (int i = 0; i < desc.items; ++i)
    if (isSmall(desc, desc.item[i].full))
      reduce(desc, i, out[i]);
}

/// Copies peers' pieces that are read in place to the workspace.
void Channel::keepPieces(const CollectiveDesc &desc, int item,
                         std::byte *space) {
  int64_t bytes = desc.item[item].full * sizeOf(desc.in);
  for (int p = 0; p < size(); ++p) {
    if (p == me)
      continue;
    const void *&kept = piece(item, p);
    place(space, static_cast<const std::byte *>(kept), bytes);
    kept = space;
    space += bytes;
  }
}

/// The second half of an all-reduce: every rank's reduced part to everybody. In
/// two levels to its place in all nodes first, from where each node's ranks get
/// it.
void Channel::gatherParts(const CollectiveDesc &desc, const Ptr *out) {
  auto round = [&](auto gather) {
    transport->open();
    for (int i = 0; i < desc.items; ++i)
      if (!isSmall(desc, desc.item[i].full))
        gather(i);
    transport->close();
  };
  if (desc.nodeRanks <= 1)
    return round([&](int item) {
      for (int p = 0; p < size(); ++p)
        gatherPart(desc, item, p, me, p, out[item]);
    });
  round([&](int item) {
    for (int node = 0; node < levels->nodes(); ++node) {
      int peer = levels->position(node, levels->place);
      gatherPart(desc, item, peer, me, peer, out[item]);
    }
  });
  round([&](int item) {
    for (int place = 0; place < levels->places(); ++place)
      for (int node = 0; node < levels->nodes(); ++node)
        gatherPart(desc, item, levels->position(levels->node, place),
                   levels->position(node, levels->place),
                   levels->position(node, place), out[item]);
  });
}

/// Sends the part of position `mine` to `peer`, and gets that of `theirs`.
void Channel::gatherPart(const CollectiveDesc &desc, int item, int peer,
                         int mine, int theirs, std::byte *out) {
  if (peer == me)
    return;
  int64_t element = sizeOf(desc.out);
  Part sent = part(desc, item, mine), got = part(desc, item, theirs);
  std::byte *to = out + got.offset * element;
  int64_t bytes = got.count * element;
  place(to,
        transport->swap(peer, out + sent.offset * element, sent.count * element,
                        to, to, bytes),
        bytes);
}
