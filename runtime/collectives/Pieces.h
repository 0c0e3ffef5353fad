//===- Pieces.h - Who reduces what, and with whom ---------------*- C++ -*-===//
//
// Shared by both targets: a reduction is an all-to-all of pieces, and the
// ranks of a group follow from the mesh.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_COLLECTIVES_PIECES_H
#define FSDP_RUNTIME_COLLECTIVES_PIECES_H

#include "../kernels/RankTree.h"
#include "fsdp/Runtime/Types.h"
#include <vector>

namespace fsdp::rt {

/// True if an all-reduce of `full` elements sends whole tensors.
bool isSmall(const CollectiveDesc &desc, int64_t full);

/// Elements of an item that one rank reduces.
int64_t pieceElements(const CollectiveDesc &desc, int item, int64_t ranks);

/// Where a rank's part of an item lies, in elements.
struct Part {
  int64_t offset, count;
};
/// Piece `index` of `full` in pieces of `size`; the last ones may be short or
/// empty.
Part pieceAt(int64_t full, int64_t size, int64_t index);
/// The part of rank `r` of `ranks`. In a small all-reduce every rank's part is
/// the whole tensor.
Part partOf(const CollectiveDesc &desc, int item, int r, int64_t ranks);

/// The ranks that differ from `rank` only along the group's axes, in order,
/// the first axis slowest.
std::vector<int> groupRanks(const GroupDesc &group,
                            const std::vector<int64_t> &meshAxes, int rank);

/// The order in which a group's contributions are combined. It is that of the
/// mesh, in whatever order the group lists its axes. Throws fsdp::Error if the
/// group has more than RankTree::kMaxAxes axes.
RankTree rankTree(const GroupDesc &group, const std::vector<int64_t> &meshAxes);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COLLECTIVES_PIECES_H
