// RUN: fsdp-opt %s --exec-lower="target=cpu" | FileCheck %s --check-prefixes=CHECK,LIBRARY
// RUN: fsdp-opt %s --exec-lower="target=cpu plain-attention=true" | FileCheck %s --check-prefixes=CHECK,PLAIN
// RUN: fsdp-opt %s --exec-lower="target=cuda" 2> %t.said | FileCheck %s --check-prefixes=CHECK,CUDA
// RUN: FileCheck %s --check-prefix=SAID --input-file %t.said
// RUN: fsdp-opt %s --exec-lower="target=cuda plain-attention=true" 2>&1 | FileCheck %s --check-prefix=ASKED
// RUN: fsdp-opt %s --exec-lower="target=cuda fast-attention=true" 2>/dev/null | FileCheck %s --check-prefix=FAST

// RUN: sed -n 's#^// INPUT: ##p' %s | not fsdp-opt --exec-lower="target=cpu plain-attention=true" 2>&1 | FileCheck %s --check-prefix=LARGE

// The library's attention, or the runtime's own: where it is asked for, and for
// f32 on a GPU. Its workspace has a number per query and head.
// CHECK-LABEL: exec.program @f32
// LIBRARY: exec.attention on compute({{.*}} workspace({{.*}}) {causal, scale
// LIBRARY: exec.attention_grad on compute({{.*}}) {causal, scale
// PLAIN: exec.attention on compute({{.*}}memref<2x4x8xf32>) {causal, plain, scale
// PLAIN: exec.attention_grad on compute({{.*}} workspace({{.*}} : memref<256xi8>) {causal, plain, scale
// CUDA: exec.attention on compute({{.*}}) {causal, plain, scale
// CUDA: exec.attention_grad on compute({{.*}}) {causal, plain, scale
func.func @f32(%q: tensor<2x8x4x16xf32> {nn.name = "q"}, %k: tensor<2x8x2x16xf32> {nn.name = "k"})
    -> (tensor<2x8x4x16xf32> {nn.name = "dq"}, tensor<2x8x2x16xf32> {nn.name = "dk"}, tensor<2x8x2x16xf32> {nn.name = "dv"}) {
  %o, %lse = nn.attention %q, %k, %k scale 0.25 {causal} : tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x4x8xf32>
  %dq, %dk, %dv = nn.attention_grad %q, %k, %k, %o, %lse, %o scale 0.25 {causal} : tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x4x8xf32>
  return %dq, %dk, %dv : tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>
}

// cuDNN has attention in bf16.
// CHECK-LABEL: exec.program @bf16
// LIBRARY: exec.attention on compute({{.*}}) {causal, scale
// PLAIN: exec.attention on compute({{.*}}) {causal, plain, scale
// CUDA: exec.attention on compute({{.*}}) {causal, scale
func.func @bf16(%q: tensor<2x8x4x16xbf16> {nn.name = "narrow_q"}, %k: tensor<2x8x2x16xbf16> {nn.name = "narrow_k"})
    -> (tensor<2x8x4x16xbf16> {nn.name = "narrow_o"}) {
  %o, %lse = nn.attention %q, %k, %k scale 0.25 {causal} : tensor<2x8x4x16xbf16>, tensor<2x8x2x16xbf16>, tensor<2x4x8xf32>
  return %o : tensor<2x8x4x16xbf16>
}

// Fast: the library's gradient alone, since sums of the forward pass have one
// order, and reference attention has one.
// FAST-LABEL: exec.program @f32
// FAST: exec.attention_grad on compute({{.*}}) {causal, plain, scale
// FAST-LABEL: exec.program @bf16_grad
// FAST: exec.attention on compute({{.*}}) {causal, scale
// FAST: exec.attention_grad on compute({{.*}}) {causal, fast, scale
// CHECK-LABEL: exec.program @bf16_grad
func.func @bf16_grad(%q: tensor<2x8x4x16xbf16> {nn.name = "narrow_q"}, %k: tensor<2x8x2x16xbf16> {nn.name = "narrow_k"})
    -> (tensor<2x8x4x16xbf16> {nn.name = "narrow_dq"}) {
  %o, %lse = nn.attention %q, %k, %k scale 0.25 {causal} : tensor<2x8x4x16xbf16>, tensor<2x8x2x16xbf16>, tensor<2x4x8xf32>
  %dq, %dk, %dv = nn.attention_grad %q, %k, %k, %o, %lse, %o scale 0.25 {causal} : tensor<2x8x4x16xbf16>, tensor<2x8x2x16xbf16>, tensor<2x4x8xf32>
  return %dq : tensor<2x8x4x16xbf16>
}

// A window is the library's on both targets. A cap is not cuDNN's: one warning
// says where, if nobody has asked for the runtime's own attention.
// CHECK-LABEL: exec.program @views
// LIBRARY: exec.attention on compute({{.*}}) {causal, nn.module = "layers.0", scale = 2.500000e-01 : f64, window = 3 : i64}
// CUDA: exec.attention on compute({{.*}}) {causal, nn.module = "layers.0", scale = 2.500000e-01 : f64, window = 3 : i64}
// PLAIN: exec.attention on compute({{.*}}) {causal, nn.module = "layers.0", plain, scale = 2.500000e-01 : f64, window = 3 : i64}
// LIBRARY: exec.attention on compute({{.*}}) {cap = 5.000000e+01 : f64, causal, nn.module = "layers.1", scale
// CUDA: exec.attention on compute({{.*}}) {cap = 5.000000e+01 : f64, causal, nn.module = "layers.1", plain, scale
// CUDA: exec.attention_grad on compute({{.*}}) {cap = 5.000000e+01 : f64, causal, nn.module = "layers.1", plain, scale
// SAID: warning: cuDNN's attention has no cap on scores; the runtime's reference attention, which is slow, computes it in layers.1 and 1 other
// SAID-NOT: warning
// ASKED-NOT: warning
func.func @views(%q: tensor<2x8x4x16xbf16> {nn.name = "narrow_q"}, %k: tensor<2x8x2x16xbf16> {nn.name = "narrow_k"})
    -> (tensor<2x8x4x16xbf16> {nn.name = "a"}, tensor<2x8x4x16xbf16> {nn.name = "b"}, tensor<2x8x4x16xbf16> {nn.name = "c"}, tensor<2x8x4x16xbf16> {nn.name = "d"}) {
  %a, %l = nn.attention %q, %k, %k scale 0.25 {causal, nn.module = "layers.0", window = 3 : i64} : tensor<2x8x4x16xbf16>, tensor<2x8x2x16xbf16>, tensor<2x4x8xf32>
  %b, %m = nn.attention %q, %k, %k scale 0.25 {cap = 50.0 : f64, causal, nn.module = "layers.1"} : tensor<2x8x4x16xbf16>, tensor<2x8x2x16xbf16>, tensor<2x4x8xf32>
  %c, %n = nn.attention %q, %k, %k scale 0.25 {cap = 40.0 : f64, causal, nn.module = "layers.2", window = 3 : i64} : tensor<2x8x4x16xbf16>, tensor<2x8x2x16xbf16>, tensor<2x4x8xf32>
  %d, %dk, %dv = nn.attention_grad %q, %k, %k, %b, %m, %c scale 0.25 {cap = 50.0 : f64, causal, nn.module = "layers.1"} : tensor<2x8x4x16xbf16>, tensor<2x8x2x16xbf16>, tensor<2x4x8xf32>
  return %a, %b, %c, %d : tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>
}

// A head of the runtime's own attention is a row of threads.
// INPUT: func.func @large(%q: tensor<2x8x4x257xf32> {nn.name = "q"}) -> (tensor<2x8x4x257xf32> {nn.name = "o"}) {
// INPUT:   %o, %lse = nn.attention %q, %q, %q scale 0.25 {causal} : tensor<2x8x4x257xf32>, tensor<2x8x4x257xf32>, tensor<2x4x8xf32>
// INPUT:   return %o : tensor<2x8x4x257xf32>
// INPUT: }
// LARGE: error: 'nn.attention' op has heads of 257 elements, but attention without a library takes at most 256
