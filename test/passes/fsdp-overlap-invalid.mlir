// RUN: fsdp-opt %s --fsdp-overlap --split-input-file --verify-diagnostics

// Members of a bucket start and end together, so one decision is for all, also
// where fsdp-bucket has not merged them.
fsdp.mesh @mesh ["dp_shard" = 2]
nn.parameter @v : tensor<8xf32> init #nn.zeros
nn.parameter @w : tensor<8xf32> init #nn.zeros
func.func @f(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<8xf32> {nn.name = "y"}) {
  // expected-note @below {{the first member has #fsdp.decision<bucket = "all", overlap = true, prefetch = 1>}}
  %v = fsdp.all_gather %x on @mesh["dp_shard"] dim 0 {fsdp.decision = #fsdp.decision<bucket = "all", overlap = true, prefetch = 1>, fsdp.origin = #fsdp.origin<"fwd v all_gather">, fsdp.parameters = [@v]} : tensor<4xf32> -> tensor<8xf32>
  // expected-error @below {{is in the bucket 'all' with another decision than its first member; make their 'fsdp.decision' equal, or put one of them into another bucket}}
  // expected-note @below {{this one has #fsdp.decision<bucket = "all", overlap = true, prefetch = 2>}}
  %w = fsdp.all_gather %x on @mesh["dp_shard"] dim 0 {fsdp.decision = #fsdp.decision<bucket = "all", overlap = true, prefetch = 2>, fsdp.origin = #fsdp.origin<"fwd w all_gather">, fsdp.parameters = [@w]} : tensor<4xf32> -> tensor<8xf32>
  %y = nn.add %v, %w : tensor<8xf32>
  return %y : tensor<8xf32>
}
