// RUN: fsdp-opt %s --fsdp-expand=widen-sums | FileCheck %s

// What ranks add up travels in the type of the sum, after the rounding to the
// type on the wire: the numbers are those that a receiver would widen. A maximum
// travels as it is.
// CHECK-LABEL: func.func @sums
// CHECK-SAME: %[[P:[^:]*]]: tensor<8x4xbf16>
// CHECK-SAME: %[[G:[^:]*]]: tensor<8x4xf32>
// CHECK-SAME: %[[M:[^:]*]]: tensor<8xf32>
// CHECK-NEXT: %[[W:.*]] = nn.cast %[[P]] : tensor<8x4xbf16> to tensor<8x4xf32>
// CHECK-NEXT: %[[R:.*]] = fsdp.all_reduce sum %[[W]] on @mesh["a"] : tensor<8x4xf32> -> tensor<8x4xf32>
// CHECK-NEXT: nn.cast %[[R]] : tensor<8x4xf32> to tensor<8x4xbf16>
// CHECK-NEXT: %[[N:.*]] = nn.cast %[[G]] : tensor<8x4xf32> to tensor<8x4xbf16>
// CHECK-NEXT: %[[V:.*]] = nn.cast %[[N]] : tensor<8x4xbf16> to tensor<8x4xf32>
// CHECK-NEXT: fsdp.reduce_scatter sum %[[V]] on @mesh["a"] dim 0 : tensor<8x4xf32> -> tensor<4x4xf32>
// CHECK-NEXT: fsdp.all_reduce max %[[M]] on @mesh["a"]
fsdp.mesh @mesh ["a" = 2]
func.func @sums(%p: tensor<8x4xbf16> {fsdp.placement = #fsdp.placement<[{}, {}], partial = sum {"a"}>},
                %g: tensor<8x4xf32> {fsdp.placement = #fsdp.placement<[{}, {}], partial = sum {"a"}>},
                %m: tensor<8xf32> {fsdp.placement = #fsdp.placement<[{}], partial = max {"a"}>}) {
  %r = fsdp.redistribute %p on @mesh to <[{}, {}]> : tensor<8x4xbf16> -> tensor<8x4xbf16>
  %s = fsdp.redistribute %g on @mesh to <[{"a"}, {}]> wire bf16 : tensor<8x4xf32> -> tensor<8x4xf32>
  %x = fsdp.redistribute %m on @mesh to <[{}]> : tensor<8xf32> -> tensor<8xf32>
  return
}
