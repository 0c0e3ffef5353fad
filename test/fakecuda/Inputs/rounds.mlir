// What three other ranks send of 23,500,003 numbers are 70 MB.
fsdp.mesh @mesh ["dp_shard" = 4]
nn.parameter @w : tensor<23500003xf32> init #nn.normal<std = 1.0> {fsdp.placement = #fsdp.placement<[{| "dp_shard"}]>}
func.func @sums() -> (tensor<2xi64> {nn.name = "digits"}) {
  %s = nn.read @w : tensor<5875001xf32>
  %w = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<5875001xf32> -> tensor<23500003xf32>
  %g = fsdp.reduce_scatter sum %w on @mesh["dp_shard"] dim 0 : tensor<23500003xf32> -> tensor<5875001xf32>
  %r = fsdp.all_reduce sum %w on @mesh["dp_shard"] : tensor<23500003xf32> -> tensor<23500003xf32>
  %m = nn.abs_max %r : tensor<23500003xf32> -> tensor<f32>
  %d = nn.sum_squares %m, %r : tensor<f32>, tensor<23500003xf32> -> tensor<2xi64>
  nn.gradient @w, %g : tensor<5875001xf32>
  return %d : tensor<2xi64>
}
