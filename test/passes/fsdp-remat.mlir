// RUN: fsdp-opt %s --fsdp-remat --cse --canonicalize | FileCheck %s
// RUN: sed -e 's/recompute = true/recompute = false/' %s | fsdp-opt --fsdp-remat | FileCheck %s --check-prefix=NEVER

// Each parameter that the backward pass reads is gathered again from its
// shard, after nn.recompute_from, so that CSE keeps both gathers. The weight
// of the first linear (0.b) is not read in the backward pass: 4 + 3 gathers.
// CHECK-LABEL: func.func @train
// CHECK-COUNT-4: fsdp.all_gather
// CHECK: nn.seed
// CHECK: %[[S:.*]] = nn.recompute_from
// CHECK: %[[W:.*]] = fsdp.all_gather %[[S]] {{.*}}fsdp.parameters = [@layers.1.a.weight], serves = #fsdp.origin<all "again layers.1.a">
// CHECK: nn.matmul %{{.*}}, %[[W]]
// CHECK: fsdp.all_gather {{.*}}serves = #fsdp.origin<all "again layers.1.b">
// CHECK: fsdp.all_gather {{.*}}serves = #fsdp.origin<all "again layers.0.a">
// CHECK-NOT: fsdp.all_gather

// NEVER-LABEL: func.func @train
// NEVER-COUNT-4: fsdp.all_gather
// NEVER-NOT: fsdp.all_gather
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
