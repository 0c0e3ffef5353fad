// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --nn-differentiate

// An op on the path from a trained parameter to the loss needs a reverse rule.
nn.parameter @w : tensor<4x8xf32> init #nn.zeros
func.func @forward() -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.read @w : tensor<4x8xf32>
  // expected-error @+1 {{'nn.abs_max' has no reverse rule but lies between a trained parameter and the loss}}
  %loss = nn.abs_max %w : tensor<4x8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Off that path it does not.
nn.parameter @w : tensor<4x8xf32> init #nn.zeros {nn.frozen}
func.func @forward() -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.read @w : tensor<4x8xf32>
  %loss = nn.abs_max %w : tensor<4x8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The loss is found by its name.
// expected-error @+1 {{program @forward has no result with nn.name = "loss"}}
func.func @forward(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// The loss is a scalar.
// expected-error @+1 {{result "loss" must be a floating tensor of rank 0}}
func.func @forward(%x: tensor<4xf32>) -> (tensor<4xf32> {nn.name = "loss"}) {
  return %x : tensor<4xf32>
}

// -----

// The names of the programs it makes must be free.
func.func @forward(%x: tensor<f32>) -> (tensor<f32> {nn.name = "loss"}) {
  return %x : tensor<f32>
}
// expected-error @+1 {{@train has the name of the program that nn-differentiate creates}}
func.func @train() {
  return
}

// -----

// There must be a program to differentiate.
// expected-error @+1 {{the module has no program @forward to differentiate}}
module {
}

// -----

// A statistic is kept for the backward pass; a loss must not depend on it.
module {
  nn.parameter @w : tensor<8xf32> init #nn.ones
  func.func @forward(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
    %w = nn.read @w : tensor<8xf32>
    %s = nn.broadcast %w [1] : tensor<8xf32> to tensor<4x8xf32>
    // expected-error @below {{has no gradient with respect to its statistics}}
    %y, %rstd = nn.rms_norm %s, %w eps 1.0e-05 : tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>
    %loss = nn.sum %rstd [0] : tensor<4xf32> to tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A program is straight-line code.
module {
  // expected-error @+1 {{a program is one block without branches}}
  func.func @forward() {
    "func.return"() : () -> ()
  ^other:
    return
  }
}
