// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --fsdp-propagate

// An op without a sharding rule.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'nn.recompute_from' op has no sharding rule; a program of one rank is marked fsdp.local}}
  %y = nn.recompute_from %x : tensor<4xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Types are logical.
fsdp.mesh @mesh ["a" = 2]
nn.parameter @w : tensor<4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{"a"}]>}
func.func @f() -> tensor<2xf32> {
  // expected-error @+1 {{has 'tensor<2xf32>' of @w, which is declared otherwise; types are logical here}}
  %w = nn.read @w : tensor<2xf32>
  return %w : tensor<2xf32>
}

// -----

// Nothing makes parts of a whole.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32> {fsdp.placement = #fsdp.placement<[{}], partial = sum {"a"}>}) {
  // expected-error @+1 {{cannot turn a value that is not partial into a partial one}}
  return %x : tensor<4xf32>
}

// -----

// One mesh.
// expected-error @+1 {{needs one fsdp.mesh to place values on}}
module {
  fsdp.mesh @m ["a" = 2]
  fsdp.mesh @n ["b" = 2]
}

// -----

// Tensors.
fsdp.mesh @mesh ["a" = 2]
// expected-error @+1 {{has arguments or results that are no tensors of static shape}}
func.func @f(%x: index) -> index {
  return %x : index
}

// -----

// One axis, whole and in parts.
fsdp.mesh @mesh ["a" = 4]
// expected-error @+1 {{places values over mesh axis "a" and over another part of it}}
func.func @f(%x: tensor<4xf32> {fsdp.placement = #fsdp.placement<[{"a"}]>},
             %y: tensor<4xf32> {fsdp.placement = #fsdp.placement<[{"a":(1)2}]>}) {
  return
}

// -----

// A sum of squares counts every element once.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4xf32> {fsdp.placement = #fsdp.placement<[{"a"}]>}, %y: tensor<4xf32>, %m: tensor<f32>) -> tensor<2xi64> {
  // expected-error @+1 {{sums tensors that are sharded over different axes}}
  %s = nn.sum_squares %m, %x, %y : tensor<f32>, tensor<4xf32>, tensor<4xf32> -> tensor<2xi64>
  return %s : tensor<2xi64>
}
