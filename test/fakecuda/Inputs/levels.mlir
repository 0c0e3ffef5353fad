// Sums of uneven tensors over RANKS ranks: scattered in bf16 and f32, gathered,
// and a tensor that is sent whole. With ROWS of millions there are rounds.
fsdp.mesh @mesh ["dp_shard" = RANKS] {node_size = NODE : i64}
nn.parameter @w : tensor<ROWSxf32> init #nn.normal<std = 1.0> {fsdp.placement = #fsdp.placement<[{| "dp_shard"}]>}
nn.parameter @v : tensor<9001xf32> init #nn.normal<std = 1.0> {fsdp.placement = #fsdp.placement<[{| "dp_shard"}]>}
nn.parameter @u : tensor<100xf32> init #nn.normal<std = 1.0> {fsdp.placement = #fsdp.placement<[{| "dp_shard"}]>}
func.func @sums() -> (tensor<2xi64> {nn.name = "digits"}, tensor<100xf32> {nn.name = "small"}, tensor<VSHARDxf32> {nn.name = "part"}) {
  %ws = nn.read @w : tensor<WSHARDxf32>
  %vs = nn.read @v : tensor<VSHARDxf32>
  %us = nn.read @u : tensor<USHARDxf32>
  %w = fsdp.all_gather %ws on @mesh["dp_shard"] dim 0 : tensor<WSHARDxf32> -> tensor<ROWSxf32>
  %v = fsdp.all_gather %vs on @mesh["dp_shard"] dim 0 : tensor<VSHARDxf32> -> tensor<9001xf32>
  %u = fsdp.all_gather %us on @mesh["dp_shard"] dim 0 : tensor<USHARDxf32> -> tensor<100xf32>
  %b = nn.cast %w : tensor<ROWSxf32> to tensor<ROWSxbf16>
  %c = nn.cast %v : tensor<9001xf32> to tensor<9001xbf16>
  %g, %k = fsdp.reduce_scatter sum %b, %c on @mesh["dp_shard"] dim 0 : tensor<ROWSxbf16>, tensor<9001xbf16> -> tensor<WSHARDxf32>, tensor<VSHARDxf32>
  %h = fsdp.reduce_scatter sum %v on @mesh["dp_shard"] dim 0 : tensor<9001xf32> -> tensor<VSHARDxf32>
  %r, %s = fsdp.all_reduce sum %w, %u on @mesh["dp_shard"] : tensor<ROWSxf32>, tensor<100xf32> -> tensor<ROWSxf32>, tensor<100xf32>
  %m = nn.abs_max %r : tensor<ROWSxf32> -> tensor<f32>
  %d = nn.sum_squares %m, %r : tensor<f32>, tensor<ROWSxf32> -> tensor<2xi64>
  nn.gradient @w, %g : tensor<WSHARDxf32>
  nn.gradient @v, %h : tensor<VSHARDxf32>
  return %d, %s, %k : tensor<2xi64>, tensor<100xf32>, tensor<VSHARDxf32>
}
