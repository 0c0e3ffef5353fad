//===- Channel.h - Collectives of one stream and group ----------*- C++ -*-===//
//
// Reductions keep a fixed order: an all-to-all of the pieces, then one local
// kernel that adds them in f32, in the order of RankTree.h. Where nodes are
// stated, both are done twice: inside each node, then between nodes, whose
// partial sums are f32. An all-reduce is that and an all-gather of the pieces.
// How bytes travel (a peer's arena mapped here, or MPI) never changes a bit.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_COLLECTIVES_CHANNEL_H
#define FSDP_RUNTIME_COLLECTIVES_CHANNEL_H

#include "Groups.h"
#include "fsdp/Target/CollectivePieces.h"
#include "runtime/core/Arena.h"
#include <optional>
#include <string>
#include <vector>

namespace fsdp::rt {

class HostProgress;
class LivenessMonitor;
/// Moves bytes between the ranks of a group, in one total order.
class Transport;

/// What the channels of a rank share.
struct ChannelSetting {
  const Arena &arena;
  const std::vector<int64_t> &meshAxes;
  double timeoutSeconds;
  /// The largest number of tensors in a bucket.
  int maxItems;
  HostProgress &progress;
  /// Null without a heartbeat.
  LivenessMonitor *monitor;
};

/// A communicator of one group of ranks for one stream.
class Channel {
public:
  /// Collective over the whole job: every rank makes its channels in the same
  /// order. `index` is the channel's number, `nodeRanks` that of the group's
  /// sums in two levels, or 0. What `setting` refers to outlives the last run.
  Channel(const ChannelSetting &setting, const GroupDesc &group, int nodeRanks,
          int index, Stream stream);
  ~Channel();

  int size() const { return int(ranks.size()); }
  /// Executes one bucket and returns when its buffers may be reused. `counter`
  /// is HostProgress::next's.
  void run(const CollectiveDesc &desc, uint64_t counter, const Ptr *in,
           const Ptr *out, const Ptr *workspace);

private:
  void dispatch(const CollectiveDesc &desc, const Ptr *in, const Ptr *out,
                const Ptr *workspace);
  [[noreturn]] void endLate() const;
  void allGather(const CollectiveDesc &desc, const Ptr *in, const Ptr *out);
  void reduceScatter(const CollectiveDesc &desc, const Ptr *in, const Ptr *out,
                     const Ptr *workspace);
  void allReduce(const CollectiveDesc &desc, const Ptr *in, const Ptr *out,
                 const Ptr *workspace);
  Part part(const CollectiveDesc &desc, int item, int r) const;
  void exchange(const CollectiveDesc &desc, const Ptr *in,
                const Ptr *workspace);
  void keepOwn(const CollectiveDesc &desc, const Ptr *in);
  void exchangeItem(const CollectiveDesc &desc, int item, std::byte *in,
                    std::byte *space);
  void exchangeInside(const CollectiveDesc &desc, int item, std::byte *in,
                      std::byte *space);
  void addInside(const CollectiveDesc &desc, int item, std::byte *space);
  void exchangeBetween(const CollectiveDesc &desc, int item, std::byte *space);
  void reduce(const CollectiveDesc &desc, int item, std::byte *out);
  void keepPieces(const CollectiveDesc &desc, int item, std::byte *space);
  void gatherParts(const CollectiveDesc &desc, const Ptr *out);
  void gatherPart(const CollectiveDesc &desc, int item, int peer, int mine,
                  int theirs, std::byte *out);
  const void *&piece(int item, int at) {
    return pieces[size_t(item) * ranks.size() + size_t(at)];
  }

  std::vector<int> ranks; // of the job, in the group's order
  RankTree tree;
  int me = 0; // position in `ranks`
  std::optional<NodeLevels> levels;
  const int index;
  const Stream stream;
  const double timeout; // seconds
  HostProgress &progress;
  LivenessMonitor *const monitor;
  uint64_t current = 0; // the counter of the last collective
  std::unique_ptr<Transport> transport;
  /// Of one bucket, by item and position; in two levels by node and place, and
  /// then by node.
  std::vector<const void *> pieces;
};

/// False if there is no kernel for the reduction's types.
bool isSupported(const CollectiveDesc &desc);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COLLECTIVES_CHANNEL_H
