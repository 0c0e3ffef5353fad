// RUN: fsdp-opt %s --split-input-file --fsdp-shard="mesh=dp_shard=3" | FileCheck %s
// RUN: fsdp-opt %s --split-input-file --fsdp-shard="mesh=dp_shard=3 mode=auto" | FileCheck %s
// RUN: fsdp-opt %s --split-input-file --fsdp-shard="mesh=dp_replicate=2,dp_shard=4 mode=hybrid_shard reduce_dtype=bf16 node_size=4" | FileCheck %s --check-prefix=HYBRID
// RUN: fsdp-opt %s --split-input-file --fsdp-shard="mesh=dp_replicate=2,dp_shard=4 mode=auto reduce_dtype=bf16 node_size=4" | FileCheck %s --check-prefix=HYBRID
// RUN: fsdp-opt %s --split-input-file --fsdp-shard="mesh=dp_replicate=2,dp_shard=4 mode=fully_shard" | FileCheck %s --check-prefix=BOTH
// RUN: fsdp-opt %s --split-input-file --fsdp-shard="mesh=dp_shard=3,ep=2 mode=replicate" | FileCheck %s --check-prefix=REPL
// RUN: printf "# no rules\n" > %t.toml
// RUN: fsdp-opt %s --split-input-file --fsdp-shard="mesh=x=3:data,dpx=2:tensor,dp_shard=2:tensor policy=%t.toml" | FileCheck %s --check-prefix=KIND

// Two layers in bf16: both casts fold into redistributes that stand before the
// first use; types stay logical, the batch is sharded and the buffer is not. The
// second weight is gathered in f32 because its uses are mixed.
// CHECK: fsdp.mesh @mesh ["dp_shard" = 3 : data]
// CHECK: nn.parameter @w0 {{.*}} {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
// CHECK: nn.parameter @w1 {{.*}} {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
// CHECK: nn.buffer @table : tensor<4x2x2xf32> init #nn.zeros{{$}}
// CHECK-LABEL: func.func @two_layers
// CHECK-SAME: (%{{.*}}: tensor<24x8xbf16> {fsdp.placement = #fsdp.placement<[{"dp_shard"}, {}]>}) -> (tensor<24x8xbf16>,
// CHECK: %[[S0:.*]] = nn.read @w0 : tensor<8x8xf32>
// CHECK-NEXT: %[[W0:.*]] = fsdp.redistribute %[[S0]] on @mesh to <[{}, {}]> wire f32 : tensor<8x8xf32> -> tensor<8x8xbf16>
// CHECK-NEXT: %[[H:.*]] = nn.linear %{{.*}}, %[[W0]]
// CHECK-NEXT: nn.read @table : tensor<4x2x2xf32>
// CHECK: %[[S1:.*]] = nn.read @w1 : tensor<8x8xf32>
// CHECK-NEXT: %[[W1:.*]] = fsdp.redistribute %[[S1]]{{.*}} tensor<8x8xf32> -> tensor<8x8xf32>
// CHECK-NEXT: nn.neg %[[W1]]
// CHECK-NEXT: %[[C1:.*]] = nn.cast %[[W1]] : tensor<8x8xf32> to tensor<8x8xbf16>
// CHECK-NEXT: nn.linear %[[H]], %[[C1]]

// Hybrid: parameters are stored sharded over the last data axis, batches are sharded over
// both; gradients travel as bf16 at most.
// HYBRID: fsdp.mesh @mesh ["dp_replicate" = 2 : data, "dp_shard" = 4 : data] {node_size = 4 : i64}
// HYBRID: nn.parameter @w0 {{.*}} {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
// HYBRID-LABEL: func.func @two_layers
// HYBRID-SAME: {fsdp.placement = #fsdp.placement<[{"dp_replicate", "dp_shard"}, {}]>}
// HYBRID: fsdp.redistribute {{.*}} to <[{}, {}]> wire bf16

// Fully sharded on the same mesh: 8 rows over 8 ranks.
// BOTH: nn.parameter @w0 {{.*}} {fsdp.placement = #fsdp.placement<[{| "dp_replicate", "dp_shard"}, {}]>}

// What an axis is for is its kind: over x, a data axis, batches and parameters
// are cut; over dpx and dp_shard, which are tensor axes here, nothing is.
// KIND: fsdp.mesh @mesh ["x" = 3 : data, "dpx" = 2 : tensor, "dp_shard" = 2 : tensor]
// KIND: nn.parameter @w0 {{.*}} {fsdp.placement = #fsdp.placement<[{| "x"}, {}]>}
// KIND-LABEL: func.func @two_layers
// KIND-SAME: {fsdp.placement = #fsdp.placement<[{"x"}, {}]>}

// Replicated, on a mesh with an axis that is no data axis: the redistribute is a
// cast forward, but not an identity: its reverse rule sums over the ranks.
// REPL: nn.parameter @w0 {{.*}} {fsdp.placement = #fsdp.placement<[{}, {}]>}
// REPL-LABEL: func.func @two_layers
// REPL-SAME: {fsdp.placement = #fsdp.placement<[{"dp_shard"}, {}]>}
// REPL: fsdp.redistribute {{.*}} on @mesh to <[{}, {}]> wire f32 : tensor<8x8xf32> -> tensor<8x8xbf16>
nn.parameter @w0 : tensor<8x8xf32> init #nn.zeros
nn.parameter @w1 : tensor<8x8xf32> init #nn.zeros
nn.buffer @table : tensor<4x2x2xf32> init #nn.zeros
func.func @two_layers(%x: tensor<24x8xbf16>) -> (tensor<24x8xbf16>, tensor<8x8xf32>, tensor<4x2x2xf32>) {
  %r0 = nn.read @w0 : tensor<8x8xf32>
  %c0 = nn.cast %r0 : tensor<8x8xf32> to tensor<8x8xbf16>
  %r1 = nn.read @w1 : tensor<8x8xf32>
  %h = nn.linear %x, %c0 : tensor<24x8xbf16>, tensor<8x8xbf16> -> tensor<24x8xbf16>
  %t = nn.read @table : tensor<4x2x2xf32>
  %n = nn.neg %r1 : tensor<8x8xf32>
  %c1 = nn.cast %r1 : tensor<8x8xf32> to tensor<8x8xbf16>
  %y = nn.linear %h, %c1 : tensor<24x8xbf16>, tensor<8x8xbf16> -> tensor<24x8xbf16>
  return %y, %n, %t : tensor<24x8xbf16>, tensor<8x8xf32>, tensor<4x2x2xf32>
}

// -----

// A tied weight is read twice but redistributed once, before its first use, so
// that its gradient is reduced once.
// CHECK-LABEL: func.func @tied_weight
// CHECK: %[[S:.*]] = nn.read @tied : tensor<8x8xf32>
// CHECK-NEXT: %[[W:.*]] = fsdp.redistribute %[[S]]
// CHECK-NEXT: nn.embedding %{{.*}}, %[[W]]
// CHECK-NOT: nn.read
// CHECK-NOT: fsdp.redistribute
// CHECK: nn.linear %{{.*}}, %[[W]]
nn.parameter @tied : tensor<8x8xf32> init #nn.zeros
func.func @tied_weight(%tokens: tensor<24xi32>) -> tensor<24x8xbf16> {
  %r0 = nn.read @tied : tensor<8x8xf32>
  %c0 = nn.cast %r0 : tensor<8x8xf32> to tensor<8x8xbf16>
  %e = nn.embedding %tokens, %c0 : tensor<24xi32>, tensor<8x8xbf16> -> tensor<24x8xbf16>
  %r1 = nn.read @tied : tensor<8x8xf32>
  %c1 = nn.cast %r1 : tensor<8x8xf32> to tensor<8x8xbf16>
  %y = nn.linear %e, %c1 : tensor<24x8xbf16>, tensor<8x8xbf16> -> tensor<24x8xbf16>
  return %y : tensor<24x8xbf16>
}

// -----

// A frozen parameter is sharded all the same, though three ranks do not divide
// it; a scalar is replicated; a read without use disappears.
// CHECK: nn.parameter @frozen {{.*}}fsdp.placement = #fsdp.placement<[{| "dp_shard"}]>, nn.frozen
// CHECK: nn.parameter @scalar {{.*}} {fsdp.placement = #fsdp.placement<[]>}
// CHECK: nn.parameter @unused {{.*}} {fsdp.placement = #fsdp.placement<[{| "dp_shard"}]>}
// CHECK-LABEL: func.func @odd_parameters
// CHECK: nn.read @frozen : tensor<2xf32>
// CHECK: fsdp.redistribute {{.*}} to <[{}]> {{.*}} : tensor<2xf32> -> tensor<2xf32>
// CHECK: nn.read @scalar : tensor<f32>
// CHECK: fsdp.redistribute {{.*}} to <[]> {{.*}} : tensor<f32> -> tensor<f32>
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
