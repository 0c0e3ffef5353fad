// RUN: fsdp-opt %s --split-input-file --fsdp-remat --fsdp-bucket --fsdp-overlap --fsdp-verify-schedule | FileCheck %s
// RUN: fsdp-opt %s --split-input-file --fsdp-overlap --fsdp-verify-schedule | FileCheck %s --check-prefix=SINGLE
// RUN: sed -e 's/overlap = true/overlap = false/' %s | fsdp-opt --split-input-file --fsdp-overlap | FileCheck %s --check-prefix=OFF
// RUN: sed -e 's/defer = 1/defer = 0/' %s | fsdp-opt --split-input-file --fsdp-bucket --fsdp-overlap --fsdp-verify-schedule | FileCheck %s --check-prefix=ATONCE

// Forward: the gather of block 1 starts before the wait of block 0. Backward:
// the first gather starts right after nn.seed;
// the reduction of block 1 is awaited after the start of that of block 0, and
// the last one before its use.
// CHECK-LABEL: func.func @train
// CHECK: %[[F0:.*]] = fsdp.async
// CHECK-NEXT: fsdp.all_gather {{.*}}serves = #fsdp.origin<all "fwd layers.0">
// CHECK: %[[F1:.*]] = fsdp.async
// CHECK-NEXT: fsdp.all_gather {{.*}}serves = #fsdp.origin<all "fwd layers.1">
// CHECK: fsdp.await %[[F0]]
// CHECK: nn.linear
// CHECK: fsdp.await %[[F1]]
// CHECK: nn.seed
// CHECK-NEXT: %{{.*}} = nn.recompute_from
// CHECK-NEXT: %{{.*}} = nn.recompute_from
// CHECK-NEXT: %[[B1:.*]] = fsdp.async
// CHECK-NEXT: fsdp.all_gather {{.*}}serves = #fsdp.origin<all "again layers.1">
// CHECK: %[[B0:.*]] = fsdp.async
// CHECK-NEXT: fsdp.all_gather {{.*}}serves = #fsdp.origin<all "again layers.0">
// CHECK: fsdp.await %[[B1]]
// CHECK: %[[R1:.*]] = fsdp.async
// CHECK-NEXT: fsdp.reduce_scatter {{.*}}serves = #fsdp.origin<all "bwd layers.1">
// CHECK: fsdp.await %[[B0]]
// CHECK: %[[R0:.*]] = fsdp.async
// CHECK-NEXT: fsdp.reduce_scatter {{.*}}serves = #fsdp.origin<all "bwd layers.0">
// CHECK: fsdp.await %[[R1]]
// CHECK: nn.gradient @layers.1.a.weight
// CHECK: fsdp.await %[[R0]]
// CHECK: nn.gradient @layers.0.a.weight

// Without buckets, the members of a unit start together and are awaited one
// by one, each before its first use.
// SINGLE-LABEL: func.func @train
// SINGLE: %[[B:.*]] = fsdp.async
// SINGLE-NEXT: fsdp.all_gather {{.*}}serves = #fsdp.origin<all "fwd layers.0.b">
// SINGLE: %[[B1:.*]] = fsdp.async
// SINGLE-NEXT: fsdp.all_gather {{.*}}serves = #fsdp.origin<all "fwd layers.1.b">
// SINGLE: %[[A1:.*]] = fsdp.async
// SINGLE-NEXT: fsdp.all_gather {{.*}}serves = #fsdp.origin<all "fwd layers.1.a">
// SINGLE: fsdp.await %[[B]]

// OFF-NOT: fsdp.async
module attributes {fsdp.plan = [
    {match = ["* layers.0.{a,b} {all_gather,reduce_scatter,all_reduce}"], bucket = "layers.0", merge = true, overlap = true, prefetch = 1, defer = 1, recompute = true},
    {match = ["* layers.1.{a,b} {all_gather,reduce_scatter,all_reduce}"], bucket = "layers.1", merge = true, overlap = true, prefetch = 1, defer = 1, recompute = true}]} {
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

// Chained reductions: the all-reduce starts right after the scatter, which it
// awaits itself, so that computation goes on; the unit is awaited after the
// start of the next unit's last link.
// CHECK-LABEL: func.func @hybrid
// CHECK: %[[S1:.*]] = fsdp.async
// CHECK-NEXT: fsdp.reduce_scatter {{.*}}serves = #fsdp.origin<all "bwd layers.1">
// CHECK: %[[R1:.*]] = fsdp.async
// CHECK-NEXT: %[[V1:.*]] = fsdp.await %[[S1]]
// CHECK-NEXT: fsdp.all_reduce sum %[[V1]] on @mesh["dp_replicate"] {{.*}}serves = #fsdp.origin<all "bwd layers.1">
// CHECK-NOT: fsdp.await
// CHECK: nn.matmul
// CHECK-NOT: fsdp.await
// CHECK: %[[S0:.*]] = fsdp.async
// CHECK-NEXT: fsdp.reduce_scatter {{.*}}serves = #fsdp.origin<all "bwd layers.0">
// CHECK-NOT: fsdp.await
// CHECK: %[[R0:.*]] = fsdp.async
// CHECK-NEXT: fsdp.await %[[S0]]
// CHECK-NEXT: fsdp.all_reduce {{.*}}serves = #fsdp.origin<all "bwd layers.0">
// CHECK: %[[G1:.*]] = fsdp.await %[[R1]]
// CHECK-NEXT: nn.gradient @layers.1.a.weight, %[[G1]]
// CHECK-NEXT: %[[G0:.*]] = fsdp.await %[[R0]]
// CHECK-NEXT: nn.gradient @layers.0.a.weight, %[[G0]]
// CHECK-NOT: fsdp.await

// Without deferral the unit is awaited at once; the scatter still by its
// all-reduce alone.
// ATONCE-LABEL: func.func @hybrid
// ATONCE: %[[S1:.*]] = fsdp.async
// ATONCE: %[[R1:.*]] = fsdp.async
// ATONCE-NEXT: fsdp.await %[[S1]]
// ATONCE: fsdp.await %[[R1]]
// ATONCE: nn.matmul
// ATONCE-COUNT-2: fsdp.await
// ATONCE-NOT: fsdp.await
module attributes {fsdp.plan = [
    {match = ["* layers.0.a {all_gather,reduce_scatter,all_reduce}"], bucket = "layers.0", merge = true, overlap = true, prefetch = 1, defer = 1, recompute = true},
    {match = ["* layers.1.a {all_gather,reduce_scatter,all_reduce}"], bucket = "layers.1", merge = true, overlap = true, prefetch = 1, defer = 1, recompute = true}]} {
  fsdp.mesh @mesh ["dp_replicate" = 2, "dp_shard" = 2]
  nn.parameter @layers.0.a.weight : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
  nn.parameter @layers.1.a.weight : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
  func.func @hybrid(%x: tensor<2x8xf32> {nn.name = "x"}, %loss: tensor<f32> {nn.name = "l"}) -> (tensor<f32> {nn.name = "loss"}) {
    %one = nn.seed %loss : tensor<f32>
    %d = nn.broadcast %one [] : tensor<f32> to tensor<2x8xf32>
    %g1 = nn.matmul %d, %x {transpose_lhs} : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<8x8xf32>
    %s1 = fsdp.reduce_scatter sum %g1 on @mesh["dp_shard"] dim 0 {serves = #fsdp.origin<all "bwd layers.1">, fsdp.parameters = [@layers.1.a.weight]} : tensor<8x8xf32> -> tensor<4x8xf32>
    %r1 = fsdp.all_reduce sum %s1 on @mesh["dp_replicate"] {serves = #fsdp.origin<all "bwd layers.1">, fsdp.parameters = [@layers.1.a.weight]} : tensor<4x8xf32> -> tensor<4x8xf32>
    %g0 = nn.matmul %x, %d {transpose_lhs} : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<8x8xf32>
    %s0 = fsdp.reduce_scatter sum %g0 on @mesh["dp_shard"] dim 0 {serves = #fsdp.origin<all "bwd layers.0">, fsdp.parameters = [@layers.0.a.weight]} : tensor<8x8xf32> -> tensor<4x8xf32>
    %r0 = fsdp.all_reduce sum %s0 on @mesh["dp_replicate"] {serves = #fsdp.origin<all "bwd layers.0">, fsdp.parameters = [@layers.0.a.weight]} : tensor<4x8xf32> -> tensor<4x8xf32>
    nn.gradient @layers.1.a.weight, %r1 : tensor<4x8xf32>
    nn.gradient @layers.0.a.weight, %r0 : tensor<4x8xf32>
    return %loss : tensor<f32>
  }
}
