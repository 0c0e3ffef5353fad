//===- ShardedLayers.h - Layers over dimensions that are sharded -*- C++
//-*-===//
//
// What a policy says of a weight, it says of what belongs to it: a bias, and a
// norm over all that a projection produces. Layers that would need a whole
// dimension where ranks have shards of it become ops that need none.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_PASSES_PLACEMENT_SHARDEDLAYERS_H
#define FSDP_PASSES_PLACEMENT_SHARDEDLAYERS_H

#include "passes/Placement/PolicyApplier.h"

namespace fsdp {

/// Of a linear layer whose weight is sharded along its outputs: its bias, and
/// the weight of an RMS norm that reads its result, are sharded alike. What a
/// rule has placed stays.
void placeFollowers(mlir::ModuleOp module, ParameterPlaces &places);

/// Rewrites the layers of `program` whose weights are sharded along what they
/// sum over:
///   - a linear layer with a bias: the bias is added to the sum over the ranks;
///   - an RMS norm: ranks add up the squares of a row, one number per row, and
///     in the backward pass one more.
/// Called before fsdp-shard replaces reads.
void rewriteShardedLayers(mlir::func::FuncOp program,
                          const ParameterPlaces &places);

} // namespace fsdp

#endif // FSDP_PASSES_PLACEMENT_SHARDEDLAYERS_H
