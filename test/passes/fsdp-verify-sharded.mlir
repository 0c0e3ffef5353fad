// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --fsdp-verify-sharded

// Gathered by a redistribute, or by a cast and a gather: both fine. A module
// without a mesh has nothing to prove.
fsdp.mesh @mesh ["dp_shard" = 2]
nn.parameter @w : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.shard<0, ["dp_shard"]>}
func.func @before_expand() -> tensor<8xf32> {
  %s = nn.read @w : tensor<4xf32>
  %w = fsdp.redistribute %s on @mesh["dp_shard"] from #fsdp.shard<0, ["dp_shard"]> to #fsdp.replicated grad average f32 : tensor<4xf32> -> tensor<8xf32>
  return %w : tensor<8xf32>
}
func.func @after_expand() -> tensor<8xbf16> {
  %s = nn.read @w : tensor<4xf32>
  %c = nn.cast %s : tensor<4xf32> to tensor<4xbf16>
  %w = fsdp.all_gather %c on @mesh["dp_shard"] dim 0 : tensor<4xbf16> -> tensor<8xbf16>
  %a, %b = nn.recompute_from %c, %w : tensor<4xbf16>, tensor<8xbf16> -> tensor<4xbf16>, tensor<8xbf16>
  %v = fsdp.all_gather %a on @mesh["dp_shard"] dim 0 : tensor<4xbf16> -> tensor<8xbf16>
  return %v : tensor<8xbf16>
}

// -----

// Rule 1: with a mesh, every parameter has a placement.
fsdp.mesh @mesh ["dp_shard" = 2]
// expected-error @+1 {{has no fsdp.placement although there is a mesh}}
nn.parameter @w : tensor<8xf32> init #nn.zeros

// -----

// Rule 2: the read has the local type.
fsdp.mesh @mesh ["dp_shard" = 2]
nn.parameter @w : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.shard<0, ["dp_shard"]>}
func.func @reads_the_full_tensor() -> tensor<8xf32> {
  // expected-error @+1 {{reads 'tensor<8xf32>' of a parameter whose local type under #fsdp.shard<0, ["dp_shard"]> is 'tensor<4xf32>'}}
  %w = nn.read @w : tensor<8xf32>
  return %w : tensor<8xf32>
}

// -----

// Rule 3: a shard does not reach computation, not even behind a cast.
fsdp.mesh @mesh ["dp_shard" = 2]
nn.parameter @w : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.shard<0, ["dp_shard"]>}
func.func @computes_with_a_shard() -> tensor<4xbf16> {
  // expected-note @+1 {{the shard is read here}}
  %s = nn.read @w : tensor<4xf32>
  %c = nn.cast %s : tensor<4xf32> to tensor<4xbf16>
  // expected-error @+1 {{uses a shard of @w that was never gathered}}
  %n = nn.neg %c : tensor<4xbf16>
  return %n : tensor<4xbf16>
}

// -----

// Rule 4: one redistribute per parameter and program, or a gradient would be
// reduced twice.
fsdp.mesh @mesh ["dp_shard" = 2]
nn.parameter @w : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.shard<0, ["dp_shard"]>}
func.func @redistributes_twice() -> (tensor<8xf32>, tensor<8xf32>) {
  %s = nn.read @w : tensor<4xf32>
  // expected-note @+1 {{the first is here}}
  %v = fsdp.redistribute %s on @mesh["dp_shard"] from #fsdp.shard<0, ["dp_shard"]> to #fsdp.replicated grad average f32 : tensor<4xf32> -> tensor<8xf32>
  %t = nn.read @w : tensor<4xf32>
  // expected-error @+1 {{is a second redistribute of @w: its gradient would be reduced twice}}
  %w = fsdp.redistribute %t on @mesh["dp_shard"] from #fsdp.shard<0, ["dp_shard"]> to #fsdp.replicated grad average f32 : tensor<4xf32> -> tensor<8xf32>
  return %v, %w : tensor<8xf32>, tensor<8xf32>
}
