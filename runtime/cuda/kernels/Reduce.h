//===- Reduce.h - The local half of a reduction over ranks ------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CUDA_KERNELS_REDUCE_H
#define FSDP_RUNTIME_CUDA_KERNELS_REDUCE_H

#include "fsdp/Runtime/Runtime.h"
#include "runtime/kernels/RankTree.h"

namespace fsdp::rt {

/// The contributions of a group's ranks to `count` elements: that of position
/// `me` lies at `own`, those of the others at `others`, `slot` elements apart.
struct Pieces {
  Ptr own, others;
  int64_t slot, count;
  int me;
  RankTree ranks;
};

/// False if there is no kernel for these types.
bool canReduce(ReduceKind kind, DType in, DType out);

/// out[i] = the pieces' element i, combined in the order of the tree.
/// `out` may be `own`.
void reducePieces(Context &c, Stream stream, ReduceKind kind, DType in,
                  const Pieces &pieces, Ptr result);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_KERNELS_REDUCE_H
