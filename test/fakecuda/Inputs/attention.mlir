// Attention with windows and caps, of sizes that no block divides.
nn.parameter @query : tensor<2x70x4x12xf32> init #nn.normal<std = 1.0>
nn.parameter @key : tensor<2x70x2x12xf32> init #nn.normal<std = 1.0>
nn.parameter @value : tensor<2x70x2x12xf32> init #nn.normal<std = 1.0>

func.func @both_f32() -> (tensor<2x70x4x12xf32> {nn.name = "both_f32.o"}, tensor<2x4x70xf32> {nn.name = "both_f32.lse"}, tensor<2x70x4x12xf32> {nn.name = "both_f32.dq"},
    tensor<2x70x2x12xf32> {nn.name = "both_f32.dk"}, tensor<2x70x2x12xf32> {nn.name = "both_f32.dv"}) {
  %q = nn.read @query : tensor<2x70x4x12xf32>
  %k = nn.read @key : tensor<2x70x2x12xf32>
  %v = nn.read @value : tensor<2x70x2x12xf32>
  %o, %lse = nn.attention %q, %k, %v scale 0.3 {cap = 1.5 : f64, causal, window = 33 : i64}
      : tensor<2x70x4x12xf32>, tensor<2x70x2x12xf32>, tensor<2x4x70xf32>
  %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %o, %lse, %q scale 0.3 {cap = 1.5 : f64, causal, window = 33 : i64}
      : tensor<2x70x4x12xf32>, tensor<2x70x2x12xf32>, tensor<2x4x70xf32>
  return %o, %lse, %dq, %dk, %dv : tensor<2x70x4x12xf32>, tensor<2x4x70xf32>, tensor<2x70x4x12xf32>, tensor<2x70x2x12xf32>, tensor<2x70x2x12xf32>
}

func.func @both_bf16() -> (tensor<2x70x4x12xbf16> {nn.name = "both_bf16.o"}, tensor<2x4x70xf32> {nn.name = "both_bf16.lse"}, tensor<2x70x4x12xbf16> {nn.name = "both_bf16.dq"},
    tensor<2x70x2x12xbf16> {nn.name = "both_bf16.dk"}, tensor<2x70x2x12xbf16> {nn.name = "both_bf16.dv"}) {
  %qw = nn.read @query : tensor<2x70x4x12xf32>
  %q = nn.cast %qw : tensor<2x70x4x12xf32> to tensor<2x70x4x12xbf16>
  %kw = nn.read @key : tensor<2x70x2x12xf32>
  %k = nn.cast %kw : tensor<2x70x2x12xf32> to tensor<2x70x2x12xbf16>
  %vw = nn.read @value : tensor<2x70x2x12xf32>
  %v = nn.cast %vw : tensor<2x70x2x12xf32> to tensor<2x70x2x12xbf16>
  %o, %lse = nn.attention %q, %k, %v scale 0.3 {cap = 1.5 : f64, causal, nn.module = "layers.0", window = 33 : i64}
      : tensor<2x70x4x12xbf16>, tensor<2x70x2x12xbf16>, tensor<2x4x70xf32>
  %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %o, %lse, %q scale 0.3 {cap = 1.5 : f64, causal, nn.module = "layers.0", window = 33 : i64}
      : tensor<2x70x4x12xbf16>, tensor<2x70x2x12xbf16>, tensor<2x4x70xf32>
  return %o, %lse, %dq, %dk, %dv : tensor<2x70x4x12xbf16>, tensor<2x4x70xf32>, tensor<2x70x4x12xbf16>, tensor<2x70x2x12xbf16>, tensor<2x70x2x12xbf16>
}

func.func @window_bf16() -> (tensor<2x70x4x12xbf16> {nn.name = "window_bf16.o"}, tensor<2x4x70xf32> {nn.name = "window_bf16.lse"}, tensor<2x70x4x12xbf16> {nn.name = "window_bf16.dq"},
    tensor<2x70x2x12xbf16> {nn.name = "window_bf16.dk"}, tensor<2x70x2x12xbf16> {nn.name = "window_bf16.dv"}) {
  %qw = nn.read @query : tensor<2x70x4x12xf32>
  %q = nn.cast %qw : tensor<2x70x4x12xf32> to tensor<2x70x4x12xbf16>
  %kw = nn.read @key : tensor<2x70x2x12xf32>
  %k = nn.cast %kw : tensor<2x70x2x12xf32> to tensor<2x70x2x12xbf16>
  %vw = nn.read @value : tensor<2x70x2x12xf32>
  %v = nn.cast %vw : tensor<2x70x2x12xf32> to tensor<2x70x2x12xbf16>
  %o, %lse = nn.attention %q, %k, %v scale 0.3 {causal, window = 33 : i64}
      : tensor<2x70x4x12xbf16>, tensor<2x70x2x12xbf16>, tensor<2x4x70xf32>
  %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %o, %lse, %q scale 0.3 {causal, window = 33 : i64}
      : tensor<2x70x4x12xbf16>, tensor<2x70x2x12xbf16>, tensor<2x4x70xf32>
  return %o, %lse, %dq, %dk, %dv : tensor<2x70x4x12xbf16>, tensor<2x4x70xf32>, tensor<2x70x4x12xbf16>, tensor<2x70x2x12xbf16>, tensor<2x70x2x12xbf16>
}
