// RUN: fsdp-opt %s --split-input-file --fsdp-optimizer | FileCheck %s
// RUN: fsdp-opt %s --split-input-file --fsdp-optimizer="beta1=0.5 beta2=0.25 eps=0.5 weight_decay=0 max_norm=0" | FileCheck %s --check-prefix=OPTIONS

// In registration order although the gradients come last layer first. Moments
// have the parameter's placement. The first gradient is brought where its
// parameter is stored; the second is there.
// CHECK: nn.parameter @w1
// CHECK-NEXT: nn.buffer @w0.exp_avg : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>, nn.state_of = @w0}
// CHECK-NEXT: nn.buffer @w1.exp_avg : tensor<4xf32>
// CHECK-NEXT: nn.buffer @w0.exp_avg_sq : tensor<8x8xf32>
// CHECK-NEXT: nn.buffer @w1.exp_avg_sq : tensor<4xf32>
// CHECK-LABEL: func.func @train
// CHECK-SAME: %[[D0:.*]]: tensor<8x8xf32>, %[[D1:.*]]: tensor<4xbf16>, %[[LOSS:.*]]: tensor<f32>, %[[LR:.*]]: tensor<f32> {nn.name = "lr"}, %[[STEP:.*]]: tensor<i32> {nn.name = "step"})
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<f32> {nn.name = "grad_norm"})
// CHECK-NEXT: %[[G1:.*]] = fsdp.redistribute %[[D1]]
// CHECK-NEXT: %[[G0:.*]] = fsdp.redistribute %[[D0]] on @mesh to <[{| "dp_shard"}, {}]> {{.*}}: tensor<8x8xf32> -> tensor<8x8xf32>
// CHECK-NEXT: %[[M:.*]] = nn.abs_max %[[G0]], %[[G1]]
// CHECK-NEXT: %[[S:.*]] = nn.sum_squares %[[M]], %[[G0]], %[[G1]]
// CHECK-NEXT: %[[NORM:.*]], %[[C:.*]] = nn.clip_coefficient %[[M]], %[[S]] max_norm 1.000000e+00
// CHECK-NEXT: nn.adamw [@w0, @w1] moments [@w0.exp_avg, @w1.exp_avg], [@w0.exp_avg_sq, @w1.exp_avg_sq](%[[G0]], %[[G1]]) lr %[[LR]] step %[[STEP]] clip %[[C]] {beta1 = 9.000000e-01 : f64, beta2 = 0.94999999999999996 : f64, eps = 1.000000e-08 : f64, nn.module = "optimizer", weight_decay = 1.000000e-01 : f64}
// CHECK-NEXT: return %[[LOSS]], %[[NORM]]

// Without clipping the norm is computed and returned all the same.
// OPTIONS: %[[NORM:.*]], %{{.*}} = nn.clip_coefficient {{.*}} max_norm 0.000000e+00
// OPTIONS-NEXT: nn.adamw {{.*}} {beta1 = 5.000000e-01 : f64, beta2 = 2.500000e-01 : f64, eps = 5.000000e-01 : f64, nn.module = "optimizer", weight_decay = 0.000000e+00 : f64}
// OPTIONS-NEXT: return %{{.*}}, %[[NORM]]
fsdp.mesh @mesh ["dp_shard" = 3]
nn.parameter @w0 : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
nn.parameter @w1 : tensor<4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}]>}
func.func @train(%d0: tensor<8x8xf32>, %d1: tensor<4xbf16>, %loss: tensor<f32>) -> (tensor<f32> {nn.name = "loss"}) {
  %g1 = fsdp.redistribute %d1 on @mesh to <[{| "dp_shard"}]> wire f32 : tensor<4xbf16> -> tensor<4xf32>
  nn.gradient @w1, %g1 : tensor<4xf32>
  nn.gradient @w0, %d0 : tensor<8x8xf32>
  return %loss : tensor<f32>
}

// -----

// What is stored sharded over other axes has a sum of its own, so that every element is
// counted on one rank only.
// CHECK-LABEL: func.func @train
// CHECK: %[[M:.*]] = nn.abs_max %[[W:.*]], %[[S:.*]], %[[V:[^ ]*]] {{.*}}:
// CHECK-NEXT: %[[A:.*]] = nn.sum_squares %[[M]], %[[W]], %[[V]] {{.*}}:
// CHECK-NEXT: %[[B:.*]] = nn.sum_squares %[[M]], %[[S]] {{.*}}:
// CHECK-NEXT: %[[SUM:.*]] = nn.concat %[[A]], %[[B]] dim 0 {{.*}}: tensor<2xi64>, tensor<2xi64> to tensor<4xi64>
// CHECK-NEXT: nn.clip_coefficient %[[M]], %[[SUM]]
fsdp.mesh @mesh ["dp" = 2, "tp" = 2]
nn.parameter @w : tensor<8x4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{"tp" | "dp"}, {}]>}
nn.parameter @s : tensor<f32> init #nn.zeros {fsdp.placement = #fsdp.placement<[]>}
nn.parameter @v : tensor<8x4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp"}, {"tp"}]>}
func.func @train(%g: tensor<8x4xf32>, %h: tensor<f32>) {
  nn.gradient @s, %h : tensor<f32>
  nn.gradient @w, %g : tensor<8x4xf32>
  nn.gradient @v, %g : tensor<8x4xf32>
  return
}

// -----

// A program without a mesh works too.
// CHECK-LABEL: func.func @train
// CHECK-NOT: fsdp.
// CHECK: nn.adamw [@w]
nn.parameter @w : tensor<8xf32> init #nn.zeros
func.func @train(%g: tensor<8xf32>) {
  nn.gradient @w, %g : tensor<8xf32>
  return
}
