// RUN: fsdp-opt %s --split-input-file --fsdp-propagate --fsdp-verify-placements | FileCheck %s

// Two layers of Megatron's kind: the first is sharded along its outputs, the second
// along its inputs, and one sum remains. The gradients need no more than the
// sum of the input's cotangent.
// CHECK-LABEL: func.func @feed_forward
// CHECK: %[[U:.*]] = nn.read @up
// CHECK-NEXT: %[[H:.*]] = nn.linear %arg0, %[[U]]
// CHECK-NEXT: %[[S:.*]] = nn.silu %[[H]]
// CHECK-NEXT: %[[D:.*]] = nn.read @down
// CHECK-NEXT: %[[Y:.*]] = nn.linear %[[S]], %[[D]]
// CHECK-NEXT: %[[Z:.*]] = fsdp.redistribute %[[Y]] on @mesh to <[{}, {}]> : tensor<2x4xf32> -> tensor<2x4xf32>
// CHECK-NEXT: return %[[Z]]
fsdp.mesh @mesh ["tp" = 2]
nn.parameter @up : tensor<8x4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{"tp"}, {}]>}
nn.parameter @down : tensor<4x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{}, {"tp"}]>}
func.func @feed_forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %u = nn.read @up : tensor<8x4xf32>
  %h = nn.linear %x, %u : tensor<2x4xf32>, tensor<8x4xf32> -> tensor<2x8xf32>
  %s = nn.silu %h : tensor<2x8xf32>
  %d = nn.read @down : tensor<4x8xf32>
  %y = nn.linear %s, %d : tensor<2x8xf32>, tensor<4x8xf32> -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// A stored parameter is gathered over its storage axes alone, once, and its
// gradient goes back there. Parts of two gradients are added before they are
// reduced.
// CHECK-LABEL: func.func @stored
// CHECK: %[[R:.*]] = nn.read @w
// CHECK-NEXT: %[[W:.*]] = fsdp.redistribute %[[R]] on @mesh to <[{"tp"}, {}]>
// CHECK: nn.linear_weight_grad
// CHECK: nn.linear_weight_grad
// CHECK-NEXT: %[[G:.*]] = nn.add
// CHECK-NEXT: %[[P:.*]] = fsdp.redistribute %[[G]] on @mesh to <[{"tp" | "dp"}, {}]>
// CHECK-NEXT: nn.gradient @w, %[[P]]
// CHECK-NOT: fsdp.redistribute
fsdp.mesh @mesh ["dp" = 2, "tp" = 2]
nn.parameter @w : tensor<8x4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{"tp" | "dp"}, {}]>}
func.func @stored(%x: tensor<2x4xf32> {fsdp.placement = #fsdp.placement<[{"dp"}, {}]>},
                  %g: tensor<2x8xf32> {fsdp.placement = #fsdp.placement<[{"dp"}, {"tp"}]>})
    -> (tensor<2x8xf32> {fsdp.placement = #fsdp.placement<[{"dp"}, {"tp"}]>}) {
  %w = nn.read @w : tensor<8x4xf32>
  %y = nn.linear %x, %w : tensor<2x4xf32>, tensor<8x4xf32> -> tensor<2x8xf32>
  %a = nn.linear_weight_grad %g, %x : tensor<2x8xf32>, tensor<2x4xf32> -> tensor<8x4xf32>
  %b = nn.linear_weight_grad %y, %x : tensor<2x8xf32>, tensor<2x4xf32> -> tensor<8x4xf32>
  %s = nn.add %a, %b : tensor<8x4xf32>
  nn.gradient @w, %s : tensor<8x4xf32>
  return %y : tensor<2x8xf32>
}

// -----

// What is placed already stays, and a value is brought to one place once.
// CHECK-LABEL: func.func @once
// CHECK: %[[P:.*]] = fsdp.redistribute %arg0 on @mesh to <[{"a"}, {}]>
// CHECK-NEXT: %[[W:.*]] = fsdp.redistribute %[[P]] on @mesh to <[{}, {}]>
// CHECK-NEXT: nn.slice %[[W]] [1, 0]
// CHECK-NEXT: nn.slice %[[W]] [2, 0]
// CHECK-NOT: fsdp.redistribute
fsdp.mesh @mesh ["a" = 2]
func.func @once(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %p = fsdp.redistribute %x on @mesh to <[{"a"}, {}]> : tensor<4x4xf32> -> tensor<4x4xf32>
  %s = nn.slice %p [1, 0] : tensor<4x4xf32> to tensor<3x4xf32>
  %t = nn.slice %p [2, 0] : tensor<4x4xf32> to tensor<1x4xf32>
  %j = nn.concat %s, %t dim 0 : tensor<3x4xf32>, tensor<1x4xf32> to tensor<4x4xf32>
  return %j : tensor<4x4xf32>
}

// -----

// The optimizer takes gradients where they rest: what each rank finds of the
// maximum and of the sum is combined over the axes that shard them, and nothing
// over those that do not.
// CHECK-LABEL: func.func @step
// CHECK: %[[G:.*]] = fsdp.redistribute %arg0 on @mesh to <[{| "dp_shard"}]>
// CHECK-NEXT: %[[M:.*]] = nn.abs_max %[[G]], %arg1
// CHECK-NEXT: %[[A:.*]] = fsdp.redistribute %[[M]] on @mesh to <[]> : tensor<f32> -> tensor<f32>
// CHECK-NEXT: %[[S:.*]] = nn.sum_squares %[[A]], %[[G]]
// CHECK-NEXT: %[[T:.*]] = nn.sum_squares %[[A]], %arg1
// CHECK-NEXT: %[[B:.*]] = fsdp.redistribute %[[S]] on @mesh to <[{}]> : tensor<2xi64> -> tensor<2xi64>
// CHECK-NEXT: %[[C:.*]] = nn.concat %[[B]], %[[T]] dim 0
// CHECK-NEXT: nn.clip_coefficient %[[A]], %[[C]]
// CHECK-NOT: fsdp.redistribute
fsdp.mesh @mesh ["dp_replicate" = 2, "dp_shard" = 2]
nn.parameter @w : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}]>}
nn.parameter @s : tensor<f32> init #nn.zeros
nn.buffer @m : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}]>}
nn.buffer @n : tensor<f32> init #nn.zeros
func.func @step(%g: tensor<8xf32> {fsdp.placement = #fsdp.placement<[{}], partial = sum {"dp_replicate", "dp_shard"}>}, %h: tensor<f32>, %lr: tensor<f32>, %t: tensor<i32>) {
  %r = fsdp.redistribute %g on @mesh to <[{| "dp_shard"}]> : tensor<8xf32> -> tensor<8xf32>
  %m = nn.abs_max %r, %h : tensor<8xf32>, tensor<f32> -> tensor<f32>
  %a = nn.sum_squares %m, %r : tensor<f32>, tensor<8xf32> -> tensor<2xi64>
  %b = nn.sum_squares %m, %h : tensor<f32>, tensor<f32> -> tensor<2xi64>
  %s = nn.concat %a, %b dim 0 : tensor<2xi64>, tensor<2xi64> to tensor<4xi64>
  %norm, %c = nn.clip_coefficient %m, %s max_norm 1.0 : tensor<f32>, tensor<4xi64>
  nn.adamw [@w, @s] moments [@m, @n], [@m, @n](%r, %h) lr %lr step %t clip %c
      {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1} : tensor<8xf32>, tensor<f32>
  return
}

// -----

// A result of which nothing is said lies where it is computed; its place is
// written down.
// CHECK-LABEL: func.func @open
// CHECK-SAME: -> (tensor<4xf32> {fsdp.placement = #fsdp.placement<[{"a"}]>}, tensor<f32> {fsdp.placement = #fsdp.placement<[]>})
// CHECK: %[[Y:.*]] = nn.silu %arg0
// CHECK: %[[S:.*]] = nn.sum %[[Y]]
// CHECK: %[[T:.*]] = fsdp.redistribute %[[S]] on @mesh to <[]>
// CHECK: return %[[Y]], %[[T]]
fsdp.mesh @mesh ["a" = 2]
func.func @open(%x: tensor<4xf32> {fsdp.placement = #fsdp.placement<[{"a"}]>}) -> (tensor<4xf32>, tensor<f32>) {
  %y = nn.silu %x : tensor<4xf32>
  %s = nn.sum %y [0] : tensor<4xf32> to tensor<f32>
  return %y, %s : tensor<4xf32>, tensor<f32>
}

// -----

// Programs of one rank stay.
// CHECK-LABEL: func.func @local
// CHECK-NEXT: nn.recompute_from
fsdp.mesh @mesh ["a" = 2]
func.func @local(%x: tensor<4xf32>) -> tensor<4xf32> attributes {fsdp.local} {
  %y = nn.recompute_from %x : tensor<4xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}
