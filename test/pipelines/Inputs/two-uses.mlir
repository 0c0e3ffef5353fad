nn.parameter @layers.0.wq.weight : tensor<4xf32> init #nn.zeros
func.func @a(%x: tensor<4xf32> {nn.name = "x"}) {
  return
}
func.func @b(%x: tensor<8xf32> {nn.name = "x"}) {
  return
}
