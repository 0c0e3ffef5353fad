// RUN: fsdp-opt %s --split-input-file --fsdp-expand | FileCheck %s

// The table, row by row. A sum of a narrow type is wide until it is complete.
// CHECK-LABEL: func.func @table
// CHECK-SAME: (%[[X:.*]]: tensor<2x8xf32> {fsdp.placement = #fsdp.placement<[{"a"}, {}]>}
// CHECK-SAME: %[[P:.*]]: tensor<8x4xbf16> {fsdp.placement = #fsdp.placement<[{}, {}], partial = sum {"a"}>}
// CHECK-SAME: attributes {fsdp.local}
// CHECK-NEXT: %[[W:.*]] = fsdp.all_gather %[[X]] on @mesh["a"] dim 0 : tensor<2x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT: fsdp.shard_of %[[W]] on @mesh["a"] dim 0 : tensor<4x8xf32> -> tensor<2x8xf32>
// CHECK-NEXT: %[[E:.*]] = fsdp.all_gather %[[X]] on @mesh["a"] dim 0 : tensor<2x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT: %[[F:.*]] = nn.reshape %[[E]] : tensor<4x8xf32> to tensor<4x2x4xf32>
// CHECK-NEXT: %[[T:.*]] = nn.transpose %[[F]] [1, 0, 2] : tensor<4x2x4xf32> to tensor<2x4x4xf32>
// CHECK-NEXT: %[[Q:.*]] = nn.reshape %[[T]] : tensor<2x4x4xf32> to tensor<32x1xf32>
// CHECK-NEXT: %[[U:.*]] = fsdp.shard_of %[[Q]] on @mesh["a"] dim 0 : tensor<32x1xf32> -> tensor<16x1xf32>
// CHECK-NEXT: nn.reshape %[[U]] : tensor<16x1xf32> to tensor<4x4xf32>
// CHECK-NEXT: %[[R:.*]] = fsdp.all_reduce sum %[[P]] on @mesh["a"] : tensor<8x4xbf16> -> tensor<8x4xf32>
// CHECK-NEXT: nn.cast %[[R]] : tensor<8x4xf32> to tensor<8x4xbf16>
// CHECK-NEXT: %[[S:.*]] = fsdp.reduce_scatter sum %[[P]] on @mesh["a"] dim 0 : tensor<8x4xbf16> -> tensor<4x4xf32>
// CHECK-NEXT: nn.cast %[[S]] : tensor<4x4xf32> to tensor<4x4xbf16>
fsdp.mesh @mesh ["a" = 2]
func.func @table(%x: tensor<4x8xf32> {fsdp.placement = #fsdp.placement<[{"a"}, {}]>},
                 %p: tensor<8x4xbf16> {fsdp.placement = #fsdp.placement<[{}, {}], partial = sum {"a"}>}) {
  %w = fsdp.redistribute %x on @mesh to <[{}, {}]> : tensor<4x8xf32> -> tensor<4x8xf32>
  %s = fsdp.redistribute %w on @mesh to <[{"a"}, {}]> : tensor<4x8xf32> -> tensor<4x8xf32>
  %e = fsdp.redistribute %x on @mesh to <[{}, {"a"}]> : tensor<4x8xf32> -> tensor<4x8xf32>
  %r = fsdp.redistribute %p on @mesh to <[{}, {}]> : tensor<8x4xbf16> -> tensor<8x4xbf16>
  %t = fsdp.redistribute %p on @mesh to <[{"a"}, {}]> : tensor<8x4xbf16> -> tensor<8x4xbf16>
  return
}

// -----

// Pieces of another dimension are brought to the front. After a batch of one
// that costs nothing.
// CHECK-LABEL: func.func @packs
// CHECK: %[[X:.*]] = nn.reshape %arg0 : tensor<3x4x5xf32> to tensor<12x5xf32>
// CHECK-NEXT: %[[G:.*]] = fsdp.all_gather %[[X]] on @mesh["a"] dim 0 : tensor<12x5xf32> -> tensor<24x5xf32>
// CHECK-NEXT: %[[P:.*]] = nn.reshape %[[G]] : tensor<24x5xf32> to tensor<2x3x20xf32>
// CHECK-NEXT: %[[T:.*]] = nn.transpose %[[P]] [1, 0, 2] : tensor<2x3x20xf32> to tensor<3x2x20xf32>
// CHECK-NEXT: %[[W:.*]] = nn.reshape %[[T]] : tensor<3x2x20xf32> to tensor<3x8x5xf32>
// CHECK-NEXT: %[[Q:.*]] = nn.reshape %[[W]] : tensor<3x8x5xf32> to tensor<3x2x20xf32>
// CHECK-NEXT: %[[U:.*]] = nn.transpose %[[Q]] [1, 0, 2] : tensor<3x2x20xf32> to tensor<2x3x20xf32>
// CHECK-NEXT: %[[V:.*]] = nn.reshape %[[U]] : tensor<2x3x20xf32> to tensor<24x5xf32>
// CHECK-NEXT: %[[S:.*]] = fsdp.shard_of %[[V]] on @mesh["a"] dim 0 : tensor<24x5xf32> -> tensor<12x5xf32>
// CHECK-NEXT: nn.reshape %[[S]] : tensor<12x5xf32> to tensor<3x4x5xf32>
// CHECK-NOT: nn.transpose
// CHECK: fsdp.reduce_scatter sum %{{.*}} on @mesh["a"] dim 0 : tensor<8x5xf32> -> tensor<4x5xf32>
// CHECK-NOT: nn.transpose
// CHECK: return
fsdp.mesh @mesh ["a" = 2]
func.func @packs(%x: tensor<3x8x5xf32> {fsdp.placement = #fsdp.placement<[{}, {"a"}, {}]>},
                 %y: tensor<1x8x5xf32> {fsdp.placement = #fsdp.placement<[{}, {}, {}], partial = sum {"a"}>}) {
  %w = fsdp.redistribute %x on @mesh to <[{}, {}, {}]> : tensor<3x8x5xf32> -> tensor<3x8x5xf32>
  %s = fsdp.redistribute %w on @mesh to <[{}, {"a"}, {}]> : tensor<3x8x5xf32> -> tensor<3x8x5xf32>
  %r = fsdp.redistribute %y on @mesh to <[{}, {"a"}, {}]> : tensor<1x8x5xf32> -> tensor<1x8x5xf32>
  return
}

// -----

// A parameter stored along another dimension, in unequal parts: they are padded
// before they are sent and cut off when they have come.
// CHECK-LABEL: func.func @uneven_columns
// CHECK: %[[R:.*]] = nn.read @w : tensor<3x2xf32>
// CHECK-NEXT: %[[A:.*]] = nn.reshape %[[R]] : tensor<3x2xf32> to tensor<6x1xf32>
// CHECK-NEXT: fsdp.all_gather %[[A]] {{.*}} : tensor<6x1xf32> -> tensor<18x1xf32>
// CHECK: %[[F:.*]] = nn.reshape %{{.*}} : tensor<3x3x2xf32> to tensor<3x6xf32>
// CHECK-NEXT: %[[W:.*]] = nn.slice %[[F]] [0, 0] : tensor<3x6xf32> to tensor<3x5xf32>
// CHECK-NEXT: %[[D:.*]] = nn.neg %[[W]]
// CHECK-NEXT: nn.pad %[[D]] [0, 0] : tensor<3x5xf32> to tensor<3x6xf32>
// CHECK: nn.gradient @w, %{{.*}} : tensor<3x2xf32>
fsdp.mesh @mesh ["dp" = 3]
nn.parameter @w : tensor<3x5xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{}, {| "dp"}]>}
func.func @uneven_columns() {
  %r = nn.read @w : tensor<3x5xf32>
  %w = fsdp.redistribute %r on @mesh to <[{}, {}]> : tensor<3x5xf32> -> tensor<3x5xf32>
  %d = nn.neg %w : tensor<3x5xf32>
  %g = fsdp.redistribute %d on @mesh to <[{}, {| "dp"}]> : tensor<3x5xf32> -> tensor<3x5xf32>
  nn.gradient @w, %g : tensor<3x5xf32>
  return
}

// -----

// Three ranks, bf16: the shard of ceil(8 / 3) = 3 rows is cast, then gathered;
// the bf16 gradient travels as it is. Both say which parameter they move.
// CHECK-LABEL: func.func @uneven_shards
// CHECK: %[[S:.*]] = nn.read @layers.0.wq.weight : tensor<3x8xf32>
// CHECK-NEXT: %[[C:.*]] = nn.cast %[[S]] : tensor<3x8xf32> to tensor<3x8xbf16>
// CHECK-NEXT: %[[W:.*]] = fsdp.all_gather %[[C]] on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@layers.0.wq.weight], serves = #fsdp.origin<all "fwd layers.0.wq">} : tensor<3x8xbf16> -> tensor<8x8xbf16>
// CHECK: nn.seed
// CHECK: %[[D:.*]] = nn.linear_weight_grad
// CHECK-NEXT: %[[G:.*]] = fsdp.reduce_scatter sum %[[D]] on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@layers.0.wq.weight], serves = #fsdp.origin<all "bwd layers.0.wq">} : tensor<8x8xbf16> -> tensor<3x8xf32>
// CHECK-NEXT: nn.gradient @layers.0.wq.weight, %[[G]]
fsdp.mesh @mesh ["dp_shard" = 3]
nn.parameter @layers.0.wq.weight : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
func.func @uneven_shards(%loss: tensor<f32>, %x: tensor<6x8xbf16> {fsdp.placement = #fsdp.placement<[{"dp_shard"}, {}]>}) -> (tensor<f32> {fsdp.placement = #fsdp.placement<[]>}) {
  %s = nn.read @layers.0.wq.weight : tensor<8x8xf32>
  %w = fsdp.redistribute %s on @mesh to <[{}, {}]> wire f32 : tensor<8x8xf32> -> tensor<8x8xbf16>
  %y = nn.linear %x, %w : tensor<6x8xbf16>, tensor<8x8xbf16> -> tensor<6x8xbf16>
  %one = nn.seed %loss : tensor<f32>
  %d = nn.linear_weight_grad %y, %x : tensor<6x8xbf16>, tensor<6x8xbf16> -> tensor<8x8xbf16>
  %g = fsdp.redistribute %d on @mesh to <[{| "dp_shard"}, {}]> wire f32 : tensor<8x8xbf16> -> tensor<8x8xf32>
  nn.gradient @layers.0.wq.weight, %g : tensor<8x8xf32>
  return %one : tensor<f32>
}

// -----

// One rank: casts remain, collectives do not; in f32 nothing remains.
// CHECK-LABEL: func.func @one_rank
// CHECK: %[[S:.*]] = nn.read @w
// CHECK-NEXT: %[[W:.*]] = nn.cast %[[S]] : tensor<8xf32> to tensor<8xbf16>
// CHECK-NEXT: %[[D:.*]] = nn.neg %[[W]]
// CHECK-NEXT: %[[G:.*]] = nn.cast %[[D]] : tensor<8xbf16> to tensor<8xf32>
// CHECK-NEXT: nn.gradient @w, %[[G]]
// CHECK-NEXT: %[[T:.*]] = nn.read @w
// CHECK-NEXT: nn.gradient @w, %[[T]]
// CHECK-NEXT: return
fsdp.mesh @mesh ["dp_replicate" = 1, "dp_shard" = 1]
nn.parameter @w : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}]>}
func.func @one_rank() {
  %s = nn.read @w : tensor<8xf32>
  %w = fsdp.redistribute %s on @mesh to <[{}]> : tensor<8xf32> -> tensor<8xbf16>
  %d = nn.neg %w : tensor<8xbf16>
  %g = fsdp.redistribute %d on @mesh to <[{| "dp_shard"}]> : tensor<8xbf16> -> tensor<8xf32>
  nn.gradient @w, %g : tensor<8xf32>
  %t = nn.read @w : tensor<8xf32>
  %v = fsdp.redistribute %t on @mesh to <[{}]> : tensor<8xf32> -> tensor<8xf32>
  %h = fsdp.redistribute %v on @mesh to <[{| "dp_shard"}]> : tensor<8xf32> -> tensor<8xf32>
  nn.gradient @w, %h : tensor<8xf32>
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
  %0 = fsdp.redistribute %x on @mesh to <[{"a"}]> : tensor<12xf32> -> tensor<12xf32>
  %1 = fsdp.redistribute %x on @mesh to <[{"a", "b"}]> : tensor<12xf32> -> tensor<12xf32>
  %2 = fsdp.redistribute %x on @mesh to <[{"b"}]> : tensor<12xf32> -> tensor<12xf32>
  %3 = fsdp.redistribute %x on @mesh to <[{}]> : tensor<12xf32> -> tensor<12xf32>
  return
}

// -----

// Only what is wider than `wire` is rounded before it travels, and only if it
// travels as a sum.
// CHECK-LABEL: func.func @wire
// CHECK: %[[N:.*]] = nn.cast %arg0 : tensor<8xf32> to tensor<8xbf16>
// CHECK-NEXT: fsdp.all_reduce sum %[[N]] {{.*}} : tensor<8xbf16> -> tensor<8xf32>
// CHECK-NEXT: fsdp.all_reduce sum %arg1 {{.*}} : tensor<8xbf16> -> tensor<8xf32>
// CHECK-NEXT: fsdp.shard_of %arg2 {{.*}} : tensor<8xf32> -> tensor<4xf32>
fsdp.mesh @mesh ["a" = 2]
func.func @wire(%x: tensor<8xf32> {fsdp.placement = #fsdp.placement<[{}], partial = sum {"a"}>},
                %y: tensor<8xbf16> {fsdp.placement = #fsdp.placement<[{}], partial = sum {"a"}>},
                %z: tensor<8xf32>) {
  %0 = fsdp.redistribute %x on @mesh to <[{}]> wire bf16 : tensor<8xf32> -> tensor<8xf32>
  %1 = fsdp.redistribute %y on @mesh to <[{}]> wire f32 : tensor<8xbf16> -> tensor<8xf32>
  %2 = fsdp.redistribute %z on @mesh to <[{"a"}]> wire bf16 : tensor<8xf32> -> tensor<8xf32>
  return
}

// -----

// The part of a broadcast is a smaller broadcast, but not where the last part is
// padded.
// CHECK-LABEL: func.func @broadcast
// CHECK-NEXT: nn.broadcast %arg0 [1] : tensor<4xf32> to tensor<3x4xf32>
// CHECK-NEXT: return
// CHECK-LABEL: func.func @uneven_broadcast
// CHECK: %[[B:.*]] = nn.broadcast {{.*}} to tensor<5x4xf32>
// CHECK-NEXT: %[[S:.*]] = fsdp.shard_of %[[B]] {{.*}} : tensor<5x4xf32> -> tensor<3x4xf32>
// CHECK-NEXT: nn.gradient @p, %[[S]]
fsdp.mesh @mesh ["a" = 2]
func.func @broadcast(%x: tensor<4xf32>) -> (tensor<6x4xf32> {fsdp.placement = #fsdp.placement<[{"a"}, {}]>}) {
  %b = nn.broadcast %x [1] : tensor<4xf32> to tensor<6x4xf32>
  %s = fsdp.redistribute %b on @mesh to <[{"a"}, {}]> : tensor<6x4xf32> -> tensor<6x4xf32>
  return %s : tensor<6x4xf32>
}
nn.parameter @p : tensor<5x4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "a"}, {}]>}
func.func @uneven_broadcast(%x: tensor<4xf32>) {
  %b = nn.broadcast %x [1] : tensor<4xf32> to tensor<5x4xf32>
  %s = fsdp.redistribute %b on @mesh to <[{| "a"}, {}]> : tensor<5x4xf32> -> tensor<5x4xf32>
  nn.gradient @p, %s : tensor<5x4xf32>
  return
}

// -----

// Storage: 10 rows over tp are 5, and those over dp 3 and 2. Gathering leaves
// what tp computes with; gradients go the other way. Axes of one rank do not
// show.
// CHECK-LABEL: func.func @stored
// CHECK: %[[R:.*]] = nn.read @w : tensor<3x4xf32>
// CHECK-NEXT: %[[W:.*]] = fsdp.all_gather %[[R]] on @mesh["dp"] dim 0 {{.*}} : tensor<3x4xf32> -> tensor<5x4xf32>
// CHECK-NEXT: nn.linear %arg0, %[[W]] : tensor<2x4xf32>, tensor<5x4xf32> -> tensor<2x5xf32>
// CHECK: %[[D:.*]] = nn.linear_weight_grad
// CHECK-SAME: -> tensor<5x4xf32>
// CHECK-NEXT: %[[G:.*]] = fsdp.reduce_scatter sum %[[D]] on @mesh["dp"] dim 0 {{.*}} : tensor<5x4xf32> -> tensor<3x4xf32>
// CHECK-NEXT: nn.gradient @w, %[[G]] : tensor<3x4xf32>
fsdp.mesh @mesh ["dp" = 2, "one" = 1, "tp" = 2]
nn.parameter @w : tensor<10x4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{"tp" | "dp", "one"}, {}]>}
func.func @stored(%x: tensor<4x4xf32> {fsdp.placement = #fsdp.placement<[{"dp", "one"}, {}]>})
    -> (tensor<4x10xf32> {fsdp.placement = #fsdp.placement<[{"dp", "one"}, {"tp"}]>}) {
  %r = nn.read @w : tensor<10x4xf32>
  %w = fsdp.redistribute %r on @mesh to <[{"tp"}, {}]> : tensor<10x4xf32> -> tensor<10x4xf32>
  %y = nn.linear %x, %w : tensor<4x4xf32>, tensor<10x4xf32> -> tensor<4x10xf32>
  %d = nn.linear_weight_grad %y, %x : tensor<4x10xf32>, tensor<4x4xf32> -> tensor<10x4xf32>
  %g = fsdp.redistribute %d on @mesh to <[{"tp" | "dp", "one"}, {}]> : tensor<10x4xf32> -> tensor<10x4xf32>
  nn.gradient @w, %g : tensor<10x4xf32>
  return %y : tensor<4x10xf32>
}

// -----

// Programs of one rank stay, and so does a module without a mesh.
// CHECK-LABEL: func.func @local
// CHECK: nn.neg %arg0 : tensor<4xf32>
func.func @local(%x: tensor<4xf32>) -> tensor<4xf32> attributes {fsdp.local} {
  %y = nn.neg %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
