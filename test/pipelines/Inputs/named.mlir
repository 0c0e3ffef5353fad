nn.parameter @layers.0.wq.weight : tensor<2x3x4xf32> init #nn.zeros
func.func @a() -> (tensor<2x4xf32> {nn.name = "y"}) {
  %w = nn.read @layers.0.wq.weight : tensor<2x3x4xf32>
  %y = nn.sum %w [1] {nn.module = "layers.0.wq"} : tensor<2x3x4xf32> to tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
