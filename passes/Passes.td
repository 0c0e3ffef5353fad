//===- Passes.td - The passes ------------------------------*- tablegen -*-===//
//
// The manual: one entry per pass, by level; the reference in docs/ is generated
// from it. Passes of one level stand in pipeline order; Pipelines.cpp says how
// the levels take turns. One pass is one class, one file of its name and one
// lit test of the pass's: fsdp-shard is ShardPass in Placement/ShardPass.cpp
// and test/passes/fsdp-shard.mlir.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_PASSES
#define FSDP_PASSES

include "passes/GraphPasses.td"
include "passes/PlacementPasses.td"
include "passes/SchedulePasses.td"
include "passes/ExecPasses.td"

#endif // FSDP_PASSES
