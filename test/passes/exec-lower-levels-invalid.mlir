// RUN: fsdp-opt %s --split-input-file --exec-lower=target=test --verify-diagnostics

// Three ranks are no part of the order of a sum over six along one axis.
fsdp.mesh @mesh ["dp" = 6] {node_size = 3 : i64}
func.func @three(%f: tensor<2400xf32> {nn.name = "f"}) -> (tensor<400xf32> {nn.name = "y"}) {
  // expected-error @below {{adds over 6 ranks in a fixed order, which nodes of 3 ranks (parallelism.node_size) have no part of}}
  %y = fsdp.reduce_scatter sum %f on @mesh["dp"] dim 0 : tensor<2400xf32> -> tensor<400xf32>
  return %y : tensor<400xf32>
}

// -----

// Nodes that begin in the middle of a group.
fsdp.mesh @mesh ["a" = 2, "b" = 6] {node_size = 4 : i64}
func.func @apart(%f: tensor<2400xf32> {nn.name = "f"}) -> (tensor<2400xf32> {nn.name = "y"}) {
  // expected-error @below {{adds over 6 ranks in a fixed order, which nodes of 4 ranks}}
  %y = fsdp.all_reduce sum %f on @mesh["b"] : tensor<2400xf32> -> tensor<2400xf32>
  return %y : tensor<2400xf32>
}

// -----

// Nodes that end in the middle of an axis before the last.
fsdp.mesh @mesh ["a" = 4, "b" = 3] {node_size = 4 : i64}
func.func @before(%f: tensor<2400xf32> {nn.name = "f"}) -> (tensor<600xf32> {nn.name = "y"}) {
  // expected-error @below {{adds over 4 ranks in a fixed order, which nodes of 4 ranks}}
  %y = fsdp.reduce_scatter sum %f on @mesh["a"] dim 0 : tensor<2400xf32> -> tensor<600xf32>
  return %y : tensor<600xf32>
}

// -----

// What is sent whole has no levels.
fsdp.mesh @mesh ["dp" = 6] {node_size = 3 : i64}
func.func @small(%f: tensor<24xf32> {nn.name = "f"}) -> (tensor<24xf32> {nn.name = "y"}) {
  %y = fsdp.all_reduce sum %f on @mesh["dp"] : tensor<24xf32> -> tensor<24xf32>
  return %y : tensor<24xf32>
}
