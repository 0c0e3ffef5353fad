nn.parameter @layers.0.wq.weight : tensor<2x3x4xf32> init #nn.zeros
func.func @a() -> (tensor<2x4xf32> {nn.name = "y"}) {
  %layers.0.wq = nn.read @layers.0.wq.weight : tensor<2x3x4xf32>
  %layers.0.wq_1 = nn.sum %layers.0.wq [1] : tensor<2x3x4xf32> to tensor<2x4xf32>
  return %layers.0.wq_1 : tensor<2x4xf32>
}
