// RUN: fsdp-opt %s --split-input-file --nn-differentiate --nn-accumulate="microbatches=2" --verify-roundtrip | FileCheck %s

// What is computed of parameters before the batch meets it. Its cotangent is a
// sum over the batch, in which the rest of the backward pass is linear: a weight
// that is a product (LoRA),
// CHECK-LABEL: func.func @accumulate
// CHECK: %[[DB:.*]] = nn.matmul {{.*}} {transpose_lhs}
// CHECK: nn.accumulate @b.grad_sum, %[[DB]] : tensor<2x4xf32>
// CHECK-NEXT: nn.accumulate @a.grad_sum, %{{.*}} : tensor<8x2xf32>

nn.parameter @a : tensor<8x2xf32> init #nn.zeros
nn.parameter @b : tensor<2x4xf32> init #nn.zeros
func.func @forward(%x: tensor<3x4xf32> {nn.name = "x"}, %t: tensor<3xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %a = nn.read @a : tensor<8x2xf32>
  %b = nn.read @b : tensor<2x4xf32>
  %w = nn.matmul %a, %b : tensor<8x2xf32>, tensor<2x4xf32> -> tensor<8x4xf32>
  %y = nn.linear %x, %w : tensor<3x4xf32>, tensor<8x4xf32> -> tensor<3x8xf32>
  %r, %l = nn.cross_entropy %y, %t ignore_index -100 : tensor<3x8xf32>, tensor<3xi32>, tensor<3xf32>
  %s = nn.sum %r [0] : tensor<3xf32> to tensor<f32>
  %n = nn.count_labels %t ignore_index -100 : tensor<3xi32> -> tensor<i64>
  %loss = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  return %loss : tensor<f32>
}

// -----

// one after an activation,
// CHECK-LABEL: func.func @accumulate
// CHECK: %[[DG:.*]] = nn.silu_grad
// CHECK: nn.accumulate @g.grad_sum, %[[DG]] : tensor<4xf32>

nn.parameter @g : tensor<4xf32> init #nn.ones
func.func @forward(%x: tensor<3x4xf32> {nn.name = "x"}, %t: tensor<3xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %g = nn.read @g : tensor<4xf32>
  %sg = nn.silu %g : tensor<4xf32>
  %ws = nn.broadcast %sg [1] : tensor<4xf32> to tensor<3x4xf32>
  %y = nn.mul %x, %ws : tensor<3x4xf32>
  %s = nn.sum %y [0, 1] : tensor<3x4xf32> to tensor<f32>
  %n = nn.count_labels %t ignore_index -100 : tensor<3xi32> -> tensor<i64>
  %loss = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  return %loss : tensor<f32>
}

// -----

// and one after a norm that is projected.
// CHECK-LABEL: func.func @accumulate
// CHECK: nn.linear_input_grad
// CHECK: nn.rms_norm_input_grad
// CHECK: nn.accumulate @p.grad_sum
// CHECK-NEXT: nn.accumulate @w.grad_sum
// CHECK-NEXT: nn.accumulate @g.grad_sum

nn.parameter @g : tensor<1x4xf32> init #nn.ones
nn.parameter @w : tensor<4xf32> init #nn.ones
nn.parameter @p : tensor<4x4xf32> init #nn.ones
func.func @forward(%x: tensor<3x4xf32> {nn.name = "x"}, %t: tensor<3xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %g = nn.read @g : tensor<1x4xf32>
  %w = nn.read @w : tensor<4xf32>
  %p = nn.read @p : tensor<4x4xf32>
  %normed, %rstd = nn.rms_norm %g, %w eps 1.0e-05 : tensor<1x4xf32>, tensor<4xf32>, tensor<1xf32>
  %projected = nn.linear %normed, %p : tensor<1x4xf32>, tensor<4x4xf32> -> tensor<1x4xf32>
  %scale = nn.broadcast %projected [0, 1] : tensor<1x4xf32> to tensor<3x4xf32>
  %y = nn.mul %x, %scale : tensor<3x4xf32>
  %s = nn.sum %y [0, 1] : tensor<3x4xf32> to tensor<f32>
  %n = nn.count_labels %t ignore_index -100 : tensor<3xi32> -> tensor<i64>
  %loss = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  return %loss : tensor<f32>
}

// -----

// Positions are the same for every example of the flattened batch.
// CHECK-LABEL: func.func @accumulate
// CHECK: nn.accumulate @w.grad_sum
// CHECK-NEXT: nn.accumulate @pos.grad_sum, %{{.*}} : tensor<2x4xf32>

nn.parameter @pos : tensor<2x4xf32> init #nn.ones
nn.parameter @w : tensor<4xf32> init #nn.ones
func.func @forward(%x: tensor<3x2x4xf32> {nn.name = "x"}, %t: tensor<3x2xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %p = nn.read @pos : tensor<2x4xf32>
  %w = nn.read @w : tensor<4xf32>
  %pb = nn.broadcast %p [1, 2] : tensor<2x4xf32> to tensor<3x2x4xf32>
  %pf = nn.reshape %pb : tensor<3x2x4xf32> to tensor<6x4xf32>
  %xf = nn.reshape %x : tensor<3x2x4xf32> to tensor<6x4xf32>
  %h = nn.add %xf, %pf : tensor<6x4xf32>
  %wb = nn.broadcast %w [1] : tensor<4xf32> to tensor<6x4xf32>
  %y = nn.mul %h, %wb : tensor<6x4xf32>
  %tf = nn.reshape %t : tensor<3x2xi32> to tensor<6xi32>
  %r, %l = nn.cross_entropy %y, %tf ignore_index -100 : tensor<6x4xf32>, tensor<6xi32>, tensor<6xf32>
  %s = nn.sum %r [0] : tensor<6xf32> to tensor<f32>
  %n = nn.count_labels %t ignore_index -100 : tensor<3x2xi32> -> tensor<i64>
  %loss = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  return %loss : tensor<f32>
}

// -----

// Of one example the sum over the batch is a reshape, which adds to another sum.
// CHECK-LABEL: func.func @accumulate
// CHECK: %[[S:.*]] = nn.sum %{{.*}} [0] : tensor<1x4xf32> to tensor<4xf32>
// CHECK-NEXT: %[[R:.*]] = nn.reshape %{{.*}} : tensor<1x4xf32> to tensor<4xf32>
// CHECK-NEXT: %[[DW:.*]] = nn.add %[[S]], %[[R]] : tensor<4xf32>
// CHECK: nn.accumulate @w.grad_sum, %[[DW]] : tensor<4xf32>
// CHECK-NEXT: nn.accumulate @v.grad_sum, %{{.*}} : tensor<4xf32>

nn.parameter @v : tensor<4xf32> init #nn.zeros
nn.parameter @w : tensor<4xf32> init #nn.zeros
func.func @forward(%x: tensor<1x4xf32> {nn.name = "x"}, %t: tensor<1xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %v = nn.read @v : tensor<4xf32>
  %w = nn.read @w : tensor<4xf32>
  %vr = nn.reshape %v : tensor<4xf32> to tensor<1x4xf32>
  %wr = nn.reshape %w : tensor<4xf32> to tensor<1x4xf32>
  %wb = nn.broadcast %w [1] : tensor<4xf32> to tensor<1x4xf32>
  %xv = nn.mul %x, %vr : tensor<1x4xf32>
  %xw = nn.mul %xv, %wr : tensor<1x4xf32>
  %y = nn.add %xw, %wb : tensor<1x4xf32>
  %s = nn.sum %y [0, 1] : tensor<1x4xf32> to tensor<f32>
  %n = nn.count_labels %t ignore_index -100 : tensor<1xi32> -> tensor<i64>
  %loss = nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>
  return %loss : tensor<f32>
}
