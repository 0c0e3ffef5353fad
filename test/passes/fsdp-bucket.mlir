// RUN: fsdp-opt %s --split-input-file --fsdp-bucket | FileCheck %s
// RUN: fsdp-opt %s --split-input-file --fsdp-remat --fsdp-bucket | FileCheck %s --check-prefix=REMAT
// RUN: sed -e 's/merge = true/merge = false/' %s | fsdp-opt --split-input-file --fsdp-bucket | FileCheck %s --check-prefix=NONE

// The two gathers of a block become one, where the first stood, in registration
// order (a before b) although b is used first. The two reductions of a block
// become one, where the last stood.
// CHECK-LABEL: func.func @train
// CHECK-NOT: fsdp.all_gather
// CHECK: %[[G:.*]]:2 = fsdp.all_gather %{{.*}}, %{{.*}} on @mesh["dp_shard"] dim 0 {{{.*}}fsdp.parameters = [@layers.0.a.weight, @layers.0.b.weight], serves = #fsdp.origin<all "fwd layers.0">} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>, tensor<8x8xf32>
// CHECK: nn.linear %{{.*}}, %[[G]]#1
// CHECK: nn.linear %{{.*}}, %[[G]]#0
// CHECK-NOT: fsdp.all_gather
// CHECK: fsdp.all_gather {{.*}}fsdp.parameters = [@layers.1.a.weight, @layers.1.b.weight], serves = #fsdp.origin<all "fwd layers.1">
// CHECK-NOT: fsdp.{{all_gather|reduce_scatter}}
// CHECK: nn.seed
// CHECK-NOT: fsdp.{{all_gather|reduce_scatter}}
// CHECK: %[[R1:.*]]:2 = fsdp.reduce_scatter sum %{{.*}}, %{{.*}} on @mesh["dp_shard"] dim 0 {{{.*}}fsdp.parameters = [@layers.1.a.weight, @layers.1.b.weight], serves = #fsdp.origin<all "bwd layers.1">}
// CHECK-NOT: fsdp.{{all_gather|reduce_scatter}}
// CHECK: %[[R0:.*]]:2 = fsdp.reduce_scatter {{.*}}fsdp.parameters = [@layers.0.a.weight, @layers.0.b.weight], serves = #fsdp.origin<all "bwd layers.0">
// CHECK-NOT: fsdp.{{all_gather|reduce_scatter}}
// CHECK: nn.gradient @layers.1.a.weight, %[[R1]]#0
// CHECK: nn.gradient @layers.1.b.weight, %[[R1]]#1
// CHECK: nn.gradient @layers.0.a.weight, %[[R0]]#0
// CHECK: nn.gradient @layers.0.b.weight, %[[R0]]#1
// CHECK-NOT: fsdp.
// CHECK: return

// Gathers of the backward pass have buckets of their own: four in all.
// REMAT-LABEL: func.func @train
// REMAT-NOT: fsdp.all_gather
// REMAT: fsdp.all_gather {{.*}}serves = #fsdp.origin<all "fwd layers.0">
// REMAT-NOT: fsdp.all_gather
// REMAT: fsdp.all_gather {{.*}}serves = #fsdp.origin<all "fwd layers.1">
// REMAT-NOT: fsdp.all_gather
// REMAT: nn.seed
// REMAT-NOT: fsdp.all_gather
// REMAT: fsdp.all_gather {{.*}}fsdp.parameters = [@layers.1.a.weight, @layers.1.b.weight], serves = #fsdp.origin<all "again layers.1">
// REMAT-NOT: fsdp.all_gather
// REMAT: fsdp.all_gather {{.*}}fsdp.parameters = [@layers.0.a.weight], serves = #fsdp.origin<all "again layers.0">
// REMAT-NOT: fsdp.all_gather
// REMAT: return

// Without buckets every collective stays as it is, and where it is.
// NONE-LABEL: func.func @train
// NONE-COUNT-4: fsdp.all_gather %{{[^,]*}} on
// NONE-NOT: fsdp.all_gather
// NONE: nn.seed
// NONE-COUNT-4: fsdp.reduce_scatter sum %{{[^,]*}} on
// NONE-NOT: fsdp.{{all_gather|reduce_scatter}}
// NONE: return
module attributes {fsdp.plan = [
    {match = ["* layers.0.{a,b} {all_gather,reduce_scatter,all_reduce}"], bucket = "layers.0", merge = true, overlap = false, prefetch = 1, defer = 1, recompute = true},
    {match = ["* layers.1.{a,b} {all_gather,reduce_scatter,all_reduce}"], bucket = "layers.1", merge = true, overlap = false, prefetch = 1, defer = 1, recompute = true}]} {
  fsdp.mesh @mesh ["dp_shard" = 2]
  nn.parameter @layers.0.a.weight : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
  nn.parameter @layers.0.b.weight : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
  nn.parameter @layers.1.a.weight : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
  nn.parameter @layers.1.b.weight : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
  func.func @train(%x: tensor<2x8xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
    %w0_b_s = nn.read @layers.0.b.weight : tensor<4x8xf32>
    %w0_b = fsdp.all_gather %w0_b_s on @mesh["dp_shard"] dim 0 {serves = #fsdp.origin<all "fwd layers.0.b">, fsdp.parameters = [@layers.0.b.weight]} : tensor<4x8xf32> -> tensor<8x8xf32>
    %h0 = nn.linear %x, %w0_b : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %w0_a_s = nn.read @layers.0.a.weight : tensor<4x8xf32>
    %w0_a = fsdp.all_gather %w0_a_s on @mesh["dp_shard"] dim 0 {serves = #fsdp.origin<all "fwd layers.0.a">, fsdp.parameters = [@layers.0.a.weight]} : tensor<4x8xf32> -> tensor<8x8xf32>
    %h1 = nn.linear %h0, %w0_a : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %w1_b_s = nn.read @layers.1.b.weight : tensor<4x8xf32>
    %w1_b = fsdp.all_gather %w1_b_s on @mesh["dp_shard"] dim 0 {serves = #fsdp.origin<all "fwd layers.1.b">, fsdp.parameters = [@layers.1.b.weight]} : tensor<4x8xf32> -> tensor<8x8xf32>
    %h2 = nn.linear %h1, %w1_b : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %w1_a_s = nn.read @layers.1.a.weight : tensor<4x8xf32>
    %w1_a = fsdp.all_gather %w1_a_s on @mesh["dp_shard"] dim 0 {serves = #fsdp.origin<all "fwd layers.1.a">, fsdp.parameters = [@layers.1.a.weight]} : tensor<4x8xf32> -> tensor<8x8xf32>
    %h3 = nn.linear %h2, %w1_a : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %loss = nn.sum %h3 [0, 1] : tensor<2x8xf32> to tensor<f32>
    %one = nn.seed %loss : tensor<f32>
    %d3 = nn.broadcast %one [] : tensor<f32> to tensor<2x8xf32>
    %g3 = nn.matmul %d3, %h2 {transpose_lhs} : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<8x8xf32>
    %r3 = fsdp.reduce_scatter sum %g3 on @mesh["dp_shard"] dim 0 {serves = #fsdp.origin<all "bwd layers.1.a">, fsdp.parameters = [@layers.1.a.weight]} : tensor<8x8xf32> -> tensor<4x8xf32>
    %d2 = nn.matmul %d3, %w1_a : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %g2 = nn.matmul %d2, %h1 {transpose_lhs} : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<8x8xf32>
    %r2 = fsdp.reduce_scatter sum %g2 on @mesh["dp_shard"] dim 0 {serves = #fsdp.origin<all "bwd layers.1.b">, fsdp.parameters = [@layers.1.b.weight]} : tensor<8x8xf32> -> tensor<4x8xf32>
    %d1 = nn.matmul %d2, %w1_b : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %g1 = nn.matmul %d1, %h0 {transpose_lhs} : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<8x8xf32>
    %r1 = fsdp.reduce_scatter sum %g1 on @mesh["dp_shard"] dim 0 {serves = #fsdp.origin<all "bwd layers.0.a">, fsdp.parameters = [@layers.0.a.weight]} : tensor<8x8xf32> -> tensor<4x8xf32>
    %d0 = nn.matmul %d1, %w0_a : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %g0 = nn.matmul %d0, %x {transpose_lhs} : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<8x8xf32>
    %r0 = fsdp.reduce_scatter sum %g0 on @mesh["dp_shard"] dim 0 {serves = #fsdp.origin<all "bwd layers.0.b">, fsdp.parameters = [@layers.0.b.weight]} : tensor<8x8xf32> -> tensor<4x8xf32>
    nn.gradient @layers.1.a.weight, %r3 : tensor<4x8xf32>
    nn.gradient @layers.1.b.weight, %r2 : tensor<4x8xf32>
    nn.gradient @layers.0.a.weight, %r1 : tensor<4x8xf32>
    nn.gradient @layers.0.b.weight, %r0 : tensor<4x8xf32>
    return %loss : tensor<f32>
  }
}

// -----

// Shards within groups of ranks: what the scatter of a group gives is reduced
// once more over the groups. Both links of the chain are buckets, the second
// after the first; gradients, alone or after a cast, follow.
// CHECK-LABEL: func.func @hybrid
// CHECK-NOT: fsdp.{{reduce_scatter|all_reduce}}
// CHECK: nn.matmul
// CHECK-NOT: fsdp.{{reduce_scatter|all_reduce}}
// CHECK: nn.matmul
// CHECK-NEXT: %[[S:.*]]:2 = fsdp.reduce_scatter sum %{{.*}}, %{{.*}} on @mesh["dp_shard"] dim 0 {{{.*}}fsdp.parameters = [@layers.0.a.weight, @layers.0.b.weight], serves = #fsdp.origin<all "bwd layers.0">}
// CHECK-NEXT: %[[R:.*]]:2 = fsdp.all_reduce sum %[[S]]#0, %[[S]]#1 on @mesh["dp_replicate"] {{{.*}}fsdp.parameters = [@layers.0.a.weight, @layers.0.b.weight], serves = #fsdp.origin<all "bwd layers.0">}
// CHECK-DAG: nn.gradient @layers.0.a.weight, %[[R]]#0
// CHECK-DAG: %[[C:.*]] = nn.cast %[[R]]#1
// CHECK-DAG: nn.gradient @layers.0.b.weight, %[[C]]
// CHECK-NOT: fsdp.
// CHECK: return

// NONE-LABEL: func.func @hybrid
// NONE-COUNT-2: fsdp.reduce_scatter sum %{{[^,]*}} on {{.*[[:space:]].*}}fsdp.all_reduce sum %{{[^,]*}} on
// NONE-NOT: fsdp.{{reduce_scatter|all_reduce}}
// NONE: return
module attributes {fsdp.plan = [
    {match = ["* layers.0.{a,b} {all_gather,reduce_scatter,all_reduce}"], bucket = "layers.0", merge = true, overlap = false, prefetch = 1, defer = 1, recompute = true}]} {
  fsdp.mesh @mesh ["dp_replicate" = 2, "dp_shard" = 2]
  nn.parameter @layers.0.a.weight : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
  nn.parameter @layers.0.b.weight : tensor<8x8xf64> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
  func.func @hybrid(%x: tensor<2x8xf32> {nn.name = "x"}, %loss: tensor<f32> {nn.name = "l"}) -> (tensor<f32> {nn.name = "loss"}) {
    %one = nn.seed %loss : tensor<f32>
    %d = nn.broadcast %one [] : tensor<f32> to tensor<2x8xf32>
    %g1 = nn.matmul %d, %x {transpose_lhs} : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<8x8xf32>
    %s1 = fsdp.reduce_scatter sum %g1 on @mesh["dp_shard"] dim 0 {serves = #fsdp.origin<all "bwd layers.0.b">, fsdp.parameters = [@layers.0.b.weight]} : tensor<8x8xf32> -> tensor<4x8xf32>
    %r1 = fsdp.all_reduce sum %s1 on @mesh["dp_replicate"] {serves = #fsdp.origin<all "bwd layers.0.b">, fsdp.parameters = [@layers.0.b.weight]} : tensor<4x8xf32> -> tensor<4x8xf32>
    %c1 = nn.cast %r1 : tensor<4x8xf32> to tensor<4x8xf64>
    nn.gradient @layers.0.b.weight, %c1 : tensor<4x8xf64>
    %g0 = nn.matmul %x, %d {transpose_lhs} : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<8x8xf32>
    %s0 = fsdp.reduce_scatter sum %g0 on @mesh["dp_shard"] dim 0 {serves = #fsdp.origin<all "bwd layers.0.a">, fsdp.parameters = [@layers.0.a.weight]} : tensor<8x8xf32> -> tensor<4x8xf32>
    %r0 = fsdp.all_reduce sum %s0 on @mesh["dp_replicate"] {serves = #fsdp.origin<all "bwd layers.0.a">, fsdp.parameters = [@layers.0.a.weight]} : tensor<4x8xf32> -> tensor<4x8xf32>
    nn.gradient @layers.0.a.weight, %r0 : tensor<4x8xf32>
    return %loss : tensor<f32>
  }
}
