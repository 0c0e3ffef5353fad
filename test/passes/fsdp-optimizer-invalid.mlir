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

// AdamW's kernel is f32.
nn.parameter @w : tensor<8xf64> init #nn.zeros
func.func @train(%g: tensor<8xf64>) {
  // expected-error @+1 {{AdamW works on f32 gradients, got 'tensor<8xf64>'}}
  nn.gradient @w, %g : tensor<8xf64>
  return
}

// -----

// One integer sum must finish the norm.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
// expected-note @+1 {{for example this one}}
nn.parameter @v : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.shard<0, ["a"]>}
// expected-error @+1 {{parameter @w is sharded over other axes than other parameters}}
nn.parameter @w : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.shard<0, ["b"]>}
func.func @train(%g: tensor<4xf32>) {
  nn.gradient @v, %g : tensor<4xf32>
  nn.gradient @w, %g : tensor<4xf32>
  return
}
