// RUN: fsdp-opt %s --canonicalize --split-input-file | FileCheck %s
// RUN: fsdp-opt %s --cse --split-input-file | FileCheck %s --check-prefix=CSE

// Moves that change nothing disappear.
// CHECK-LABEL: @identities
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
func.func @identities(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = nn.reshape %x : tensor<4x8xf32> to tensor<4x8xf32>
  %1 = nn.transpose %x [0, 1] : tensor<4x8xf32> to tensor<4x8xf32>
  %2 = nn.slice %x [0, 0] : tensor<4x8xf32> to tensor<4x8xf32>
  %3 = nn.pad %x [0, 0] : tensor<4x8xf32> to tensor<4x8xf32>
  %4 = nn.concat %x dim 1 : tensor<4x8xf32> to tensor<4x8xf32>
  %5 = nn.broadcast %x [0, 1] : tensor<4x8xf32> to tensor<4x8xf32>
  %6 = nn.cast %x : tensor<4x8xf32> to tensor<4x8xf32>
  // CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]], %[[X]], %[[X]], %[[X]]
  return %0, %1, %2, %3, %4, %5, %6 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// A reshape of a reshape is one, and none if the shape returns.
// CHECK-LABEL: @reshape_of_reshape
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
func.func @reshape_of_reshape(%x: tensor<4x8xf32>) -> (tensor<2x16xf32>, tensor<4x8xf32>) {
  // CHECK-NEXT: %[[Y:.*]] = nn.reshape %[[X]] : tensor<4x8xf32> to tensor<2x16xf32>
  %0 = nn.reshape %x : tensor<4x8xf32> to tensor<32xf32>
  %1 = nn.reshape %0 : tensor<32xf32> to tensor<2x16xf32>
  %2 = nn.reshape %0 : tensor<32xf32> to tensor<4x8xf32>
  // CHECK-NEXT: return %[[Y]], %[[X]]
  return %1, %2 : tensor<2x16xf32>, tensor<4x8xf32>
}

// -----

// Two transposes that cancel disappear.
// CHECK-LABEL: @transpose_and_back
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>)
func.func @transpose_and_back(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = nn.transpose %x [1, 2, 0] : tensor<2x3x4xf32> to tensor<3x4x2xf32>
  %1 = nn.transpose %0 [2, 0, 1] : tensor<3x4x2xf32> to tensor<2x3x4xf32>
  // CHECK-NEXT: return %[[X]]
  return %1 : tensor<2x3x4xf32>
}

// -----

// Two transposes become one: result dimension i is dimension p[q[i]], here
// p = [1, 2, 0] and q = [1, 0, 2] give [2, 1, 0].
// CHECK-LABEL: @transpose_of_transpose
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>)
func.func @transpose_of_transpose(%x: tensor<2x3x4xf32>) -> tensor<4x3x2xf32> {
  // CHECK-NEXT: nn.transpose %[[X]] [2, 1, 0] : tensor<2x3x4xf32> to tensor<4x3x2xf32>
  %0 = nn.transpose %x [1, 2, 0] : tensor<2x3x4xf32> to tensor<3x4x2xf32>
  %1 = nn.transpose %0 [1, 0, 2] : tensor<3x4x2xf32> to tensor<4x3x2xf32>
  return %1 : tensor<4x3x2xf32>
}

// -----

// Offsets of nested boxes add: 1 + 1 and 2 + 3.
// CHECK-LABEL: @slice_of_slice_and_pad_of_pad
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
func.func @slice_of_slice_and_pad_of_pad(%x: tensor<4x8xf32>) -> (tensor<1x1xf32>, tensor<8x16xf32>) {
  %0 = nn.slice %x [1, 2] : tensor<4x8xf32> to tensor<3x6xf32>
  // CHECK-DAG: nn.slice %[[X]] [2, 5] : tensor<4x8xf32> to tensor<1x1xf32>
  %1 = nn.slice %0 [1, 3] : tensor<3x6xf32> to tensor<1x1xf32>
  %2 = nn.pad %x [1, 2] : tensor<4x8xf32> to tensor<6x12xf32>
  // CHECK-DAG: nn.pad %[[X]] [2, 5] : tensor<4x8xf32> to tensor<8x16xf32>
  %3 = nn.pad %2 [1, 3] : tensor<6x12xf32> to tensor<8x16xf32>
  return %1, %3 : tensor<1x1xf32>, tensor<8x16xf32>
}

// -----

// Dimension 0 of the operand is dimension 1 of the middle, hence 2 of the result.
// CHECK-LABEL: @broadcast_of_broadcast
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>)
func.func @broadcast_of_broadcast(%x: tensor<8xf32>) -> tensor<2x4x8xf32> {
  %0 = nn.broadcast %x [1] : tensor<8xf32> to tensor<4x8xf32>
  // CHECK-NEXT: nn.broadcast %[[X]] [2] : tensor<8xf32> to tensor<2x4x8xf32>
  %1 = nn.broadcast %0 [1, 2] : tensor<4x8xf32> to tensor<2x4x8xf32>
  return %1 : tensor<2x4x8xf32>
}

// -----

// Widening keeps the value, so widening and narrowing back is nothing, and a
// wider middle type changes no rounding.
// CHECK-LABEL: @exact_casts
// CHECK-SAME: (%[[X:.*]]: tensor<8xbf16>, %[[Y:.*]]: tensor<8xf32>)
func.func @exact_casts(%x: tensor<8xbf16>, %y: tensor<8xf32>) -> (tensor<8xbf16>, tensor<8xbf16>) {
  %0 = nn.cast %x : tensor<8xbf16> to tensor<8xf32>
  %1 = nn.cast %0 : tensor<8xf32> to tensor<8xbf16>
  %2 = nn.cast %y : tensor<8xf32> to tensor<8xf64>
  // CHECK-NEXT: %[[Z:.*]] = nn.cast %[[Y]] : tensor<8xf32> to tensor<8xbf16>
  %3 = nn.cast %2 : tensor<8xf64> to tensor<8xbf16>
  // CHECK-NEXT: return %[[X]], %[[Z]]
  return %1, %3 : tensor<8xbf16>, tensor<8xbf16>
}

// -----

// Narrowing rounds: both casts stay.
// CHECK-LABEL: @rounding_casts_stay
func.func @rounding_casts_stay(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: nn.cast %{{.*}} : tensor<8xf32> to tensor<8xbf16>
  %0 = nn.cast %x : tensor<8xf32> to tensor<8xbf16>
  // CHECK: nn.cast %{{.*}} : tensor<8xbf16> to tensor<8xf32>
  %1 = nn.cast %0 : tensor<8xbf16> to tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// A constant of one value moves under every shape; a cast rounds it: 0.1 in
// bf16 is 0x3DCD, 0.100097656.
// CHECK-LABEL: @constants
func.func @constants() -> (tensor<32xf32>, tensor<8x4xf32>, tensor<2x4x8xf32>, tensor<2x2xf32>, tensor<4x8xbf16>) {
  %0 = nn.constant dense<0.1> : tensor<4x8xf32>
  // CHECK-DAG: %[[CAST:.*]] = nn.constant dense<1.000980e-01> : tensor<4x8xbf16>
  // CHECK-DAG: %[[SLICE:.*]] = nn.constant dense<1.000000e-01> : tensor<2x2xf32>
  // CHECK-DAG: %[[BROADCAST:.*]] = nn.constant dense<1.000000e-01> : tensor<2x4x8xf32>
  // CHECK-DAG: %[[TRANSPOSE:.*]] = nn.constant dense<1.000000e-01> : tensor<8x4xf32>
  // CHECK-DAG: %[[RESHAPE:.*]] = nn.constant dense<1.000000e-01> : tensor<32xf32>
  %1 = nn.reshape %0 : tensor<4x8xf32> to tensor<32xf32>
  %2 = nn.transpose %0 [1, 0] : tensor<4x8xf32> to tensor<8x4xf32>
  %3 = nn.broadcast %0 [1, 2] : tensor<4x8xf32> to tensor<2x4x8xf32>
  %4 = nn.slice %0 [1, 1] : tensor<4x8xf32> to tensor<2x2xf32>
  %5 = nn.cast %0 : tensor<4x8xf32> to tensor<4x8xbf16>
  // CHECK: return %[[RESHAPE]], %[[TRANSPOSE]], %[[BROADCAST]], %[[SLICE]], %[[CAST]]
  return %1, %2, %3, %4, %5 : tensor<32xf32>, tensor<8x4xf32>, tensor<2x4x8xf32>, tensor<2x2xf32>, tensor<4x8xbf16>
}

// -----

nn.parameter @w : tensor<4x8xf32> init #nn.zeros

// Unused pure ops, reads and recomputations are erased, gradients stay.
// CHECK-LABEL: @effects
func.func @effects(%g: tensor<4x8xf32>) {
  // CHECK-NEXT: nn.gradient @w
  // CHECK-NEXT: return
  %0 = nn.read @w : tensor<4x8xf32>
  %1 = nn.silu %0 : tensor<4x8xf32>
  %2 = nn.recompute_from %g : tensor<4x8xf32> -> tensor<4x8xf32>
  nn.gradient @w, %g : tensor<4x8xf32>
  return
}

// -----

// CSE merges equal ops, but never through nn.recompute_from: the clone must be
// computed again.
// CSE-LABEL: @recomputed_clone_stays
func.func @recomputed_clone_stays(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  // CSE-NEXT: %[[A:.*]] = nn.silu
  %0 = nn.silu %x : tensor<4x8xf32>
  %1 = nn.silu %x : tensor<4x8xf32>
  // CSE-NEXT: %[[B:.*]] = nn.recompute_from
  // CSE-NEXT: %[[C:.*]] = nn.silu %[[B]]
  %2 = nn.recompute_from %x : tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = nn.silu %2 : tensor<4x8xf32>
  // CSE-NEXT: return %[[A]], %[[A]], %[[C]]
  return %0, %1, %3 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// A window of as many keys as there are hides none; one key less, and it stays.
// CHECK-LABEL: @windows
func.func @windows(%q: tensor<2x16x4x4xf32>) -> (tensor<2x16x4x4xf32>, tensor<2x16x4x4xf32>, tensor<2x16x4x4xf32>, tensor<2x16x4x4xf32>) {
  // CHECK-NEXT: nn.attention {{.*}} {causal} :
  %0, %l = nn.attention %q, %q, %q scale 0.5 {causal, window = 16 : i64} : tensor<2x16x4x4xf32>, tensor<2x16x4x4xf32>, tensor<2x4x16xf32>
  // CHECK-NEXT: nn.attention {{.*}} {cap = 2.000000e+00 : f64, causal} :
  %1, %m = nn.attention %q, %q, %q scale 0.5 {cap = 2.0 : f64, causal, window = 17 : i64} : tensor<2x16x4x4xf32>, tensor<2x16x4x4xf32>, tensor<2x4x16xf32>
  // CHECK-NEXT: nn.attention {{.*}} {causal, window = 15 : i64} :
  %2, %n = nn.attention %q, %q, %q scale 0.5 {causal, window = 15 : i64} : tensor<2x16x4x4xf32>, tensor<2x16x4x4xf32>, tensor<2x4x16xf32>
  // CHECK-NEXT: nn.attention_grad {{.*}} {causal} :
  %3:3 = nn.attention_grad %q, %q, %q, %0, %l, %1 scale 0.5 {causal, window = 16 : i64} : tensor<2x16x4x4xf32>, tensor<2x16x4x4xf32>, tensor<2x4x16xf32>
  return %0, %1, %2, %3#0 : tensor<2x16x4x4xf32>, tensor<2x16x4x4xf32>, tensor<2x16x4x4xf32>, tensor<2x16x4x4xf32>
}
