// RUN: fsdp-opt %s --split-input-file --fsdp-optimizer | FileCheck %s
// RUN: fsdp-opt %s --split-input-file --fsdp-optimizer="beta1=0.5 beta2=0.25 eps=0.5 weight_decay=0 max_norm=0" | FileCheck %s --check-prefix=OPTIONS

// Sharded: the maximum and the integer sum are combined over the shards' axis,
// in registration order although the gradients come last layer first. Moments
// have the parameter's placement.
// CHECK: nn.parameter @w1
// CHECK-NEXT: nn.buffer @w0.exp_avg : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.shard<0, ["dp_shard"]>, nn.state_of = @w0}
// CHECK-NEXT: nn.buffer @w1.exp_avg : tensor<4xf32>
// CHECK-NEXT: nn.buffer @w0.exp_avg_sq : tensor<8x8xf32>
// CHECK-NEXT: nn.buffer @w1.exp_avg_sq : tensor<4xf32>
// CHECK-LABEL: func.func @train
// CHECK-SAME: %[[G0:.*]]: tensor<3x8xf32>, %[[G1:.*]]: tensor<2xf32>, %[[LOSS:.*]]: tensor<f32>, %[[LR:.*]]: tensor<f32> {nn.name = "lr"}, %[[STEP:.*]]: tensor<i32> {nn.name = "step"})
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<f32> {nn.name = "grad_norm"})
// CHECK-NEXT: %[[M0:.*]] = nn.abs_max %[[G0]], %[[G1]]
// CHECK-NEXT: %[[M:.*]] = fsdp.all_reduce max %[[M0]] on @mesh["dp_shard"] scale 1.000000e+00 {serves = "gradient maximum"} : tensor<f32> -> tensor<f32>
// CHECK-NEXT: %[[S0:.*]] = nn.sum_squares %[[M]], %[[G0]], %[[G1]]
// CHECK-NEXT: %[[S:.*]] = fsdp.all_reduce sum %[[S0]] on @mesh["dp_shard"] scale 1.000000e+00 {serves = "gradient norm"} : tensor<2xi64> -> tensor<2xi64>
// CHECK-NEXT: %[[NORM:.*]], %[[C:.*]] = nn.clip_coefficient %[[M]], %[[S]] max_norm 1.000000e+00
// CHECK-NEXT: nn.adamw [@w0, @w1] moments [@w0.exp_avg, @w1.exp_avg], [@w0.exp_avg_sq, @w1.exp_avg_sq](%[[G0]], %[[G1]]) lr %[[LR]] step %[[STEP]] clip %[[C]] {beta1 = 9.000000e-01 : f64, beta2 = 0.94999999999999996 : f64, eps = 1.000000e-08 : f64, weight_decay = 1.000000e-01 : f64}
// CHECK-NEXT: return %[[LOSS]], %[[NORM]]

// Without clipping the norm is computed and returned all the same.
// OPTIONS: %[[NORM:.*]], %{{.*}} = nn.clip_coefficient {{.*}} max_norm 0.000000e+00
// OPTIONS-NEXT: nn.adamw {{.*}} {beta1 = 5.000000e-01 : f64, beta2 = 2.500000e-01 : f64, eps = 5.000000e-01 : f64, weight_decay = 0.000000e+00 : f64}
// OPTIONS-NEXT: return %{{.*}}, %[[NORM]]
fsdp.mesh @mesh ["dp_shard" = 3]
nn.parameter @w0 : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.shard<0, ["dp_shard"]>}
nn.parameter @w1 : tensor<4xf32> init #nn.zeros {fsdp.placement = #fsdp.shard<0, ["dp_shard"]>}
func.func @train(%g0: tensor<3x8xf32>, %g1: tensor<2xf32>, %loss: tensor<f32>) -> (tensor<f32> {nn.name = "loss"}) {
  nn.gradient @w1, %g1 : tensor<2xf32>
  nn.gradient @w0, %g0 : tensor<3x8xf32>
  return %loss : tensor<f32>
}

// -----

// Hybrid: shards differ along dp_shard only, so that axis alone is summed.
// CHECK-LABEL: func.func @train
// CHECK: fsdp.all_reduce max %{{.*}} on @mesh["dp_shard"]
// CHECK: fsdp.all_reduce sum %{{.*}} on @mesh["dp_shard"]
fsdp.mesh @mesh ["dp_replicate" = 2, "dp_shard" = 4]
nn.parameter @w : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.shard<0, ["dp_shard"]>}
func.func @train(%g: tensor<2xf32>) {
  nn.gradient @w, %g : tensor<2xf32>
  return
}

// -----

// Replicated: every rank has all gradients and needs nobody.
// CHECK-LABEL: func.func @train
// CHECK-NOT: fsdp.
// CHECK: nn.adamw
fsdp.mesh @mesh ["dp_shard" = 2]
nn.parameter @w : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.replicated}
func.func @train(%g: tensor<8xf32>) {
  nn.gradient @w, %g : tensor<8xf32>
  return
}

// -----

// A replicated scalar beside a sharded vector counts once: it is cut into
// shards of ceil(1 / 2) = 1, the second of which is padding.
// CHECK-LABEL: func.func @train
// CHECK-SAME: %[[G:.*]]: tensor<4xf32>, %[[H:.*]]: tensor<f32>,
// CHECK-NEXT: nn.abs_max %[[G]], %[[H]]
// CHECK: %[[F:.*]] = nn.reshape %[[H]] : tensor<f32> to tensor<1xf32>
// CHECK-NEXT: %[[P:.*]] = fsdp.reduce_scatter max %[[F]] on @mesh["dp_shard"] dim 0 scale 1.000000e+00 {serves = "gradient norm"} : tensor<1xf32> -> tensor<1xf32>
// CHECK-NEXT: nn.sum_squares %{{.*}}, %[[G]], %[[P]]
// CHECK: nn.adamw [@w, @s] {{.*}}(%[[G]], %[[H]])
fsdp.mesh @mesh ["dp_shard" = 2]
nn.parameter @w : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.shard<0, ["dp_shard"]>}
nn.parameter @s : tensor<f32> init #nn.zeros {fsdp.placement = #fsdp.replicated}
func.func @train(%g: tensor<4xf32>, %h: tensor<f32>) {
  nn.gradient @s, %h : tensor<f32>
  nn.gradient @w, %g : tensor<4xf32>
  return
}

// -----

// A program without a mesh works too.
// CHECK-LABEL: func.func @train
// CHECK: nn.adamw [@w]
nn.parameter @w : tensor<8xf32> init #nn.zeros
func.func @train(%g: tensor<8xf32>) {
  nn.gradient @w, %g : tensor<8xf32>
  return
}
