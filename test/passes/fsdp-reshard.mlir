// RUN: fsdp-opt %s --fsdp-reshard=ranks=2 | FileCheck %s
// RUN: fsdp-opt %s --fsdp-reshard=ranks=2 --fsdp-address --fsdp-plan=reshard-after-forward=always --fsdp-remat --cse \
// RUN:   | FileCheck %s --check-prefix=AGAIN
// RUN: fsdp-opt %s --fsdp-reshard=ranks=2 --fsdp-address --fsdp-plan=reshard-after-forward=never --fsdp-remat --cse \
// RUN:   | FileCheck %s --check-prefix=NEVER
// RUN: fsdp-opt %s --fsdp-reshard=ranks=4 | FileCheck %s --check-prefix=WHOLE
// RUN: fsdp-opt %s --fsdp-reshard | FileCheck %s --check-prefix=WHOLE
// RUN: not fsdp-opt %s --fsdp-reshard=ranks=3 2>&1 | FileCheck %s --check-prefix=THREE

// RUN: sed 's/^  %d2 = nn.cast/  %late = fsdp.shard_of %w2 on @mesh["dp_shard":(2)2] dim 0 {regathered} : tensor<56xbf16> -> tensor<28xbf16>\n&/' %s \
// RUN:   | not fsdp-opt --fsdp-address --fsdp-plan --fsdp-remat 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: 'fsdp.shard_of' op is 'regathered' after nn.seed; put it into the forward pass

// What the backward pass needs of a gathered parameter leaves a shard where
// the forward pass used it last, also through moves of its elements (a.weight).
// The first weight is not read in the backward pass, and evaluation has none.
// CHECK-LABEL: func.func @train
// CHECK-NOT: fsdp.shard_of
// CHECK: %[[B:.*]] = fsdp.all_gather {{.*}} on @mesh["dp_shard", "tp"] dim 0 {{.*}}@layers.1.b.weight
// CHECK-NEXT: nn.linear
// CHECK-NEXT: fsdp.shard_of %[[B]] on @mesh["dp_shard":(2)2, "tp"] dim 0 {regathered} : tensor<7x8xbf16> -> tensor<2x8xbf16>
// CHECK: %[[A:.*]] = fsdp.all_gather {{.*}} on @mesh["dp_shard"] dim 0 {{.*}}@layers.1.a.weight
// CHECK: %[[R:.*]] = nn.reshape %[[A]]
// CHECK-NEXT: %[[H:.*]] = nn.linear
// CHECK-NEXT: fsdp.shard_of %[[A]] on @mesh["dp_shard":(2)2] dim 0 {regathered} : tensor<56xbf16> -> tensor<28xbf16>
// CHECK-NOT: fsdp.shard_of

// The clone gathers that, with the address and the label of a clone. The shard
// is an op like any other then.
// AGAIN-LABEL: func.func @train
// AGAIN: %[[B:.*]] = fsdp.shard_of %{{.*}} on @mesh["dp_shard":(2)2, "tp"] dim 0 : tensor<7x8xbf16>
// AGAIN: %[[A:.*]] = fsdp.shard_of %{{.*}} on @mesh["dp_shard":(2)2] dim 0 : tensor<56xbf16>
// AGAIN: nn.seed
// AGAIN-NOT: on @mesh["dp_shard"]
// AGAIN: %[[KEPT:.*]] = nn.recompute_from %[[B]]
// AGAIN-NEXT: %[[W:.*]] = fsdp.all_gather %[[KEPT]] on @mesh["dp_shard":(2)2, "tp"] dim 0
// AGAIN-SAME: fsdp.origin = #fsdp.origin<"again layers.1.b all_gather">
// AGAIN-SAME: serves = #fsdp.origin<all "again layers.1.b">
// AGAIN-SAME: : tensor<2x8xbf16> -> tensor<7x8xbf16>
// AGAIN: nn.matmul %{{.*}}, %[[W]]

// What stays gathered needs no shard; lowering drops it.
// NEVER-LABEL: func.func @train
// NEVER: nn.seed
// NEVER-NOT: fsdp.all_gather
// NEVER: func.func @evaluate

// WHOLE-NOT: fsdp.shard_of

// THREE: error: parameters are gathered from 4 ranks of the data axes, and 3 consecutive ones (parallelism.fsdp_reshard_ranks) are no part of these: "dp_shard" has 4; state that, or a divisor of it
fsdp.mesh @mesh ["dp_shard" = 4 : data, "tp" = 2 : tensor]
nn.parameter @layers.0.a.weight : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
nn.parameter @layers.1.b.weight : tensor<7x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard", "tp"}, {}]>}
nn.parameter @layers.1.a.weight : tensor<56xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}]>}
func.func @train(%x: tensor<2x8xbf16> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  %s0_wide = nn.read @layers.0.a.weight : tensor<2x8xf32>
  %s0 = nn.cast %s0_wide : tensor<2x8xf32> to tensor<2x8xbf16>
  %w0 = fsdp.all_gather %s0 on @mesh["dp_shard"] dim 0 {serves = #fsdp.origin<all "fwd layers.0.a">, fsdp.parameters = [@layers.0.a.weight]} : tensor<2x8xbf16> -> tensor<8x8xbf16>
  %h0 = nn.linear %x, %w0 : tensor<2x8xbf16>, tensor<8x8xbf16> -> tensor<2x8xbf16>
  %s1_wide = nn.read @layers.1.b.weight : tensor<1x8xf32>
  %s1 = nn.cast %s1_wide : tensor<1x8xf32> to tensor<1x8xbf16>
  %w1 = fsdp.all_gather %s1 on @mesh["dp_shard", "tp"] dim 0 {serves = #fsdp.origin<all "fwd layers.1.b">, fsdp.parameters = [@layers.1.b.weight]} : tensor<1x8xbf16> -> tensor<7x8xbf16>
  %h1 = nn.linear %h0, %w1 : tensor<2x8xbf16>, tensor<7x8xbf16> -> tensor<2x7xbf16>
  %s2_wide = nn.read @layers.1.a.weight : tensor<14xf32>
  %s2 = nn.cast %s2_wide : tensor<14xf32> to tensor<14xbf16>
  %w2 = fsdp.all_gather %s2 on @mesh["dp_shard"] dim 0 {serves = #fsdp.origin<all "fwd layers.1.a">, fsdp.parameters = [@layers.1.a.weight]} : tensor<14xbf16> -> tensor<56xbf16>
  %r2 = nn.reshape %w2 : tensor<56xbf16> to tensor<8x7xbf16>
  %h2 = nn.linear %h1, %r2 : tensor<2x7xbf16>, tensor<8x7xbf16> -> tensor<2x8xbf16>
  %wide = nn.cast %h2 : tensor<2x8xbf16> to tensor<2x8xf32>
  %loss = nn.sum %wide [0, 1] : tensor<2x8xf32> to tensor<f32>
  %one = nn.seed %loss : tensor<f32>
  %d3 = nn.broadcast %one [] : tensor<f32> to tensor<2x8xf32>
  %d2 = nn.cast %d3 : tensor<2x8xf32> to tensor<2x8xbf16>
  %d1 = nn.matmul %d2, %r2 : tensor<2x8xbf16>, tensor<8x7xbf16> -> tensor<2x7xbf16>
  %d0 = nn.matmul %d1, %w1 : tensor<2x7xbf16>, tensor<7x8xbf16> -> tensor<2x8xbf16>
  %g0 = nn.matmul %d0, %x {transpose_lhs} : tensor<2x8xbf16>, tensor<2x8xbf16> -> tensor<8x8xbf16>
  %g = fsdp.reduce_scatter sum %g0 on @mesh["dp_shard"] dim 0 {serves = #fsdp.origin<all "bwd layers.0.a">, fsdp.parameters = [@layers.0.a.weight]} : tensor<8x8xbf16> -> tensor<2x8xf32>
  nn.gradient @layers.0.a.weight, %g : tensor<2x8xf32>
  return %loss : tensor<f32>
}
func.func @evaluate(%x: tensor<2x8xbf16> {nn.name = "x"}) -> (tensor<2x8xbf16> {nn.name = "y"}) {
  %s0_wide = nn.read @layers.0.a.weight : tensor<2x8xf32>
  %s0 = nn.cast %s0_wide : tensor<2x8xf32> to tensor<2x8xbf16>
  %w0 = fsdp.all_gather %s0 on @mesh["dp_shard"] dim 0 {serves = #fsdp.origin<all "fwd layers.0.a">, fsdp.parameters = [@layers.0.a.weight]} : tensor<2x8xbf16> -> tensor<8x8xbf16>
  %h0 = nn.linear %x, %w0 : tensor<2x8xbf16>, tensor<8x8xbf16> -> tensor<2x8xbf16>
  return %h0 : tensor<2x8xbf16>
}
