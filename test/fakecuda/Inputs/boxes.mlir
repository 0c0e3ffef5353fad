// Boxes of tensors that are copied into others, by vectors of 16 bytes and,
// where sizes or places are no multiples of it, by elements.
nn.parameter @wide : tensor<6x40xf32> init #nn.normal<std = 1.0>
nn.parameter @deep : tensor<3x5x14xf32> init #nn.normal<std = 1.0>

func.func @boxes() -> (tensor<6x8xf32> {nn.name = "aligned"}, tensor<5x7xf32> {nn.name = "odd"},
    tensor<2x2x8xf32> {nn.name = "deep_box"}, tensor<8x48xbf16> {nn.name = "padded"},
    tensor<6x80xf32> {nn.name = "joined"}, tensor<8x48xf32> {nn.name = "padded_f32"}) {
  %w = nn.read @wide : tensor<6x40xf32>
  %d = nn.read @deep : tensor<3x5x14xf32>
  %a = nn.slice %w [0, 16] : tensor<6x40xf32> to tensor<6x8xf32>
  %o = nn.slice %w [1, 3] : tensor<6x40xf32> to tensor<5x7xf32>
  %b = nn.slice %d [1, 2, 4] : tensor<3x5x14xf32> to tensor<2x2x8xf32>
  %n = nn.cast %w : tensor<6x40xf32> to tensor<6x40xbf16>
  %p = nn.pad %n [1, 8] : tensor<6x40xbf16> to tensor<8x48xbf16>
  %j = nn.concat %w, %w dim 1 : tensor<6x40xf32>, tensor<6x40xf32> to tensor<6x80xf32>
  %q = nn.pad %w [2, 3] : tensor<6x40xf32> to tensor<8x48xf32>
  return %a, %o, %b, %p, %j, %q : tensor<6x8xf32>, tensor<5x7xf32>, tensor<2x2x8xf32>, tensor<8x48xbf16>, tensor<6x80xf32>, tensor<8x48xf32>
}
