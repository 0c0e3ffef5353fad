// RUN: fsdp-opt %s --split-input-file --fsdp-propagate --fsdp-verify-placements | FileCheck %s

// Two layers of Megatron's kind: the first is cut along its outputs, the second
// along its inputs, and one sum remains. The gradients need no more than the
// sum of the input's cotangent.
// CHECK-LABEL: func.func @feed_forward
// CHECK: %[[U:.*]] = nn.read @up
// CHECK-NEXT: %[[H:.*]] = nn.linear %arg0, %[[U]]
// CHECK-NEXT: %[[S:.*]] = nn.silu %[[H]]
// CHECK-NEXT: %[[D:.*]] = nn.read @down
// CHECK-NEXT: %[[Y:.*]] = nn.linear %[[S]], %[[D]]
// CHECK-NEXT: %[[Z:.*]] = fsdp.place %[[Y]] on @mesh to <[{}, {}]> : tensor<2x4xf32>
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

// A parameter at rest is gathered over its storage axes alone, once, and its
// gradient goes back there. Parts of two gradients are added before they are
// reduced.
// CHECK-LABEL: func.func @stored
// CHECK: %[[R:.*]] = nn.read @w
// CHECK-NEXT: %[[W:.*]] = fsdp.place %[[R]] on @mesh to <[{"tp"}, {}]>
// CHECK: nn.linear_weight_grad
// CHECK: nn.linear_weight_grad
// CHECK-NEXT: %[[G:.*]] = nn.add
// CHECK-NEXT: %[[P:.*]] = fsdp.place %[[G]] on @mesh to <[{"tp" | "dp"}, {}]>
// CHECK-NEXT: nn.gradient @w, %[[P]]
// CHECK-NOT: fsdp.place
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
// CHECK: %[[P:.*]] = fsdp.place %arg0 on @mesh to <[{"a"}, {}]>
// CHECK-NEXT: %[[W:.*]] = fsdp.place %[[P]] on @mesh to <[{}, {}]>
// CHECK-NEXT: nn.slice %[[W]] [1, 0]
// CHECK-NEXT: nn.slice %[[W]] [2, 0]
// CHECK-NOT: fsdp.place
fsdp.mesh @mesh ["a" = 2]
func.func @once(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %p = fsdp.place %x on @mesh to <[{"a"}, {}]> : tensor<4x4xf32>
  %s = nn.slice %p [1, 0] : tensor<4x4xf32> to tensor<3x4xf32>
  %t = nn.slice %p [2, 0] : tensor<4x4xf32> to tensor<1x4xf32>
  %j = nn.concat %s, %t dim 0 : tensor<3x4xf32>, tensor<1x4xf32> to tensor<4x4xf32>
  return %j : tensor<4x4xf32>
}
