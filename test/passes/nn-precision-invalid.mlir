// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect --nn-precision
// RUN: not fsdp-opt %s --split-input-file --nn-precision=wide=nrom 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not fsdp-opt %s --split-input-file --nn-precision=wide=[ 2>&1 | FileCheck %s --check-prefix=PATTERN
// RUN: not fsdp-opt %s --split-input-file --nn-precision=compute_dtype=f16 2>&1 | FileCheck %s --check-prefix=DTYPE

// NAME: error: wide: "nrom" names no parameter and no module
// PATTERN: error: wide: "[" is no pattern: invalid glob pattern, unmatched '['
// DTYPE: Cannot find option named 'f16'

// Numerical tests work in f64; nothing of that would be left in bf16.
nn.parameter @w : tensor<4xf64> init #nn.zeros
func.func @f64() -> tensor<4xf64> {
  // expected-error @+1 {{'nn.read' op is in f64; nn-precision takes an f32 program}}
  %w = nn.read @w : tensor<4xf64>
  return %w : tensor<4xf64>
}

// -----

// Gradients would keep the types of the f32 program.
nn.parameter @w : tensor<4xf32> init #nn.zeros
func.func @train() -> tensor<f32> {
  %w = nn.read @w : tensor<4xf32>
  %loss = nn.sum %w [0] : tensor<4xf32> to tensor<f32>
  // expected-error @+1 {{'nn.seed' op shows that the program is already differentiated; run nn-precision before nn-differentiate}}
  %one = nn.seed %loss : tensor<f32>
  %g = nn.broadcast %one [] : tensor<f32> to tensor<4xf32>
  nn.gradient @w, %g : tensor<4xf32>
  return %loss : tensor<f32>
}

// -----

// What the table does not name, the pass does not touch.
func.func @norm(%x: tensor<4xf32>) -> tensor<f32> {
  // expected-error @+1 {{'nn.abs_max' op has no precision rule; run nn-precision on the traced program, before fsdp-shard and nn-differentiate}}
  %m = nn.abs_max %x : tensor<4xf32> -> tensor<f32>
  return %m : tensor<f32>
}

// -----

// The walk needs one order of all ops.
// expected-error @+1 {{a program is one block without branches}}
func.func @branches(%x: tensor<4xf32>) -> tensor<4xf32> {
  "test.branch"()[^end] : () -> ()
^end:
  return %x : tensor<4xf32>
}
