// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --fsdp-optimizer

// The program is named by the option `function`.
// expected-error @+1 {{the module has no program @train to update parameters in}}
module {
}

// -----

// Without gradients there is nothing to step along.
// expected-error @+1 {{program @train has no nn.gradient; run nn-differentiate first}}
func.func @train() {
  return
}

// -----

// Nothing is left to train.
nn.parameter @w : tensor<8xf32> init #nn.zeros {nn.frozen}
// expected-error @+1 {{program @train has nothing to train: every parameter is frozen; leave one trained in the policy, or set optimizer.name to none}}
func.func @train() {
  return
}

// -----

// AdamW's kernel is f32.
nn.parameter @w : tensor<8xf64> init #nn.zeros
func.func @train(%g: tensor<8xf64>) {
  // expected-error @+1 {{AdamW works on f32 gradients, got 'tensor<8xf64>'}}
  nn.gradient @w, %g : tensor<8xf64>
  return
}
