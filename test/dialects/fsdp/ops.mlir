// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt %s --mlir-print-op-generic | fsdp-opt | FileCheck %s

// Attributes of the module and of declarations.
// CHECK: fsdp.plan = []
module attributes {fsdp.plan = []} {

// Meshes, with and without the node's size.
// CHECK: fsdp.mesh @mesh ["dp_replicate" = 2, "dp_shard" = 4]{{$}}
// CHECK: fsdp.mesh @nodes ["dp" = 8] {node_size = 4 : i64}
// What an axis is for follows its size, whatever its name.
// CHECK: fsdp.mesh @kinds ["x" = 4 : data, "dp" = 2 : tensor, "y" = 1]{{$}}
// CHECK: func.func private @axis() attributes {a = #fsdp.axis<"x" = 4 : data>, b = #fsdp.axis<"y" = 1>}
fsdp.mesh @mesh ["dp_replicate" = 2, "dp_shard" = 4]
fsdp.mesh @nodes ["dp" = 8] {node_size = 4 : i64}
fsdp.mesh @kinds ["x" = 4 : data, "dp" = 2 : tensor, "y" = 1]
func.func private @axis() attributes {a = #fsdp.axis<"x" = 4 : data>, b = #fsdp.axis<"y" = 1>}

// Stored parameters; a sub-axis is the part of 2 ranks after a prefix of 2.
// CHECK: nn.parameter @a {{.*}} {fsdp.placement = #fsdp.placement<[{| "dp_replicate", "dp_shard":(2)2}]>}
// CHECK: nn.parameter @b {{.*}} {fsdp.placement = #fsdp.placement<[{}]>}
nn.parameter @a : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_replicate", "dp_shard":(2)2}]>}
nn.parameter @b : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{}]>}

// A parameter on its way to computation, and its gradient back.
// CHECK-LABEL: func.func @redistributes
// CHECK: fsdp.redistribute %{{.*}} on @mesh to <[{}, {}]> wire bf16 : tensor<7x8xf32> -> tensor<7x8xbf16>
// CHECK: fsdp.redistribute %{{.*}} on @mesh to <[{| "dp_shard"}, {}]> : tensor<7x8xbf16> -> tensor<7x8xf32>
func.func @redistributes(%s: tensor<7x8xf32>) {
  %w = fsdp.redistribute %s on @mesh to <[{}, {}]> wire bf16 : tensor<7x8xf32> -> tensor<7x8xbf16>
  %g = fsdp.redistribute %w on @mesh to <[{| "dp_shard"}, {}]> : tensor<7x8xbf16> -> tensor<7x8xf32>
  return
}

// Variadic collectives: a bucket. Over 4 ranks 16 rows are shards of 4, and 7
// elements shards of 2.
// CHECK-LABEL: func.func @collectives
// CHECK: %[[G:.*]]:2 = fsdp.all_gather %{{.*}}, %{{.*}} on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@a, @b], serves = #fsdp.origin<all "fwd layers.0">} : tensor<4x8xf32>, tensor<2xf32> -> tensor<16x8xf32>, tensor<7xf32>
// CHECK: fsdp.reduce_scatter sum %[[G]]#0, %[[G]]#1 on @mesh["dp_shard"] dim 0 : tensor<16x8xf32>, tensor<7xf32> -> tensor<4x8xf32>, tensor<2xf32>
// CHECK: fsdp.all_reduce max %{{.*}} on @mesh["dp_shard":(2)2] : tensor<16x8xbf16> -> tensor<16x8xf32>
// CHECK: fsdp.all_reduce sum %{{.*}} on @mesh["dp_replicate", "dp_shard"] : tensor<2xi64> -> tensor<2xi64>
func.func @collectives(%a: tensor<4x8xf32>, %b: tensor<2xf32>, %c: tensor<16x8xbf16>, %d: tensor<2xi64>) {
  %g:2 = fsdp.all_gather %a, %b on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@a, @b], serves = #fsdp.origin<all "fwd layers.0">} : tensor<4x8xf32>, tensor<2xf32> -> tensor<16x8xf32>, tensor<7xf32>
  %s:2 = fsdp.reduce_scatter sum %g#0, %g#1 on @mesh["dp_shard"] dim 0 : tensor<16x8xf32>, tensor<7xf32> -> tensor<4x8xf32>, tensor<2xf32>
  %m = fsdp.all_reduce max %c on @mesh["dp_shard":(2)2] : tensor<16x8xbf16> -> tensor<16x8xf32>
  %i = fsdp.all_reduce sum %d on @mesh["dp_replicate", "dp_shard"] : tensor<2xi64> -> tensor<2xi64>
  return
}

// A collective in flight.
// CHECK-LABEL: func.func @futures
// CHECK: %[[F:.*]] = fsdp.async : <tensor<16x8xf32>> {
// CHECK-NEXT: %[[G:.*]] = fsdp.all_gather
// CHECK-NEXT: fsdp.yield %[[G]] : tensor<16x8xf32>
// CHECK: fsdp.await %[[F]] : <tensor<16x8xf32>> -> tensor<16x8xf32>
func.func @futures(%a: tensor<4x8xf32>) -> tensor<16x8xf32> {
  %f = fsdp.async : !fsdp.future<tensor<16x8xf32>> {
    %g = fsdp.all_gather %a on @mesh["dp_shard"] dim 0 : tensor<4x8xf32> -> tensor<16x8xf32>
    fsdp.yield %g : tensor<16x8xf32>
  }
  %w = fsdp.await %f : !fsdp.future<tensor<16x8xf32>> -> tensor<16x8xf32>
  return %w : tensor<16x8xf32>
}

// A reduction that waits for another one.
// CHECK-LABEL: func.func @chained
// CHECK: %[[S:.*]] = fsdp.async
// CHECK: fsdp.async
// CHECK-NEXT: %[[V:.*]] = fsdp.await %[[S]]
// CHECK-NEXT: fsdp.all_reduce sum %[[V]]
func.func @chained(%g: tensor<16x8xf32>) -> tensor<4x8xf32> {
  %f = fsdp.async : !fsdp.future<tensor<4x8xf32>> {
    %s = fsdp.reduce_scatter sum %g on @mesh["dp_shard"] dim 0 : tensor<16x8xf32> -> tensor<4x8xf32>
    fsdp.yield %s : tensor<4x8xf32>
  }
  %h = fsdp.async : !fsdp.future<tensor<4x8xf32>> {
    %s = fsdp.await %f : !fsdp.future<tensor<4x8xf32>> -> tensor<4x8xf32>
    %r = fsdp.all_reduce sum %s on @mesh["dp_replicate"] : tensor<4x8xf32> -> tensor<4x8xf32>
    fsdp.yield %r : tensor<4x8xf32>
  }
  %r = fsdp.await %h : !fsdp.future<tensor<4x8xf32>> -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// The attribute's own form says of a sub-axis that begins at the first rank
// what it is a part of, too.
// CHECK: func.func private @axes() attributes {x.axes = [#fsdp.axis_ref<"dp_shard">, #fsdp.axis_ref<"dp_shard", 1, 2>, #fsdp.axis_ref<"dp_shard", 2, 2>]}
func.func private @axes() attributes {x.axes = [#fsdp.axis_ref<"dp_shard">, #fsdp.axis_ref<"dp_shard", 1, 2>, #fsdp.axis_ref<"dp_shard", 2, 2>]}

// Placements: compute axes, storage axes after a bar, partial.
// CHECK-LABEL: func.func @placements
// CHECK-SAME: {fsdp.placement = #fsdp.placement<[{"dp_replicate"}, {}]>}
// CHECK-SAME: {fsdp.placement = #fsdp.placement<[{}, {}], partial = sum {"dp_replicate", "dp_shard":(2)2}>}
// CHECK: fsdp.redistribute %{{.*}} on @mesh to <[{"dp_replicate"}, {"dp_shard":(1)2}]> : tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK: fsdp.shard_of %{{.*}} on @mesh["dp_shard"] dim 0 : tensor<7x8xf32> -> tensor<2x8xf32>
// CHECK: fsdp.rows_of_shard %{{.*}} on @mesh["dp_replicate", "dp_shard"] of 7 : tensor<16xi32>
// CHECK: fsdp.rows_of_shard %{{.*}} on @mesh["dp_shard"] of 7 {by_rank} : tensor<16xi32>
// CHECK: fsdp.all_to_all %{{.*}} on @mesh["dp_shard"] split 1 join 0 {serves = #fsdp.origin<all "fwd a b">} : tensor<16x8xf32> -> tensor<64x2xf32>
nn.parameter @stored : tensor<16x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{"dp_replicate" | "dp_shard"}, {}]>}
nn.parameter @bar : tensor<16xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}]>}
func.func @placements(%x: tensor<16x8xf32> {fsdp.placement = #fsdp.placement<[{"dp_replicate"}, {}]>},
                      %y: tensor<7x8xf32> {fsdp.placement = #fsdp.placement<[{}, {}], partial = sum {"dp_replicate", "dp_shard":(2)2}>},
                      %ids: tensor<16xi32>) {
  %0 = fsdp.redistribute %x on @mesh to <[{"dp_replicate"}, {"dp_shard":(1)2}]> : tensor<16x8xf32> -> tensor<16x8xf32>
  %1 = fsdp.shard_of %y on @mesh["dp_shard"] dim 0 : tensor<7x8xf32> -> tensor<2x8xf32>
  %own = fsdp.rows_of_shard %ids on @mesh["dp_replicate", "dp_shard"] of 7 : tensor<16xi32>
  %places = fsdp.rows_of_shard %ids on @mesh["dp_shard"] of 7 {by_rank} : tensor<16xi32>
  %2 = fsdp.all_to_all %x on @mesh["dp_shard"] split 1 join 0 {serves = #fsdp.origin<all "fwd a b">} : tensor<16x8xf32> -> tensor<64x2xf32>
  return
}

// The program of one rank: arguments are parts.
// CHECK: func.func @local(%{{.*}}: tensor<4x8xf32> {fsdp.placement = #fsdp.placement<[{"dp_shard"}, {}]>}) attributes {fsdp.local}
func.func @local(%x: tensor<4x8xf32> {fsdp.placement = #fsdp.placement<[{"dp_shard"}, {}]>}) attributes {fsdp.local} {
  return
}

}
