// RUN: fsdp-opt %s --split-input-file --fsdp-localize | FileCheck %s

// The table, row by row.
// CHECK-LABEL: func.func @table
// CHECK-SAME: (%[[X:.*]]: tensor<2x8xf32> {fsdp.placement = #fsdp.placement<[{"a"}, {}]>}
// CHECK-SAME: %[[P:.*]]: tensor<4x8xbf16> {fsdp.placement = #fsdp.placement<[{}, {}], partial = sum {"a"}>}
// CHECK-SAME: attributes {fsdp.local}
// CHECK-NEXT: %[[W:.*]] = fsdp.all_gather %[[X]] on @mesh["a"] dim 0 : tensor<2x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT: fsdp.shard_of %[[W]] on @mesh["a"] dim 1 : tensor<4x8xf32> -> tensor<4x4xf32>
// CHECK-NEXT: fsdp.all_to_all %[[X]] on @mesh["a"] split 1 join 0 : tensor<2x8xf32> -> tensor<4x4xf32>
// A sum of a narrow type is wide until it is complete.
// CHECK-NEXT: %[[R:.*]] = fsdp.all_reduce sum %[[P]] on @mesh["a"] scale 1.000000e+00 : tensor<4x8xbf16> -> tensor<4x8xf32>
// CHECK-NEXT: nn.cast %[[R]] : tensor<4x8xf32> to tensor<4x8xbf16>
// CHECK-NEXT: %[[S:.*]] = fsdp.reduce_scatter sum %[[P]] on @mesh["a"] dim 1 scale 1.000000e+00 : tensor<4x8xbf16> -> tensor<4x4xf32>
// CHECK-NEXT: nn.cast %[[S]] : tensor<4x4xf32> to tensor<4x4xbf16>
fsdp.mesh @mesh ["a" = 2]
func.func @table(%x: tensor<4x8xf32> {fsdp.placement = #fsdp.placement<[{"a"}, {}]>},
                 %p: tensor<4x8xbf16> {fsdp.placement = #fsdp.placement<[{}, {}], partial = sum {"a"}>}) {
  %w = fsdp.place %x on @mesh to <[{}, {}]> : tensor<4x8xf32>
  %s = fsdp.place %w on @mesh to <[{}, {"a"}]> : tensor<4x8xf32>
  %e = fsdp.place %x on @mesh to <[{}, {"a"}]> : tensor<4x8xf32>
  %r = fsdp.place %p on @mesh to <[{}, {}]> : tensor<4x8xbf16>
  %t = fsdp.place %p on @mesh to <[{}, {"a"}]> : tensor<4x8xbf16>
  return
}

// -----

// Sums go from the last axis of the mesh outward, whatever carries them: where
// the outer axis is scattered the inner one is reduced first, where both are
// one collective does it, and the other way round the scatter comes first.
// CHECK-LABEL: func.func @order
// CHECK: %[[I:.*]] = fsdp.all_reduce sum %arg0 on @mesh["b"]
// CHECK-NEXT: fsdp.reduce_scatter sum %[[I]] on @mesh["a"] dim 0
// CHECK-NEXT: fsdp.reduce_scatter sum %arg0 on @mesh["a", "b"] dim 0
// CHECK-NEXT: %[[J:.*]] = fsdp.reduce_scatter sum %arg0 on @mesh["b"] dim 0
// CHECK-NEXT: fsdp.all_reduce sum %[[J]] on @mesh["a"]
// CHECK-NEXT: fsdp.all_reduce sum %arg0 on @mesh["a", "b"]
fsdp.mesh @mesh ["a" = 2, "b" = 3]
func.func @order(%x: tensor<12xf32> {fsdp.placement = #fsdp.placement<[{}], partial = sum {"b", "a"}>}) {
  %0 = fsdp.place %x on @mesh to <[{"a"}]> : tensor<12xf32>
  %1 = fsdp.place %x on @mesh to <[{"a", "b"}]> : tensor<12xf32>
  %2 = fsdp.place %x on @mesh to <[{"b"}]> : tensor<12xf32>
  %3 = fsdp.place %x on @mesh to <[{}]> : tensor<12xf32>
  return
}

// -----

// Storage: 10 rows over tp are 5, and those over dp 3 and 2. Gathering leaves
// what tp computes with; gradients go the other way. Axes of one rank do not
// show.
// CHECK-LABEL: func.func @stored
// CHECK: %[[R:.*]] = nn.read @w : tensor<3x4xf32>
// CHECK-NEXT: %[[W:.*]] = fsdp.all_gather %[[R]] on @mesh["dp"] dim 0 : tensor<3x4xf32> -> tensor<5x4xf32>
// CHECK-NEXT: nn.linear %arg0, %[[W]] : tensor<2x4xf32>, tensor<5x4xf32> -> tensor<2x5xf32>
// CHECK: %[[D:.*]] = nn.linear_weight_grad
// CHECK-SAME: -> tensor<5x4xf32>
// CHECK-NEXT: %[[G:.*]] = fsdp.reduce_scatter sum %[[D]] on @mesh["dp"] dim 0 scale 1.000000e+00 : tensor<5x4xf32> -> tensor<3x4xf32>
// CHECK-NEXT: nn.gradient @w, %[[G]] : tensor<3x4xf32>
fsdp.mesh @mesh ["dp" = 2, "one" = 1, "tp" = 2]
nn.parameter @w : tensor<10x4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{"tp" | "dp", "one"}, {}]>}
func.func @stored(%x: tensor<4x4xf32> {fsdp.placement = #fsdp.placement<[{"dp", "one"}, {}]>})
    -> (tensor<4x10xf32> {fsdp.placement = #fsdp.placement<[{"dp", "one"}, {"tp"}]>}) {
  %r = nn.read @w : tensor<10x4xf32>
  %w = fsdp.place %r on @mesh to <[{"tp"}, {}]> : tensor<10x4xf32>
  %y = nn.linear %x, %w : tensor<4x4xf32>, tensor<10x4xf32> -> tensor<4x10xf32>
  %d = nn.linear_weight_grad %y, %x : tensor<4x10xf32>, tensor<4x4xf32> -> tensor<10x4xf32>
  %g = fsdp.place %d on @mesh to <[{"tp" | "dp", "one"}, {}]> : tensor<10x4xf32>
  nn.gradient @w, %g : tensor<10x4xf32>
  return %y : tensor<4x10xf32>
}
