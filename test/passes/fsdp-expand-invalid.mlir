// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --fsdp-expand

// Cutting a replicated tensor without reducing it has no collective.
fsdp.mesh @mesh ["dp_shard" = 2]
func.func @slices(%w: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{fsdp-expand can only gather to #fsdp.replicated or reduce from it}}
  %s = fsdp.redistribute %w on @mesh["dp_shard"] from #fsdp.replicated to #fsdp.shard<0, ["dp_shard"]> grad average f32 : tensor<8xf32> -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

// Flat buckets are not expanded yet.
fsdp.mesh @mesh ["dp_shard" = 2]
func.func @flat(%w: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{fsdp-expand knows no flat buckets}}
  %s = fsdp.redistribute %w on @mesh["dp_shard"] from #fsdp.flat<"layers.0", 0> to #fsdp.replicated grad average f32 : tensor<4xf32> -> tensor<8xf32>
  return %s : tensor<8xf32>
}
