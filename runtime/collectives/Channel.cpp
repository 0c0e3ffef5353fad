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
                 int index, Stream stream)
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

/// The all-to-all of the pieces of every item; `pieces` then says where each
/// rank's contribution to the own part lies.
void Channel::exchange(const CollectiveDesc &desc, const Ptr *in,
                       const Ptr *workspace) {
  int64_t element = sizeOf(desc.in);
  if (transport)
    transport->open();
  for (int i = 0; i < desc.items; ++i) {
    Part mine = part(desc, i, me);
    int64_t slot = pieceElements(desc, i, size()) * element;
    std::byte *source = in[i] + mine.offset * element;
    std::byte *space = transport ? workspace[i] : nullptr;
    for (int p = 0; p < size(); ++p) {
      const void *&piece = pieces[size_t(i) * ranks.size() + size_t(p)];
      if (p == me) {
        piece = source;
        continue;
      }
      Part theirs = part(desc, i, p);
      piece = transport->swap(p, in[i] + theirs.offset * element,
                              theirs.count * element, source, space,
                              mine.count * element);
      space += slot;
    }
  }
  if (transport)
    transport->close();
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

/// Reduces the own part of an item to `out`.
void Channel::reduce(const CollectiveDesc &desc, int item, std::byte *out) {
  reductionFor(desc)(pieces.data() + size_t(item) * ranks.size(), tree,
                     part(desc, item, me).count, out);
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
    const void *&piece = pieces[size_t(item) * ranks.size() + size_t(p)];
    place(space, static_cast<const std::byte *>(piece), bytes);
    piece = space;
    space += bytes;
  }
}

/// The second half of an all-reduce: every rank's reduced part to everybody.
void Channel::gatherParts(const CollectiveDesc &desc, const Ptr *out) {
  int64_t element = sizeOf(desc.out);
  transport->open();
  for (int i = 0; i < desc.items; ++i) {
    if (isSmall(desc, desc.item[i].full))
      continue;
    Part mine = part(desc, i, me);
    for (int p = 0; p < size(); ++p) {
      if (p == me)
        continue;
      Part theirs = part(desc, i, p);
      std::byte *to = out[i] + theirs.offset * element;
      int64_t bytes = theirs.count * element;
      place(to,
            transport->swap(p, out[i] + mine.offset * element,
                            mine.count * element, to, to, bytes),
            bytes);
    }
  }
  transport->close();
}
