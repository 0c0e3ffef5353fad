//===- Collectives.h - Collectives of one stream and group ------*- C++ -*-===//
//
// Reductions keep a fixed order: an all-to-all of the pieces, then one local
// kernel that adds them in f32, in the order of RankTree.h, and scales once.
// An all-reduce is that and an all-gather of the pieces. How
// bytes travel (a peer's arena mapped here, or MPI) never changes a bit.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_COLLECTIVES_COLLECTIVES_H
#define FSDP_RUNTIME_COLLECTIVES_COLLECTIVES_H

#include "../api/Arena.h"
#include "Pieces.h"
#include <string>
#include <vector>

namespace fsdp::rt {

/// Moves bytes between the ranks of a group, in one total order.
class Transport;

/// A communicator of one group of ranks for one stream.
class Channel {
public:
  /// Collective over the whole job: every rank makes its channels in the same
  /// order. `index` is the channel's number.
  Channel(const Arena &arena, const GroupDesc &group,
          const std::vector<int64_t> &meshAxes, int index, Stream stream,
          double timeoutSeconds, int maxItems);
  ~Channel();

  int size() const { return int(ranks.size()); }
  /// Executes one bucket and returns when its buffers may be reused.
  void run(const CollectiveDesc &desc, const Ptr *in, const Ptr *out,
           const Ptr *workspace);

private:
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
  uint64_t sequence = 0;
  std::unique_ptr<Transport> transport;
  std::vector<const void *> pieces; // of one bucket, by item and position
};

/// False if there is no kernel for the reduction's types.
bool isSupported(const CollectiveDesc &desc);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COLLECTIVES_COLLECTIVES_H
