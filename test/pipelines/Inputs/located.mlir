func.func @a(%x: tensor<4xf32> {nn.name = "x"} loc("layers.0")) {
  return
}
func.func @b(%x: tensor<8xf32> {nn.name = "x"} loc("layers.1")) {
  return
}
