nn.parameter @w : tensor<4x8xf32> init #nn.normal<std = 0.02, cut = 3.0>
func.func @forward(%x: tensor<2x8xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.read @w : tensor<4x8xf32>
  %y = nn.linear %x, %w : tensor<2x8xf32>, tensor<4x8xf32> -> tensor<2x4xf32>
  %loss = nn.sum %y [0, 1] : tensor<2x4xf32> to tensor<f32>
  return %loss : tensor<f32>
}
