// RUN: fsdp-opt %s | fsdp-opt --verify-roundtrip | FileCheck %s

// Every op of the dialect parses, prints and parses again as it was.

// CHECK-DAG: #[[ROTARY:rotary_table[0-9]*]] = #nn.rotary_table<[1.000000e+00, 1.000000e-02]>
// CHECK-DAG: #[[SCALED:rotary_table[0-9]*]] = #nn.rotary_table<[1.000000e+00, 0.17782794100389229] scale 1.250000e+00 start 9000>

// Every initialiser; defaults are not printed.
// CHECK: nn.parameter @layers.0.attention.wq.weight : tensor<8x8xf32> init #nn.normal<std = 2.000000e-02>
nn.parameter @layers.0.attention.wq.weight : tensor<8x8xf32> init #nn.normal<std = 0.02>
// CHECK: nn.parameter @output.weight : tensor<4x8xf32> init #nn.normal<std = 1.000000e+00, cut = 3.000000e+00>
nn.parameter @output.weight : tensor<4x8xf32> init #nn.normal<std = 1.0, cut = 3.0>
// CHECK: nn.parameter @norm.weight : tensor<8xf32> init #nn.ones {nn.frozen}
nn.parameter @norm.weight : tensor<8xf32> init #nn.ones {nn.frozen}
// CHECK: nn.parameter @bias : tensor<8xf64> init #nn.zeros
nn.parameter @bias : tensor<8xf64> init #nn.zeros
// CHECK: nn.parameter @mlp.weight : tensor<4x8xf32> init #nn.uniform<bound = 1.250000e-01>
nn.parameter @mlp.weight : tensor<4x8xf32> init #nn.uniform<bound = 0.125>
// CHECK: nn.buffer @rotary : tensor<16x2x2xf32> init #[[ROTARY]]
nn.buffer @rotary : tensor<16x2x2xf32> init #nn.rotary_table<[1.0, 1.0e-2]>
// CHECK: nn.buffer @rotary_scaled : tensor<16x2x2xf32> init #[[SCALED]]
nn.buffer @rotary_scaled : tensor<16x2x2xf32> init #nn.rotary_table<[1.0, 0.1778279410038923] scale 1.25 start 9000>
// CHECK: nn.buffer @mlp.weight.exp_avg : tensor<4x8xf32> init #nn.zeros {nn.state_of = @mlp.weight}
nn.buffer @mlp.weight.exp_avg : tensor<4x8xf32> init #nn.zeros {nn.state_of = @mlp.weight}
// CHECK: nn.buffer @mlp.weight.compute_copy : tensor<4x8xbf16> init #nn.zeros {nn.compute_copy_of = @mlp.weight}
nn.buffer @mlp.weight.compute_copy : tensor<4x8xbf16> init #nn.zeros {nn.compute_copy_of = @mlp.weight}
// CHECK: nn.buffer @mlp.weight.exp_avg_sq
nn.buffer @mlp.weight.exp_avg_sq : tensor<4x8xf32> init #nn.zeros {nn.state_of = @mlp.weight}

// State: reads, the seed of the backward pass, gradients, recomputation.
// CHECK-LABEL: @state
// CHECK-SAME: {nn.name = "loss_in"}
func.func @state(%loss: tensor<f32> {nn.name = "loss_in"}, %g: tensor<4x8xf32>) -> (tensor<f32> {nn.name = "one"}) {
  // CHECK: nn.read @output.weight : tensor<4x8xf32>
  %w = nn.read @output.weight : tensor<4x8xf32>
  // CHECK: nn.read @rotary : tensor<16x2x2xf32>
  %t = nn.read @rotary : tensor<16x2x2xf32>
  // CHECK: nn.seed %{{.*}} : tensor<f32>
  %one = nn.seed %loss : tensor<f32>
  // CHECK: nn.gradient @output.weight, %{{.*}} : tensor<4x8xf32>
  nn.gradient @output.weight, %g : tensor<4x8xf32>
  // CHECK: nn.accumulate @mlp.weight.exp_avg, %{{.*}} : tensor<4x8xf32>
  nn.accumulate @mlp.weight.exp_avg, %g : tensor<4x8xf32>
  // CHECK: nn.accumulate @mlp.weight.exp_avg, %{{.*}} : tensor<4x8xbf16>
  %narrow = nn.cast %g : tensor<4x8xf32> to tensor<4x8xbf16>
  nn.accumulate @mlp.weight.exp_avg, %narrow : tensor<4x8xbf16>
  // CHECK: nn.accumulate_product @mlp.weight.exp_avg, %{{.*}}, %{{.*}} : tensor<4x4xf32>, tensor<4x8xf32>
  %dy = nn.matmul %g, %g {transpose_rhs} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32>
  nn.accumulate_product @mlp.weight.exp_avg, %dy, %g : tensor<4x4xf32>, tensor<4x8xf32>
  // CHECK: nn.write @mlp.weight.exp_avg, %{{.*}} : tensor<4x8xf32>
  nn.write @mlp.weight.exp_avg, %g : tensor<4x8xf32>
  // CHECK: nn.clear [@mlp.weight.exp_avg, @mlp.weight.exp_avg_sq]
  nn.clear [@mlp.weight.exp_avg, @mlp.weight.exp_avg_sq]
  // CHECK: nn.recompute_from %{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<f32> -> tensor<4x8xf32>, tensor<f32>
  %r:2 = nn.recompute_from %w, %loss : tensor<4x8xf32>, tensor<f32> -> tensor<4x8xf32>, tensor<f32>
  return %one : tensor<f32>
}

// Arithmetic, activations and their gradients.
// CHECK-LABEL: @pointwise
func.func @pointwise(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) {
  // CHECK: nn.constant dense<5.000000e-01> : tensor<4x8xf32>
  %0 = nn.constant dense<0.5> : tensor<4x8xf32>
  // CHECK: nn.constant dense<7> : tensor<4xi32>
  %1 = nn.constant dense<7> : tensor<4xi32>
  // CHECK: nn.cast %{{.*}} : tensor<4x8xf32> to tensor<4x8xbf16>
  %2 = nn.cast %x : tensor<4x8xf32> to tensor<4x8xbf16>
  // CHECK: nn.add %{{.*}}, %{{.*}} : tensor<4x8xf32>
  %3 = nn.add %x, %y : tensor<4x8xf32>
  %stream = nn.reshape %x : tensor<4x8xf32> to tensor<1x4x8xf32>
  // CHECK: nn.add %{{.*}}, %{{.*}} {nn.residual} : tensor<1x4x8xf32>
  %residual = nn.add %stream, %stream {nn.residual} : tensor<1x4x8xf32>
  // CHECK: nn.sub %{{.*}}, %{{.*}} : tensor<4x8xf32>
  %4 = nn.sub %x, %y : tensor<4x8xf32>
  // CHECK: nn.mul %{{.*}}, %{{.*}} : tensor<4x8xf32>
  %5 = nn.mul %x, %y : tensor<4x8xf32>
  // CHECK: nn.div %{{.*}}, %{{.*}} : tensor<4x8xf32>
  %6 = nn.div %x, %y : tensor<4x8xf32>
  // CHECK: nn.neg %{{.*}} : tensor<4x8xf32>
  %7 = nn.neg %x : tensor<4x8xf32>
  // CHECK: nn.exp %{{.*}} : tensor<4x8xf32>
  %8 = nn.exp %x : tensor<4x8xf32>
  // CHECK: nn.log %{{.*}} : tensor<4x8xf32>
  %9 = nn.log %x : tensor<4x8xf32>
  // CHECK: nn.sqrt %{{.*}} : tensor<4x8xf32>
  %10 = nn.sqrt %x : tensor<4x8xf32>
  // CHECK: nn.rsqrt %{{.*}} : tensor<4x8xf32>
  %11 = nn.rsqrt %x : tensor<4x8xf32>
  // CHECK: nn.tanh %{{.*}} : tensor<4x8xf32>
  %12 = nn.tanh %x : tensor<4x8xf32>
  // CHECK: nn.sigmoid %{{.*}} : tensor<4x8xf32>
  %13 = nn.sigmoid %x : tensor<4x8xf32>
  // CHECK: nn.relu %{{.*}} : tensor<4x8xf32>
  %14 = nn.relu %x : tensor<4x8xf32>
  // CHECK: nn.silu %{{.*}} : tensor<4x8xf32>
  %15 = nn.silu %x : tensor<4x8xf32>
  // CHECK: nn.gelu exact %{{.*}} : tensor<4x8xf32>
  %16 = nn.gelu exact %x : tensor<4x8xf32>
  // CHECK: nn.gelu tanh %{{.*}} : tensor<4x8xf32>
  %17 = nn.gelu tanh %x : tensor<4x8xf32>
  // CHECK: nn.relu_grad %{{.*}}, %{{.*}} : tensor<4x8xf32>
  %18 = nn.relu_grad %x, %y : tensor<4x8xf32>
  // CHECK: nn.silu_grad %{{.*}}, %{{.*}} : tensor<4x8xf32>
  %19 = nn.silu_grad %x, %y : tensor<4x8xf32>
  // CHECK: nn.gelu_grad exact %{{.*}}, %{{.*}} : tensor<4x8xf32>
  %20 = nn.gelu_grad exact %x, %y : tensor<4x8xf32>
  return
}

// Moves and reductions.
// CHECK-LABEL: @shapes
func.func @shapes(%x: tensor<4x8xf32>, %v: tensor<8xf32>, %s: tensor<f32>) {
  // CHECK: nn.reshape %{{.*}} : tensor<4x8xf32> to tensor<32xf32>
  %0 = nn.reshape %x : tensor<4x8xf32> to tensor<32xf32>
  // CHECK: nn.transpose %{{.*}} [1, 0] : tensor<4x8xf32> to tensor<8x4xf32>
  %1 = nn.transpose %x [1, 0] : tensor<4x8xf32> to tensor<8x4xf32>
  // CHECK: nn.slice %{{.*}} [0, 4] : tensor<4x8xf32> to tensor<4x2xf32>
  %2 = nn.slice %x [0, 4] : tensor<4x8xf32> to tensor<4x2xf32>
  // CHECK: nn.pad %{{.*}} [0, 4] : tensor<4x2xf32> to tensor<4x8xf32>
  %3 = nn.pad %2 [0, 4] : tensor<4x2xf32> to tensor<4x8xf32>
  // CHECK: nn.concat %{{.*}}, %{{.*}} dim 1 : tensor<4x8xf32>, tensor<4x2xf32> to tensor<4x10xf32>
  %4 = nn.concat %x, %2 dim 1 : tensor<4x8xf32>, tensor<4x2xf32> to tensor<4x10xf32>
  // CHECK: nn.broadcast %{{.*}} [1] : tensor<8xf32> to tensor<4x8xf32>
  %5 = nn.broadcast %v [1] : tensor<8xf32> to tensor<4x8xf32>
  // CHECK: nn.broadcast %{{.*}} [] : tensor<f32> to tensor<4x8xf32>
  %6 = nn.broadcast %s [] : tensor<f32> to tensor<4x8xf32>
  // CHECK: nn.sum %{{.*}} [1] : tensor<4x8xf32> to tensor<4xf32>
  %7 = nn.sum %x [1] : tensor<4x8xf32> to tensor<4xf32>
  // CHECK: nn.mean %{{.*}} [0] count 4 : tensor<4x8xf32> to tensor<8xf32>
  %8 = nn.mean %x [0] count 4 : tensor<4x8xf32> to tensor<8xf32>
  // CHECK: nn.max %{{.*}} [0, 1] : tensor<4x8xf32> to tensor<f32>
  %9 = nn.max %x [0, 1] : tensor<4x8xf32> to tensor<f32>
  // CHECK: nn.max_grad %{{.*}}, %{{.*}}, %{{.*}} [1] : tensor<4x8xf32>, tensor<4xf32>
  %10 = nn.max_grad %x, %7, %7 [1] : tensor<4x8xf32>, tensor<4xf32>
  return
}

// Matrix products.
// CHECK-LABEL: @matrix_products
func.func @matrix_products(%x: tensor<2x4x8xf32>, %w: tensor<16x8xf32>, %b: tensor<16xf32>, %a: tensor<8x4xf32>, %c: tensor<8x16xf32>) {
  // CHECK: nn.linear %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<16x8xf32> -> tensor<2x4x16xf32>
  %0 = nn.linear %x, %w : tensor<2x4x8xf32>, tensor<16x8xf32> -> tensor<2x4x16xf32>
  // CHECK: nn.linear %{{.*}}, %{{.*}} bias %{{.*}} : tensor<2x4x8xf32>, tensor<16x8xf32>, tensor<16xf32> -> tensor<2x4x16xf32>
  %1 = nn.linear %x, %w bias %b : tensor<2x4x8xf32>, tensor<16x8xf32>, tensor<16xf32> -> tensor<2x4x16xf32>
  // CHECK: nn.linear_input_grad %{{.*}}, %{{.*}} : tensor<2x4x16xf32>, tensor<16x8xf32> -> tensor<2x4x8xf32>
  %dx = nn.linear_input_grad %0, %w : tensor<2x4x16xf32>, tensor<16x8xf32> -> tensor<2x4x8xf32>
  // CHECK: nn.linear_weight_grad %{{.*}}, %{{.*}} : tensor<2x4x16xf32>, tensor<2x4x8xf32> -> tensor<16x8xf32>
  %dw = nn.linear_weight_grad %0, %x : tensor<2x4x16xf32>, tensor<2x4x8xf32> -> tensor<16x8xf32>
  // CHECK: nn.linear_weight_grad %{{.*}}, %{{.*}} sum %{{.*}} : tensor<2x4x16xf32>, tensor<2x4x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
  %dw2 = nn.linear_weight_grad %0, %x sum %dw : tensor<2x4x16xf32>, tensor<2x4x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
  // CHECK: nn.matmul %{{.*}}, %{{.*}} {transpose_lhs} : tensor<8x4xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %2 = nn.matmul %a, %c {transpose_lhs} : tensor<8x4xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  // CHECK: nn.matmul %{{.*}}, %{{.*}} {transpose_rhs} : tensor<4x16xf32>, tensor<8x16xf32> -> tensor<4x8xf32>
  %3 = nn.matmul %2, %c {transpose_rhs} : tensor<4x16xf32>, tensor<8x16xf32> -> tensor<4x8xf32>
  return
}

// Norms and softmax.
// CHECK-LABEL: @norms
func.func @norms(%x: tensor<2x4x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) {
  // CHECK: nn.rms_norm %{{.*}}, %{{.*}} eps 1.000000e-05 : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
  %y, %rstd = nn.rms_norm %x, %w eps 1.0e-05 : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
  // CHECK: nn.rms_norm %{{.*}}, %{{.*}} eps 1.000000e-05 {plus_one} : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
  %y1, %rstd1 = nn.rms_norm %x, %w eps 1.0e-05 {plus_one} : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
  // CHECK: nn.rms_norm_input_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
  %1 = nn.rms_norm_input_grad %x, %w, %rstd, %y : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
  // CHECK: nn.rms_norm_weight_grad %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<2x4xf32> to tensor<8xf32>
  %2 = nn.rms_norm_weight_grad %x, %rstd, %y : tensor<2x4x8xf32>, tensor<2x4xf32> to tensor<8xf32>
  // CHECK: nn.layer_norm %{{.*}}, %{{.*}}, %{{.*}} eps 1.000000e-05 : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
  %z, %mean, %rstd2 = nn.layer_norm %x, %w, %b eps 1.0e-05 : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
  // CHECK: nn.layer_norm_input_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
  %4 = nn.layer_norm_input_grad %x, %w, %mean, %rstd2, %z : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
  // CHECK: nn.layer_norm_weight_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<2x4xf32> to tensor<8xf32>
  %5 = nn.layer_norm_weight_grad %x, %mean, %rstd2, %z : tensor<2x4x8xf32>, tensor<2x4xf32> to tensor<8xf32>
  // CHECK: nn.softmax %{{.*}} : tensor<2x4x8xf32>
  %6 = nn.softmax %x : tensor<2x4x8xf32>
  // CHECK: nn.softmax_grad %{{.*}}, %{{.*}} : tensor<2x4x8xf32>
  %7 = nn.softmax_grad %6, %y : tensor<2x4x8xf32>
  return
}

// Rotary embedding and attention with four query heads on two key heads.
// CHECK-LABEL: @attention
func.func @attention(%q: tensor<2x16x4x4xf32>, %k: tensor<2x16x2x4xf32>, %t: tensor<16x2x2xf32>, %starts: tensor<2x16xi32>) {
  // CHECK: nn.rotary adjacent %{{.*}}, %{{.*}} : tensor<2x16x4x4xf32>, tensor<16x2x2xf32>
  %0 = nn.rotary adjacent %q, %t : tensor<2x16x4x4xf32>, tensor<16x2x2xf32>
  // CHECK: nn.rotary halves %{{.*}}, %{{.*}} {inverse} : tensor<2x16x4x4xf32>, tensor<16x2x2xf32>
  %1 = nn.rotary halves %0, %t {inverse} : tensor<2x16x4x4xf32>, tensor<16x2x2xf32>
  // CHECK: nn.join_heads halves %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x16x4x4xf32>, tensor<2x16x2x4xf32>, tensor<16x2x2xf32> -> tensor<2x16x8x4xf32>
  %all = nn.join_heads halves %q, %k, %k, %t : tensor<2x16x4x4xf32>, tensor<2x16x2x4xf32>, tensor<16x2x2xf32> -> tensor<2x16x8x4xf32>
  // CHECK: nn.split_heads adjacent %{{.*}}, %{{.*}} : tensor<2x16x8x4xf32>, tensor<16x2x2xf32> -> tensor<2x16x4x4xf32>, tensor<2x16x2x4xf32>
  %sq, %sk, %sv = nn.split_heads adjacent %all, %t : tensor<2x16x8x4xf32>, tensor<16x2x2xf32> -> tensor<2x16x4x4xf32>, tensor<2x16x2x4xf32>
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale 5.000000e-01 {causal} : tensor<2x16x4x4xf32>, tensor<2x16x2x4xf32>, tensor<2x4x16xf32>
  %o, %lse = nn.attention %q, %k, %k scale 0.5 {causal} : tensor<2x16x4x4xf32>, tensor<2x16x2x4xf32>, tensor<2x4x16xf32>
  // CHECK: nn.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale 5.000000e-01 {causal} : tensor<2x16x4x4xf32>, tensor<2x16x2x4xf32>, tensor<2x4x16xf32>
  %dq, %dk, %dv = nn.attention_grad %q, %k, %k, %o, %lse, %o scale 0.5 {causal} : tensor<2x16x4x4xf32>, tensor<2x16x2x4xf32>, tensor<2x4x16xf32>
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale 5.000000e-01 {cap = 5.000000e+01 : f64, causal, window = 3 : i64} : tensor<2x16x4x4xf32>, tensor<2x16x2x4xf32>, tensor<2x4x16xf32>
  %p, %lse2 = nn.attention %q, %k, %k scale 0.5 {cap = 50.0 : f64, causal, window = 3 : i64} : tensor<2x16x4x4xf32>, tensor<2x16x2x4xf32>, tensor<2x4x16xf32>
  // CHECK: nn.attention_grad %{{.*}} scale 5.000000e-01 {cap = 5.000000e+01 : f64, causal, window = 3 : i64} : tensor<2x16x4x4xf32>, tensor<2x16x2x4xf32>, tensor<2x4x16xf32>
  %dq2, %dk2, %dv2 = nn.attention_grad %q, %k, %k, %p, %lse2, %p scale 0.5 {cap = 50.0 : f64, causal, window = 3 : i64} : tensor<2x16x4x4xf32>, tensor<2x16x2x4xf32>, tensor<2x4x16xf32>
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} from %{{.*}} scale 5.000000e-01 {causal} : tensor<2x16x4x4xf32>, tensor<2x16x2x4xf32>, tensor<2x4x16xf32>, tensor<2x16xi32>
  %d, %lse3 = nn.attention %q, %k, %k from %starts scale 0.5 {causal} : tensor<2x16x4x4xf32>, tensor<2x16x2x4xf32>, tensor<2x4x16xf32>, tensor<2x16xi32>
  // CHECK: nn.attention_grad %{{.*}} from %{{.*}} scale 5.000000e-01 {causal} : tensor<2x16x4x4xf32>, tensor<2x16x2x4xf32>, tensor<2x4x16xf32>, tensor<2x16xi32>
  %dq3, %dk3, %dv3 = nn.attention_grad %q, %k, %k, %d, %lse3, %d from %starts scale 0.5 {causal} : tensor<2x16x4x4xf32>, tensor<2x16x2x4xf32>, tensor<2x4x16xf32>, tensor<2x16xi32>
  return
}

// Embedding and losses.
// CHECK-LABEL: @losses
func.func @losses(%ids: tensor<2x4xi32>, %table: tensor<16x8xf32>, %targets: tensor<8xi32>, %logits: tensor<8x16xbf16>) {
  // CHECK: nn.embedding %{{.*}}, %{{.*}} : tensor<2x4xi32>, tensor<16x8xf32> -> tensor<2x4x8xf32>
  %0 = nn.embedding %ids, %table : tensor<2x4xi32>, tensor<16x8xf32> -> tensor<2x4x8xf32>
  // CHECK: nn.embedding_grad %{{.*}}, %{{.*}} : tensor<2x4xi32>, tensor<2x4x8xf32> -> tensor<16x8xf32>
  %1 = nn.embedding_grad %ids, %0 : tensor<2x4xi32>, tensor<2x4x8xf32> -> tensor<16x8xf32>
  // CHECK: nn.cross_entropy %{{.*}}, %{{.*}} ignore_index -100 : tensor<8x16xbf16>, tensor<8xi32>, tensor<8xf32>
  %rows, %lse = nn.cross_entropy %logits, %targets ignore_index -100 : tensor<8x16xbf16>, tensor<8xi32>, tensor<8xf32>
  // CHECK: nn.cross_entropy %{{.*}}, %{{.*}} ignore_index -100 : tensor<2x4x8xf32>, tensor<2x4xi32>, tensor<2x4xf32>
  %rows2, %lse2 = nn.cross_entropy %0, %ids ignore_index -100 : tensor<2x4x8xf32>, tensor<2x4xi32>, tensor<2x4xf32>
  // CHECK: nn.cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} ignore_index -100 : tensor<8x16xbf16>, tensor<8xi32>, tensor<8xf32>
  %2 = nn.cross_entropy_grad %logits, %targets, %lse, %rows ignore_index -100 : tensor<8x16xbf16>, tensor<8xi32>, tensor<8xf32>
  %sum = nn.sum %rows2 [0, 1] : tensor<2x4xf32> to tensor<f32>
  // CHECK: nn.count_labels %{{.*}} ignore_index -100 : tensor<2x4xi32> -> tensor<i64>
  %count = nn.count_labels %ids ignore_index -100 : tensor<2x4xi32> -> tensor<i64>
  // CHECK: nn.divide_by_count %{{.*}}, %{{.*}} : tensor<f32>, tensor<i64>
  %loss = nn.divide_by_count %sum, %count : tensor<f32>, tensor<i64>
  // CHECK: nn.mse_loss %{{.*}}, %{{.*}} count 64 : tensor<2x4x8xf32>, tensor<f32>
  %3 = nn.mse_loss %0, %0 count 64 : tensor<2x4x8xf32>, tensor<f32>
  // CHECK: nn.mse_loss_grad %{{.*}}, %{{.*}}, %{{.*}} count 64 : tensor<2x4x8xf32>, tensor<f32>
  %4 = nn.mse_loss_grad %0, %0, %3 count 64 : tensor<2x4x8xf32>, tensor<f32>
  return
}

// The exact gradient norm and the optimizer.
// CHECK-LABEL: @optimizer
func.func @optimizer(%g: tensor<4x8xf32>, %h: tensor<8xf32>, %lr: tensor<f32>, %step: tensor<i32>) {
  // CHECK: nn.abs_max %{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<8xf32> -> tensor<f32>
  %max = nn.abs_max %g, %h : tensor<4x8xf32>, tensor<8xf32> -> tensor<f32>
  // CHECK: nn.sum_squares %{{.*}}, %{{.*}}, %{{.*}} : tensor<f32>, tensor<4x8xf32>, tensor<8xf32> -> tensor<2xi64>
  %sum = nn.sum_squares %max, %g, %h : tensor<f32>, tensor<4x8xf32>, tensor<8xf32> -> tensor<2xi64>
  // CHECK: nn.clip_coefficient %{{.*}}, %{{.*}} max_norm 1.000000e+00 : tensor<f32>, tensor<2xi64>
  %norm, %clip = nn.clip_coefficient %max, %sum max_norm 1.0 : tensor<f32>, tensor<2xi64>
  // CHECK: nn.adamw [@mlp.weight] moments [@mlp.weight.exp_avg], [@mlp.weight.exp_avg_sq](%{{.*}}) lr %{{.*}} step %{{.*}} clip %{{.*}} {beta1 = 9.000000e-01 : f64, beta2 = 0.94999999999999996 : f64, eps = 1.000000e-08 : f64, weight_decay = 1.000000e-01 : f64} : tensor<4x8xf32>
  nn.adamw [@mlp.weight] moments [@mlp.weight.exp_avg], [@mlp.weight.exp_avg_sq] (%g) lr %lr step %step clip %clip
      {beta1 = 0.9 : f64, beta2 = 0.95 : f64, eps = 1.0e-8 : f64, weight_decay = 0.1 : f64} : tensor<4x8xf32>
  return
}

// A fusion of two ops with two results.
// CHECK-LABEL: @fusion
func.func @fusion(%x: tensor<4x8xf32>, %r: tensor<4x8xf32>) {
  // CHECK: nn.fusion(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<4x8xf32>):
  // CHECK-NEXT: %[[S:.*]] = nn.add %[[A]], %[[B]] : tensor<4x8xf32>
  // CHECK-NEXT: %[[T:.*]] = nn.silu %[[S]] : tensor<4x8xf32>
  // CHECK-NEXT: nn.yield %[[S]], %[[T]] : tensor<4x8xf32>, tensor<4x8xf32>
  %h, %y = nn.fusion (%x, %r) : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  ^bb0(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>):
    %s = nn.add %a, %b : tensor<4x8xf32>
    %t = nn.silu %s : tensor<4x8xf32>
    nn.yield %s, %t : tensor<4x8xf32>, tensor<4x8xf32>
  }
  return
}
