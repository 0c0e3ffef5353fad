// RUN: fsdp-opt %s --split-input-file --fsdp-shard="mesh=dp_shard=3" | FileCheck %s
// RUN: fsdp-opt %s --split-input-file --fsdp-shard="mesh=dp_replicate=2,dp_shard=4 mode=hybrid_shard reduce_dtype=bf16 node_size=4" | FileCheck %s --check-prefix=HYBRID
// RUN: fsdp-opt %s --split-input-file --fsdp-shard="mesh=dp_replicate=2,dp_shard=4 mode=fully_shard" | FileCheck %s --check-prefix=BOTH
// RUN: fsdp-opt %s --split-input-file --fsdp-shard="mesh=dp_shard=3 mode=replicate" | FileCheck %s --check-prefix=REPL

// Two layers in bf16: both casts fold into redistributes that stand before the
// first use, shards are ceil(8 / 3) = 3 rows; the buffer stays whole. The
// second weight is gathered in f32 because its uses are mixed.
// CHECK: fsdp.mesh @mesh ["dp_shard" = 3]
// CHECK: nn.parameter @w0 {{.*}} {fsdp.placement = #fsdp.shard<0, ["dp_shard"]>}
// CHECK: nn.parameter @w1 {{.*}} {fsdp.placement = #fsdp.shard<0, ["dp_shard"]>}
// CHECK: nn.buffer @table : tensor<4x2x2xf32> init #nn.zeros{{$}}
// CHECK-LABEL: func.func @two_layers
// CHECK: %[[S0:.*]] = nn.read @w0 : tensor<3x8xf32>
// CHECK-NEXT: %[[W0:.*]] = fsdp.redistribute %[[S0]] on @mesh["dp_shard"] from #fsdp.shard<0, ["dp_shard"]> to #fsdp.replicated grad average f32 : tensor<3x8xf32> -> tensor<8x8xbf16>
// CHECK-NEXT: %[[H:.*]] = nn.linear %{{.*}}, %[[W0]]
// CHECK-NEXT: nn.read @table : tensor<4x2x2xf32>
// CHECK: %[[S1:.*]] = nn.read @w1 : tensor<3x8xf32>
// CHECK-NEXT: %[[W1:.*]] = fsdp.redistribute %[[S1]]{{.*}} tensor<3x8xf32> -> tensor<8x8xf32>
// CHECK-NEXT: nn.neg %[[W1]]
// CHECK-NEXT: %[[C1:.*]] = nn.cast %[[W1]] : tensor<8x8xf32> to tensor<8x8xbf16>
// CHECK-NEXT: nn.linear %[[H]], %[[C1]]

// Hybrid: split over the last axis, gradients reduced over both, bf16 at most.
// HYBRID: fsdp.mesh @mesh ["dp_replicate" = 2, "dp_shard" = 4] {node_size = 4 : i64}
// HYBRID-LABEL: func.func @two_layers
// HYBRID: nn.read @w0 : tensor<2x8xf32>
// HYBRID: fsdp.redistribute {{.*}} on @mesh["dp_replicate", "dp_shard"] from #fsdp.shard<0, ["dp_shard"]> to #fsdp.replicated grad average bf16

// Fully sharded on the same mesh: 8 rows over 8 ranks.
// BOTH-LABEL: func.func @two_layers
// BOTH: nn.read @w0 : tensor<1x8xf32>
// BOTH: fsdp.redistribute {{.*}} on @mesh["dp_replicate", "dp_shard"] from #fsdp.shard<0, ["dp_replicate", "dp_shard"]> to #fsdp.replicated

// Replicated: the redistribute is a cast forward, but not an identity: its
// reverse rule is the all-reduce.
// REPL: nn.parameter @w0 {{.*}} {fsdp.placement = #fsdp.replicated}
// REPL-LABEL: func.func @two_layers
// REPL: fsdp.redistribute {{.*}} on @mesh["dp_shard"] from #fsdp.replicated to #fsdp.replicated grad average f32 : tensor<8x8xf32> -> tensor<8x8xbf16>
nn.parameter @w0 : tensor<8x8xf32> init #nn.zeros
nn.parameter @w1 : tensor<8x8xf32> init #nn.zeros
nn.buffer @table : tensor<4x2x2xf32> init #nn.zeros
func.func @two_layers(%x: tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<8x8xf32>, tensor<4x2x2xf32>) {
  %r0 = nn.read @w0 : tensor<8x8xf32>
  %c0 = nn.cast %r0 : tensor<8x8xf32> to tensor<8x8xbf16>
  %r1 = nn.read @w1 : tensor<8x8xf32>
  %h = nn.linear %x, %c0 : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %t = nn.read @table : tensor<4x2x2xf32>
  %n = nn.neg %r1 : tensor<8x8xf32>
  %c1 = nn.cast %r1 : tensor<8x8xf32> to tensor<8x8xbf16>
  %y = nn.linear %h, %c1 : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  return %y, %n, %t : tensor<4x8xbf16>, tensor<8x8xf32>, tensor<4x2x2xf32>
}

// -----

// A tied weight is read twice but redistributed once, before its first use, so
// that its gradient is reduced once.
// CHECK-LABEL: func.func @tied_weight
// CHECK: %[[S:.*]] = nn.read @tied : tensor<3x8xf32>
// CHECK-NEXT: %[[W:.*]] = fsdp.redistribute %[[S]]
// CHECK-NEXT: nn.embedding %{{.*}}, %[[W]]
// CHECK-NOT: nn.read
// CHECK-NOT: fsdp.redistribute
// CHECK: nn.linear %{{.*}}, %[[W]]
nn.parameter @tied : tensor<8x8xf32> init #nn.zeros
func.func @tied_weight(%tokens: tensor<4xi32>) -> tensor<4x8xbf16> {
  %r0 = nn.read @tied : tensor<8x8xf32>
  %c0 = nn.cast %r0 : tensor<8x8xf32> to tensor<8x8xbf16>
  %e = nn.embedding %tokens, %c0 : tensor<4xi32>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %r1 = nn.read @tied : tensor<8x8xf32>
  %c1 = nn.cast %r1 : tensor<8x8xf32> to tensor<8x8xbf16>
  %y = nn.linear %e, %c1 : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  return %y : tensor<4x8xbf16>
}

// -----

// A frozen parameter is sharded all the same. Two elements over three ranks
// are shards of one; a scalar is replicated; a read without use disappears.
// CHECK: nn.parameter @frozen {{.*}}fsdp.placement = #fsdp.shard<0, ["dp_shard"]>, nn.frozen
// CHECK: nn.parameter @scalar {{.*}} {fsdp.placement = #fsdp.replicated}
// CHECK: nn.parameter @unused {{.*}} {fsdp.placement = #fsdp.shard<0, ["dp_shard"]>}
// CHECK-LABEL: func.func @odd_parameters
// CHECK: nn.read @frozen : tensor<1xf32>
// CHECK: fsdp.redistribute {{.*}} : tensor<1xf32> -> tensor<2xf32>
// CHECK: nn.read @scalar : tensor<f32>
// CHECK: fsdp.redistribute {{.*}} from #fsdp.replicated to #fsdp.replicated {{.*}} : tensor<f32> -> tensor<f32>
// CHECK-NOT: nn.read
// CHECK: return
nn.parameter @frozen : tensor<2xf32> init #nn.zeros {nn.frozen}
nn.parameter @scalar : tensor<f32> init #nn.zeros
nn.parameter @unused : tensor<2xf32> init #nn.zeros
func.func @odd_parameters() -> (tensor<2xf32>, tensor<f32>) {
  %f = nn.read @frozen : tensor<2xf32>
  %s = nn.read @scalar : tensor<f32>
  %u = nn.read @unused : tensor<2xf32>
  %a = nn.neg %f : tensor<2xf32>
  %b = nn.neg %s : tensor<f32>
  return %a, %b : tensor<2xf32>, tensor<f32>
}
