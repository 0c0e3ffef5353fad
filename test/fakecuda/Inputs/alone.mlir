// A mesh of one rank: collectives are copies.
fsdp.mesh @mesh ["dp_shard" = 1]
nn.parameter @w : tensor<1003xf32> init #nn.normal<std = 1.0> {fsdp.placement = #fsdp.placement<[{| "dp_shard"}]>}
func.func @sums() -> (tensor<1003xf32> {nn.name = "sum"}) {
  %s = nn.read @w : tensor<1003xf32>
  %w = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<1003xf32> -> tensor<1003xf32>
  %g = fsdp.reduce_scatter sum %w on @mesh["dp_shard"] dim 0 : tensor<1003xf32> -> tensor<1003xf32>
  %r = fsdp.all_reduce sum %w on @mesh["dp_shard"] : tensor<1003xf32> -> tensor<1003xf32>
  nn.gradient @w, %g : tensor<1003xf32>
  return %r : tensor<1003xf32>
}
