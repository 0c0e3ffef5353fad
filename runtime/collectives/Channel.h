//===- Channel.h - Collectives of one stream and group ----------*- C++ -*-===//
//
// Reductions keep a fixed order: an all-to-all of the pieces, then one local
// kernel that adds them in f32, in the order of RankTree.h.
// An all-reduce is that and an all-gather of the pieces. How
// bytes travel (a peer's arena mapped here, or MPI) never changes a bit.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_COLLECTIVES_CHANNEL_H
#define FSDP_RUNTIME_COLLECTIVES_CHANNEL_H

#include "Groups.h"
#include "fsdp/Target/CollectivePieces.h"
#include "runtime/core/Arena.h"
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
  /// order. `index` is the channel's number. What `setting` refers to outlives
  /// the last run.
  Channel(const ChannelSetting &setting, const GroupDesc &group, int index,
          Stream stream);
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
  void reduce(const CollectiveDesc &desc, int item, std::byte *out);
  void keepPieces(const CollectiveDesc &desc, int item, std::byte *space);
  void gatherParts(const CollectiveDesc &desc, const Ptr *out);

  std::vector<int> ranks; // of the job, in the group's order
  RankTree tree;
  int me = 0; // position in `ranks`
  const int index;
  const Stream stream;
  const double timeout; // seconds
  HostProgress &progress;
  LivenessMonitor *const monitor;
  uint64_t current = 0; // the counter of the last collective
  std::unique_ptr<Transport> transport;
  std::vector<const void *> pieces; // of one bucket, by item and position
};

/// False if there is no kernel for the reduction's types.
bool isSupported(const CollectiveDesc &desc);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COLLECTIVES_CHANNEL_H
