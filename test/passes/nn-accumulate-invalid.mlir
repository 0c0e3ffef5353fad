// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --nn-accumulate="microbatches=4"
// RUN: echo 'module {}' | not fsdp-opt --nn-accumulate="microbatches=1" 2>&1 | FileCheck %s
// CHECK: error: a step is split into 2 to 1048576 microbatches, not 1

// The program has to be there.
// expected-error @below {{the module has no program @train to split into microbatches}}
module {
}

// -----

// A step is split once.
// expected-error @below {{the module's steps are lists of programs already: it has 'nn.steps'}}
module attributes {nn.steps = {train = [#nn.action<@train times 1>]}} {
  func.func @train() {
    return
  }
}

// -----

// Sums need what is summed.
// expected-error @below {{program @train has no nn.gradient; run nn-differentiate first}}
func.func @train(%s: tensor<f32> {nn.name = "s"}, %t: tensor<4xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %n = nn.count_labels %t ignore_index -100 : tensor<4xi32> -> tensor<i64>
  %loss = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  return %loss : tensor<f32>
}

// -----

// A mean over a batch says nothing of the step.
// expected-error @below {{the loss of @train is not divided by a count of labels (nn.divide_by_count), so microbatches have no common mean}}
func.func @train(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  %loss = nn.mean %x [0] count 4 : tensor<4xf32> to tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Two means are over two counts.
func.func @train(%s: tensor<f32> {nn.name = "s"}, %t: tensor<4xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %n = nn.count_labels %t ignore_index -100 : tensor<4xi32> -> tensor<i64>
  %m = nn.count_labels %t ignore_index 0 : tensor<4xi32> -> tensor<i64>
  %a = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  // expected-error @below {{divides by another count than the division before it; a step of several microbatches has one}}
  %b = nn.divide_by_count %a, %m : tensor<f32>, tensor<i64>
  return %b : tensor<f32>
}

// -----

// One mean, not those of parts.
func.func @train(%s: tensor<2xf32> {nn.name = "s"}, %t: tensor<4xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  // expected-error @below {{counts the labels of parts of the batch; microbatches have one mean}}
  %n = nn.count_labels %t ignore_index -100 : tensor<4xi32> -> tensor<2xi64>
  %m = nn.divide_by_count %s, %n : tensor<2xf32>, tensor<2xi64>
  %loss = nn.mean %m [0] count 2 : tensor<2xf32> to tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The labels of the step are counted before its first microbatch.
func.func @train(%s: tensor<f32> {nn.name = "s"}, %t: tensor<8xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %u = nn.slice %t [4] : tensor<8xi32> to tensor<4xi32>
  // expected-error @below {{counts more than the labels of an argument, which have to be known before the first microbatch}}
  %n = nn.count_labels %u ignore_index -100 : tensor<4xi32> -> tensor<i64>
  %loss = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  return %loss : tensor<f32>
}

// -----

// What is no loss has no sum.
// expected-error @below {{program @train gives other results than the loss alone}}
func.func @train(%s: tensor<f32> {nn.name = "s"}) -> (tensor<f32> {nn.name = "logits"}) {
  return %s : tensor<f32>
}

// -----

// The slices are found by name.
nn.parameter @w : tensor<f32> init #nn.zeros
// expected-error @below {{argument 0 of @train is no batch with a name (nn.name)}}
func.func @train(%t: tensor<4xi32>, %x: tensor<4xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  %s = nn.sum %x [0] : tensor<4xf32> to tensor<f32>
  %n = nn.count_labels %t ignore_index -100 : tensor<4xi32> -> tensor<i64>
  %loss = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  nn.gradient @w, %loss : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The slices of a step are one tensor.
nn.parameter @w : tensor<f32> init #nn.zeros
// expected-error @below {{the "targets" of 4 microbatches are more than 2^56 bytes}}
func.func @train(%x: tensor<4xf32> {nn.name = "x"}, %t: tensor<16777216x1073741824xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %s = nn.sum %x [0] : tensor<4xf32> to tensor<f32>
  %n = nn.count_labels %t ignore_index -100 : tensor<16777216x1073741824xi32> -> tensor<i64>
  %loss = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  nn.gradient @w, %loss : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Sums are f32.
nn.parameter @w : tensor<f64> init #nn.zeros
func.func @train(%g: tensor<f64> {nn.name = "g"}, %s: tensor<f32> {nn.name = "s"}, %t: tensor<4xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %n = nn.count_labels %t ignore_index -100 : tensor<4xi32> -> tensor<i64>
  %loss = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  // expected-error @below {{sums over microbatches are f32, got 'tensor<f64>'}}
  nn.gradient @w, %g : tensor<f64>
  return %loss : tensor<f32>
}

// -----

// The names of what it makes must be free.
nn.parameter @w : tensor<f32> init #nn.zeros
// expected-error @below {{@w.grad_sum has a name that nn-accumulate creates}}
nn.buffer @w.grad_sum : tensor<f32> init #nn.zeros
func.func @train(%x: tensor<4xf32> {nn.name = "x"}, %t: tensor<4xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %s = nn.sum %x [0] : tensor<4xf32> to tensor<f32>
  %n = nn.count_labels %t ignore_index -100 : tensor<4xi32> -> tensor<i64>
  %loss = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  nn.gradient @w, %loss : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A term that is no sum over the batch would count once per microbatch, after
// the division by the count
nn.parameter @w : tensor<4xf32> init #nn.zeros
func.func @train(%x: tensor<4xf32> {nn.name = "x"}, %t: tensor<4xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.read @w : tensor<4xf32>
  %s = nn.sum %x [0] : tensor<4xf32> to tensor<f32>
  %n = nn.count_labels %t ignore_index -100 : tensor<4xi32> -> tensor<i64>
  %mean = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  %squares = nn.mul %w, %w : tensor<4xf32>
  // expected-error @below {{the loss is not the sum over microbatches: it is the same in each microbatch and would count once per microbatch; change that, or use one microbatch}}
  %penalty = nn.sum %squares [0] : tensor<4xf32> to tensor<f32>
  %loss = nn.add %mean, %penalty : tensor<f32>
  nn.gradient @w, %w : tensor<4xf32>
  return %loss : tensor<f32>
}

// -----

// and before it.
nn.parameter @w : tensor<4xf32> init #nn.zeros
func.func @train(%x: tensor<4xf32> {nn.name = "x"}, %t: tensor<4xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.read @w : tensor<4xf32>
  %s = nn.sum %x [0] : tensor<4xf32> to tensor<f32>
  %n = nn.count_labels %t ignore_index -100 : tensor<4xi32> -> tensor<i64>
  %squares = nn.mul %w, %w : tensor<4xf32>
  // expected-error @below {{the loss is not the sum over microbatches: it is the same in each microbatch and would count once per microbatch; change that, or use one microbatch}}
  %penalty = nn.sum %squares [0] : tensor<4xf32> to tensor<f32>
  %sum = nn.add %s, %penalty : tensor<f32>
  %loss = nn.divide_by_count %sum, %n : tensor<f32>, tensor<i64>
  nn.gradient @w, %w : tensor<4xf32>
  return %loss : tensor<f32>
}

// -----

// A gradient that no microbatch adds its part to.
nn.parameter @w : tensor<4xf32> init #nn.zeros
func.func @train(%x: tensor<4xf32> {nn.name = "x"}, %t: tensor<4xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  // expected-error @below {{the gradient of 'w' is not the sum over microbatches: it is the same in each microbatch}}
  %w = nn.read @w : tensor<4xf32>
  %s = nn.sum %x [0] : tensor<4xf32> to tensor<f32>
  %n = nn.count_labels %t ignore_index -100 : tensor<4xi32> -> tensor<i64>
  %loss = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  nn.gradient @w, %w : tensor<4xf32>
  return %loss : tensor<f32>
}

// -----

// A mean over the batch divides by what a microbatch has.
nn.parameter @w : tensor<4xf32> init #nn.zeros
func.func @train(%x: tensor<4xf32> {nn.name = "x"}, %t: tensor<4xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  // expected-error @below {{the loss is not the sum over microbatches: 'nn.mean' computes from the examples of a batch neither a value for each nor a sum}}
  %s = nn.mean %x [0] count 4 : tensor<4xf32> to tensor<f32>
  %n = nn.count_labels %t ignore_index -100 : tensor<4xi32> -> tensor<i64>
  %loss = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  nn.gradient @w, %x : tensor<4xf32>
  return %loss : tensor<f32>
}

// -----

// A value per row of the flattened batch, which every microbatch takes alike.
nn.parameter @w : tensor<6xf32> init #nn.zeros
func.func @train(%x: tensor<3x2xf32> {nn.name = "x"}, %t: tensor<3xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.read @w : tensor<6xf32>
  %rows = nn.reshape %x : tensor<3x2xf32> to tensor<6xf32>
  // expected-error @below {{the loss is not the sum over microbatches: operand 1 of 'nn.add' is the same for every microbatch but not for every example of one (nn.broadcast repeats a value along the batch); change that, or use one microbatch}}
  %sum = nn.add %rows, %w : tensor<6xf32>
  %s = nn.sum %sum [0] : tensor<6xf32> to tensor<f32>
  %n = nn.count_labels %t ignore_index -100 : tensor<3xi32> -> tensor<i64>
  %loss = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  nn.gradient @w, %sum : tensor<6xf32>
  return %loss : tensor<f32>
}

// -----

// Two positions of three examples are not three of two.
nn.parameter @w : tensor<3xf32> init #nn.zeros
func.func @train(%x: tensor<3x2xf32> {nn.name = "x"}, %t: tensor<3xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.read @w : tensor<3xf32>
  %ws = nn.broadcast %w [1] : tensor<3xf32> to tensor<2x3xf32>
  %flat = nn.reshape %ws : tensor<2x3xf32> to tensor<6xf32>
  %rows = nn.reshape %x : tensor<3x2xf32> to tensor<6xf32>
  // expected-error @below {{the loss is not the sum over microbatches: operand 1 of 'nn.add' is the same for every microbatch but not for every example of one}}
  %sum = nn.add %rows, %flat : tensor<6xf32>
  %s = nn.sum %sum [0] : tensor<6xf32> to tensor<f32>
  %n = nn.count_labels %t ignore_index -100 : tensor<3xi32> -> tensor<i64>
  %loss = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  nn.gradient @w, %w : tensor<3xf32>
  return %loss : tensor<f32>
}

// -----

// What is no batch is not split.
nn.parameter @w : tensor<f32> init #nn.zeros
// expected-error @below {{the loss is not the sum over microbatches: it is an argument without examples along its first dimension}}
func.func @train(%s: tensor<f32> {nn.name = "s"}, %t: tensor<4xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %n = nn.count_labels %t ignore_index -100 : tensor<4xi32> -> tensor<i64>
  %loss = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  nn.gradient @w, %s : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The logarithms of parts of a mean are no parts of its logarithm.
nn.parameter @w : tensor<f32> init #nn.zeros
func.func @train(%x: tensor<4xf32> {nn.name = "x"}, %t: tensor<4xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %s = nn.sum %x [0] : tensor<4xf32> to tensor<f32>
  %n = nn.count_labels %t ignore_index -100 : tensor<4xi32> -> tensor<i64>
  %mean = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  // expected-error @below {{the loss is not the sum over microbatches: 'nn.log' is not known to be linear in an operand that is a sum over the batch; change that, or use one microbatch}}
  %loss = nn.log %mean : tensor<f32>
  nn.gradient @w, %s : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Nothing is trained: the policy froze everything.
nn.parameter @w : tensor<f32> init #nn.zeros {nn.frozen}
// expected-error @below {{program @train has nothing to train: every parameter is frozen; leave one trained in the policy, or set optimizer.name to none and train with one microbatch}}
func.func @train(%s: tensor<f32> {nn.name = "s"}, %t: tensor<4xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %n = nn.count_labels %t ignore_index -100 : tensor<4xi32> -> tensor<i64>
  %loss = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  return %loss : tensor<f32>
}
