//===- CollectivePieces.h - Who reduces what --------------------*- C++ -*-===//
//
// Shared by both targets and the compiler: a reduction is an all-to-all of
// pieces. In two levels, a rank first gets from the ranks of its node what they
// have of the pieces of all ranks at its place of a node, one for every node,
// and adds up each. These partial sums, in f32, then go to the ranks whose
// pieces they are: one message for every other node.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TARGET_COLLECTIVEPIECES_H
#define FSDP_TARGET_COLLECTIVEPIECES_H

#include "fsdp/Runtime/Types.h"

namespace fsdp::rt {

/// Whether a kind adds up what all ranks have, or takes the maximum.
inline bool isReduction(CollectiveKind kind) {
  return kind == CollectiveKind::ReduceScatter ||
         kind == CollectiveKind::AllReduce;
}

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

/// Whether item `item` is added up in two levels: where nodes are stated, all
/// but small all-reduces.
bool hasTwoLevels(const CollectiveDesc &desc, int item);
/// Whether any item is.
bool hasTwoLevels(const CollectiveDesc &desc);

/// What a sum in two levels keeps beside what it sends and gives, in bytes, if
/// `elements` of every piece go at once: f32 partial sums of the own node for
/// every node, then what arrives, from the own node or from others.
struct TwoLevelBytes {
  int64_t sums, received;
};
TwoLevelBytes twoLevelBytes(const CollectiveDesc &desc, int64_t elements,
                            int64_t ranks);

/// Workspace bytes of item `item` of a reduction over `ranks` ranks: room for
/// every rank's piece in the wire type, or for that and partial sums.
int64_t collectiveWorkspaceBytes(const CollectiveDesc &desc, int item,
                                 int64_t ranks);

} // namespace fsdp::rt

#endif // FSDP_TARGET_COLLECTIVEPIECES_H
