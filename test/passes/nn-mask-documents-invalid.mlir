// RUN: fsdp-opt %s --nn-mask-documents --split-input-file --verify-diagnostics

// expected-error @+1 {{has no causal attention whose documents could be kept apart; leave training.document_mask out}}
module {
  func.func @forward(%q: tensor<2x8x2x4xf32>) {
    %a, %la = nn.attention %q, %q, %q scale 0.5 : tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>, tensor<2x2x8xf32>
    return
  }
}

// -----

func.func @forward(%q: tensor<2x8x2x4xf32>, %s: tensor<2x8xi32>) {
  // expected-error @+1 {{has starts of documents already}}
  %a, %la = nn.attention %q, %q, %q from %s scale 0.5 {causal} : tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>, tensor<2x2x8xf32>, tensor<2x8xi32>
  return
}

// -----

func.func @forward(%q: tensor<2x8x2x4xf32>, %p: tensor<2x4x2x4xf32>) {
  %a, %la = nn.attention %q, %q, %q scale 0.5 {causal} : tensor<2x8x2x4xf32>, tensor<2x8x2x4xf32>, tensor<2x2x8xf32>
  // expected-error @+1 {{has queries of other rows than the first attention of its program}}
  %b, %lb = nn.attention %p, %p, %p scale 0.5 {causal} : tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x2x4xf32>
  return
}
