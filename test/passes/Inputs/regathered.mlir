// A gathered tensor, and one that each rank has of its own.
fsdp.mesh @mesh ["dp" = 4, "tp" = 2]
func.func @f(%own: tensor<8x8xf32> {nn.name = "own"}, %part: tensor<2x8xf32> {nn.name = "part"}) -> (tensor<8x8xf32> {nn.name = "y"}, tensor<8x8xf32> {nn.name = "z"}) attributes {fsdp.local} {
  %whole = fsdp.all_gather %part on @mesh["dp"] dim 0 : tensor<2x8xf32> -> tensor<8x8xf32>
  %y = nn.silu %whole : tensor<8x8xf32>
  %z = nn.silu %own : tensor<8x8xf32>
  return %y, %z : tensor<8x8xf32>, tensor<8x8xf32>
}
