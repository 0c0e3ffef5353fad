// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// 1. It begins with a phase.
func.func @program(%x: tensor<4xf32>) {
  // expected-error @+1 {{'forward silu' is no origin: it has to begin with 'fwd ', 'again ', 'bwd ' or 'update '}}
  %y = nn.silu %x {fsdp.origin = #fsdp.origin<"forward silu">} : tensor<4xf32>
  return
}

// -----

// 2. A path is not empty.
func.func @program(%x: tensor<4xf32>) {
  // expected-error @+1 {{'fwd  silu' is no origin: the path is empty}}
  %y = nn.silu %x {fsdp.origin = #fsdp.origin<"fwd  silu">} : tensor<4xf32>
  return
}

// -----

// 2. Neither after all.
func.func @program(%x: tensor<4xf32>) {
  // expected-error @+1 {{'fwd ' is no origin: the path is empty}}
  %y = nn.silu %x {fsdp.origin = #fsdp.origin<all "fwd ">} : tensor<4xf32>
  return
}

// -----

// 3. The op has a name.
func.func @program(%x: tensor<4xf32>) {
  // expected-error @+1 {{'fwd layers.3 #2' is no origin: the op has no name}}
  %y = nn.silu %x {fsdp.origin = #fsdp.origin<"fwd layers.3 #2">} : tensor<4xf32>
  return
}

// -----

// 4. Its number is one.
func.func @program(%x: tensor<4xf32>) {
  // expected-error @+1 {{'fwd layers.3 silu#1' is no origin: '1' is no number of an op; the second is 'op#2'}}
  %y = nn.silu %x {fsdp.origin = #fsdp.origin<"fwd layers.3 silu#1">} : tensor<4xf32>
  return
}

// -----

// On an op: all of a path is none.
func.func @program(%x: tensor<4xf32>) {
  // expected-error @+1 {{needs 'fsdp.origin' to be the #fsdp.origin of an op}}
  %y = nn.silu %x {fsdp.origin = #fsdp.origin<all "fwd layers.3">} : tensor<4xf32>
  return
}

// -----

// What a collective serves has no op.
fsdp.mesh @mesh ["a" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{attribute 'serves' failed to satisfy constraint: a #fsdp.origin of all of a path, without an op}}
  %g = fsdp.all_gather %s on @mesh["a"] dim 0 {serves = #fsdp.origin<"fwd layers.3 all_gather">} : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

// A string is none.
fsdp.mesh @mesh ["a" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{attribute 'serves' failed to satisfy constraint: a #fsdp.origin of all of a path, without an op}}
  %g = fsdp.all_gather %s on @mesh["a"] dim 0 {serves = "fwd layers.3"} : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

// The members of a bucket are ops.
fsdp.mesh @mesh ["a" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{needs 'fsdp.members' to be one #fsdp.origin of an op per operand of a collective}}
  %g = fsdp.all_gather %s on @mesh["a"] dim 0 {fsdp.members = [#fsdp.origin<all "fwd layers.3">]} : tensor<4xf32> -> tensor<8xf32>
  return
}
