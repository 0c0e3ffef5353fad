// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --nn-differentiate="parts=3" | FileCheck %s

// The rows of the loss are split where the program has moved the examples.
// CHECK-LABEL: func.func @train
// CHECK: %[[ROWS:.*]] = nn.transpose
// CHECK-NEXT: %[[PARTS:.*]] = nn.reshape %[[ROWS]] : tensor<4x6xf32> to tensor<4x3x2xf32>
// CHECK-NEXT: %[[SUMS:.*]] = nn.sum %[[PARTS]] [0, 2] : tensor<4x3x2xf32> to tensor<3xf32>
// CHECK-NEXT: %[[COUNTS:.*]] = nn.count_labels %{{.*}} ignore_index -100 : tensor<6x4xi32> -> tensor<3xi64>
// CHECK-NEXT: nn.divide_by_count %[[SUMS]], %[[COUNTS]] : tensor<3xf32>, tensor<3xi64>
nn.parameter @w : tensor<5x8xf32> init #nn.zeros
func.func @forward(%x: tensor<6x4x8xf32> {nn.name = "x"}, %t: tensor<6x4xi32> {nn.name = "t"})
    -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.read @w : tensor<5x8xf32>
  %y = nn.linear %x, %w : tensor<6x4x8xf32>, tensor<5x8xf32> -> tensor<6x4x5xf32>
  %rows, %lse = nn.cross_entropy %y, %t ignore_index -100 : tensor<6x4x5xf32>, tensor<6x4xi32>, tensor<6x4xf32>
  %across = nn.transpose %rows [1, 0] : tensor<6x4xf32> to tensor<4x6xf32>
  %sum = nn.sum %across [0, 1] : tensor<4x6xf32> to tensor<f32>
  %count = nn.count_labels %t ignore_index -100 : tensor<6x4xi32> -> tensor<i64>
  %loss = nn.divide_by_count %sum, %count : tensor<f32>, tensor<i64>
  return %loss : tensor<f32>
}

// -----

// After a sum over the batch there are no examples.
nn.parameter @w : tensor<6xf32> init #nn.zeros
func.func @forward(%x: tensor<6x6xf32> {nn.name = "x"}, %t: tensor<6xi32> {nn.name = "t"})
    -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.read @w : tensor<6xf32>
  %ws = nn.broadcast %w [1] : tensor<6xf32> to tensor<6x6xf32>
  %y = nn.mul %x, %ws : tensor<6x6xf32>
  %columns = nn.sum %y [0] : tensor<6x6xf32> to tensor<6xf32>
  // expected-error @below {{the rows that the loss adds up and the labels that it counts are not along the examples of one batch, so parts of the batch have no means}}
  %sum = nn.sum %columns [0] : tensor<6xf32> to tensor<f32>
  %count = nn.count_labels %t ignore_index -100 : tensor<6xi32> -> tensor<i64>
  %loss = nn.divide_by_count %sum, %count : tensor<f32>, tensor<i64>
  return %loss : tensor<f32>
}

// -----

// Examples cannot be split, only the batch.
nn.parameter @w : tensor<8xf32> init #nn.zeros
func.func @forward(%x: tensor<2x6x8xf32> {nn.name = "x"}, %t: tensor<2x6xi32> {nn.name = "t"})
    -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.read @w : tensor<8xf32>
  %ws = nn.broadcast %w [2] : tensor<8xf32> to tensor<2x6x8xf32>
  %y = nn.mul %x, %ws : tensor<2x6x8xf32>
  %rows = nn.sum %y [2] : tensor<2x6x8xf32> to tensor<2x6xf32>
  %flat = nn.reshape %rows : tensor<2x6xf32> to tensor<12xf32>
  // expected-error @below {{the batch 'tensor<12xf32>' of 2 examples cannot be split into 3 equal parts, each with a mean of its own}}
  %sum = nn.sum %flat [0] : tensor<12xf32> to tensor<f32>
  %count = nn.count_labels %t ignore_index -100 : tensor<2x6xi32> -> tensor<i64>
  %loss = nn.divide_by_count %sum, %count : tensor<f32>, tensor<i64>
  return %loss : tensor<f32>
}
