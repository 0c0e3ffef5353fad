// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

// fsdp.decision 1: distances.
fsdp.mesh @mesh ["a" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{prefetch: a distance is not negative}}
  %g = fsdp.all_gather %s on @mesh["a"] dim 0 {fsdp.decision = #fsdp.decision<prefetch = -1>} : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

// fsdp.decision 1: of what is computed again, too.
fsdp.mesh @mesh ["a" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{prefetch: a distance is not negative}}
  %g = fsdp.all_gather %s on @mesh["a"] dim 0 {fsdp.decision = #fsdp.decision<again = <prefetch = -1>>} : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

// fsdp.decision 2: what is computed again is not computed again.
fsdp.mesh @mesh ["a" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{a decision has no field 'again'}}
  %g = fsdp.all_gather %s on @mesh["a"] dim 0 {fsdp.decision = #fsdp.decision<again = <again = <>>>} : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

// fsdp.decision 3: distances of gathers are about gathers.
fsdp.mesh @mesh ["a" = 2]
func.func @program(%s: tensor<8xf32>) {
  // expected-error @+1 {{has 'prefetch' in its 'fsdp.decision', which is about gathers}}
  %g = fsdp.reduce_scatter sum %s on @mesh["a"] dim 0 {fsdp.decision = #fsdp.decision<prefetch = 1>} : tensor<8xf32> -> tensor<4xf32>
  return
}

// -----

// fsdp.decision 3: and those of reductions about reductions, also again.
fsdp.mesh @mesh ["a" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{has 'defer' in its 'fsdp.decision', which is about reductions}}
  %g = fsdp.all_gather %s on @mesh["a"] dim 0 {fsdp.decision = #fsdp.decision<recompute = true, again = <defer = 1>>} : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

// fsdp.decision 3: a bucket has collectives of parameters.
fsdp.mesh @mesh ["a" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{has 'bucket' in its 'fsdp.decision', which is about collectives that move parameters}}
  %g = fsdp.all_gather %s on @mesh["a"] dim 0 {fsdp.decision = #fsdp.decision<bucket = "b">} : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

// fsdp.decision 3: what is no collective starts where it stands.
func.func @program(%x: tensor<4xf32>) {
  // expected-error @+1 {{has 'overlap' in its 'fsdp.decision', which is about collectives}}
  %y = nn.silu %x {fsdp.decision = #fsdp.decision<overlap = true>} : tensor<4xf32>
  return
}

// -----

// fsdp.decision 3: nothing is decided about the clone of a value.
func.func @program(%x: tensor<4xf32>) {
  // expected-error @+1 {{has 'again' in its 'fsdp.decision', which is about collectives}}
  %y = nn.silu %x {fsdp.decision = #fsdp.decision<recompute = true, again = <>>} : tensor<4xf32>
  return
}

// -----

// fsdp.decision: of a collective, or of an op that computes.
// expected-error @+1 {{needs 'fsdp.decision' to be a #fsdp.decision on a collective or an op that computes}}
func.func @program() attributes {fsdp.decision = #fsdp.decision<>} {
  return
}

// -----

// fsdp.decision: no other attribute.
func.func @program(%x: tensor<4xf32>) {
  // expected-error @+1 {{needs 'fsdp.decision' to be a #fsdp.decision on a collective or an op that computes}}
  %y = nn.silu %x {fsdp.decision = {recompute = true}} : tensor<4xf32>
  return
}

// -----

// fsdp.decision: fields are known, and there once.
func.func @program(%x: tensor<4xf32>) {
  // expected-error @+1 {{a decision has no field 'recomputed'; did you mean 'recompute'?}}
  %y = nn.silu %x {fsdp.decision = #fsdp.decision<recomputed = true>} : tensor<4xf32>
  return
}

// -----

func.func @program(%x: tensor<4xf32>) {
  // expected-error @+1 {{'recompute' appears twice}}
  %y = nn.silu %x {fsdp.decision = #fsdp.decision<recompute = true, recompute = true>} : tensor<4xf32>
  return
}

// -----

// fsdp.decision: a value is of the field's type.
func.func @program(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected 'false': true or false}}
  %y = nn.silu %x {fsdp.decision = #fsdp.decision<recompute = 1>} : tensor<4xf32>
  return
}

// -----

// fsdp.decision: a distance fits into 64 bits.
fsdp.mesh @mesh ["a" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{integer value too large}}
  %g = fsdp.all_gather %s on @mesh["a"] dim 0 {fsdp.decision = #fsdp.decision<prefetch = 99999999999999999999>} : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

// fsdp.decision 4
fsdp.mesh @mesh ["a" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{has 'again' in its 'fsdp.decision', but nothing says that it is computed again; add recompute = true}}
  %g = fsdp.all_gather %s on @mesh["a"] dim 0 {fsdp.decision = #fsdp.decision<again = <prefetch = 1>>} : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

fsdp.mesh @mesh ["a" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{has 'recompute' in the 'again' of its 'fsdp.decision'; what is computed again is not computed a third time}}
  %g = fsdp.all_gather %s on @mesh["a"] dim 0 {fsdp.decision = #fsdp.decision<recompute = true, again = <recompute = true>>} : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

// fsdp.decision: an op of no dialect has none.
func.func @program() {
  // expected-error @+1 {{needs 'fsdp.decision' to be a #fsdp.decision on a collective or an op that computes}}
  "none.such"() {fsdp.decision = #fsdp.decision<>} : () -> ()
  return
}
