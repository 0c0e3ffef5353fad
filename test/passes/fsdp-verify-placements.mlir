// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --fsdp-verify-placements

// All that has to hold, does: partial values meet an addition, then a place.
fsdp.mesh @mesh ["a" = 2]
nn.parameter @w : tensor<4x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{}, {"a"}]>}
func.func @holds(%x: tensor<2x8xf32> {fsdp.placement = #fsdp.placement<[{}, {"a"}]>}) -> tensor<2x4xf32> {
  %w = nn.read @w : tensor<4x8xf32>
  %y = nn.linear %x, %w : tensor<2x8xf32>, tensor<4x8xf32> -> tensor<2x4xf32>
  %s = nn.add %y, %y : tensor<2x4xf32>
  %z = fsdp.redistribute %s on @mesh to <[{}, {}]> : tensor<2x4xf32> -> tensor<2x4xf32>
  return %z : tensor<2x4xf32>
}

// -----

// Parts of a sum reach something that is not an addition.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4xf32> {fsdp.placement = #fsdp.placement<[{}], partial = sum {"a"}>}) -> tensor<4xf32> {
  // expected-error @+1 {{takes a partial, which must be reduced first}}
  %y = nn.silu %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Parts of a sum and a whole are added.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4xf32> {fsdp.placement = #fsdp.placement<[{}], partial = sum {"a"}>}, %w: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{takes a partial, which must be reduced first}}
  %y = nn.add %x, %w : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Parts of a maximum are no partial sums.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4xf32> {fsdp.placement = #fsdp.placement<[{}], partial = max {"a"}>}) -> tensor<4xf32> {
  // expected-error @+1 {{takes a partial, which must be reduced first}}
  %y = nn.neg %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Parts of what every rank has.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{cannot turn a value that is not partial into a partial one}}
  %y = fsdp.redistribute %x on @mesh to <[{}], partial = sum {"a"}> : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

// A dimension that the op needs whole.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4x4xf32> {fsdp.placement = #fsdp.placement<[{}, {"a"}]>}) -> tensor<4x4xf32> {
  // expected-error @+1 {{needs an unsharded dimension, but it is sharded over #fsdp.axis_ref<"a">}}
  %y = nn.softmax %x : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// Operands that lie differently.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4xf32> {fsdp.placement = #fsdp.placement<[{"a"}]>}, %y: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has operands that are sharded differently along factor 0 of 0, 0 -> 0}}
  %z = nn.mul %x, %y : tensor<4xf32>
  return %z : tensor<4xf32>
}

// -----

// One axis along two loops.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4x4xf32> {fsdp.placement = #fsdp.placement<[{"a"}, {}]>},
             %w: tensor<4x4xf32> {fsdp.placement = #fsdp.placement<[{"a"}, {}]>}) -> tensor<4x4xf32> {
  // expected-error @+1 {{is split over #fsdp.axis_ref<"a"> along two factors of 0 i, o i -> 0 o}}
  %y = nn.linear %x, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// The inner of two dimensions that become one.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4x2xf32> {fsdp.placement = #fsdp.placement<[{}, {"a"}]>}) -> tensor<8xf32> {
  // expected-error @+1 {{cannot be split over #fsdp.axis_ref<"a"> along factor 1 of 0 1 -> (0 1)}}
  %y = nn.reshape %x : tensor<4x2xf32> to tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// A parameter is computed with as it is stored.
fsdp.mesh @mesh ["a" = 2]
nn.parameter @w : tensor<4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "a"}]>}
func.func @f() -> tensor<4xf32> {
  %w = nn.read @w : tensor<4xf32>
  // expected-error @+1 {{takes a tensor in its storage placement}}
  %y = nn.silu %w : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A gradient that does not lie where its parameter does.
fsdp.mesh @mesh ["a" = 2]
nn.parameter @w : tensor<4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "a"}]>}
func.func @f(%g: tensor<4xf32>) {
  // expected-error @+1 {{takes a value in the placement #fsdp.placement<[{}]>, which must have the placement #fsdp.placement<[{| "a"}]>}}
  nn.gradient @w, %g : tensor<4xf32>
  return
}

// -----

// A result that does not lie where it has to.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4xf32> {fsdp.placement = #fsdp.placement<[{"a"}]>}) -> tensor<4xf32> {
  // expected-error @+1 {{takes a value in the placement #fsdp.placement<[{"a"}]>, which must have the placement #fsdp.placement<[{}]>}}
  return %x : tensor<4xf32>
}
