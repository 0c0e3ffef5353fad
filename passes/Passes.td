//===- Passes.td - The passes, in pipeline order --------------*- tablegen -*-===//
//
// The manual: one entry per pass, in the order in which the pipeline runs
// them; the reference in docs/ is generated from it. One pass is one file of
// the same name (fsdp-shard: Shard.cpp, exec-plan-memory: PlanMemory.cpp) and one lit
// test.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_PASSES
#define FSDP_PASSES

include "mlir/Pass/PassBase.td"

#endif // FSDP_PASSES
