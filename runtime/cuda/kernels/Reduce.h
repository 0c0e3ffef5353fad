//===- Reduce.h - The local half of a reduction over ranks ------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CUDA_KERNELS_REDUCE_H
#define FSDP_RUNTIME_CUDA_KERNELS_REDUCE_H

#include "fsdp/Runtime/Runtime.h"
#include "runtime/kernels/RankTree.h"

namespace fsdp::rt {

/// The contributions of a group's ranks to tensors that one launch reduces; a
/// kernel's parameters may have 4 KiB.
struct Pieces {
  static constexpr int kItems = 48;
  /// To `count` elements of a tensor: that of position `me` lies at `own`,
  /// those of the others at `others`, `slot` elements apart. `out` may be
  /// `own`.
  struct Item {
    Ptr own, others, out;
    int64_t slot, count; // one element at least
  };

  int me, items = 0;
  RankTree ranks;
  Item item[kItems];
  /// Item i has the blocks from firstBlock[i] on: set by reducePieces().
  int64_t firstBlock[kItems + 1];
};

/// False if there is no kernel for these types.
bool canReduce(ReduceKind kind, DType in, DType out);

/// out[i] = an item's element i of all ranks, combined in the order of the
/// tree. One launch, or none without items.
void reducePieces(Context &c, Stream stream, ReduceKind kind, DType in,
                  Pieces &pieces);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_KERNELS_REDUCE_H
