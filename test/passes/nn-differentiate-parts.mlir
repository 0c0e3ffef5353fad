// RUN: fsdp-opt %s --nn-differentiate="parts=3" | FileCheck %s
// RUN: not fsdp-opt %s --nn-differentiate="parts=4" 2>&1 | FileCheck %s --check-prefix=RAGGED
// RUN: not fsdp-opt %s --nn-differentiate="parts=0" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not fsdp-opt %s --nn-differentiate="split=true parts=3" 2>&1 | FileCheck %s --check-prefix=SPLIT
// RUN: sed 's/nn.divide_by_count %%sum, %%count/nn.mul %%sum, %%sum/; s/: tensor<f32>, tensor<i64>/: tensor<f32>/' %s | not fsdp-opt --nn-differentiate="parts=3" 2>&1 | FileCheck %s --check-prefix=OTHER
// RAGGED: error: the batch 'tensor<6x4xf32>' of 6 examples cannot be split into 4 equal parts, each with a mean of its own
// NONE: error: a loss is the mean of at least one part, not of 0
// SPLIT: error: a split program has no loss to take the mean of parts of
// OTHER: error: the loss is not a sum of rows (nn.sum) divided by a count of labels (nn.count_labels)

// Each part of the batch has a sum, a count and a mean of its own; the seed goes
// to each by its count. The evaluation program has one mean over all labels.
// CHECK-LABEL: func.func @train
// CHECK: %[[ROWS:.*]], %[[LSE:.*]] = nn.cross_entropy
// CHECK-NEXT: %[[PARTS:.*]] = nn.reshape %[[ROWS]] : tensor<6x4xf32> to tensor<3x2x4xf32>
// CHECK-NEXT: %[[SUMS:.*]] = nn.sum %[[PARTS]] [1, 2] : tensor<3x2x4xf32> to tensor<3xf32>
// CHECK-NEXT: %[[COUNTS:.*]] = nn.count_labels %{{.*}} ignore_index -100 : tensor<6x4xi32> -> tensor<3xi64>
// CHECK-NEXT: %[[MEANS:.*]] = nn.divide_by_count %[[SUMS]], %[[COUNTS]] : tensor<3xf32>, tensor<3xi64>
// CHECK-NEXT: %[[LOSS:.*]] = nn.mean %[[MEANS]] [0] count 3 : tensor<3xf32> to tensor<f32>
// CHECK-NEXT: nn.seed %[[LOSS]]
// CHECK: nn.divide_by_count %{{.*}}, %[[COUNTS]] : tensor<3xf32>, tensor<3xi64>
// CHECK: nn.cross_entropy_grad
// CHECK: return %[[LOSS]]
// CHECK-LABEL: func.func @evaluate
// CHECK: nn.count_labels %{{.*}} -> tensor<i64>
nn.parameter @w : tensor<5x8xf32> init #nn.zeros
func.func @forward(%x: tensor<6x4x8xf32> {nn.name = "x"}, %t: tensor<6x4xi32> {nn.name = "t"})
    -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.read @w : tensor<5x8xf32>
  %y = nn.linear %x, %w : tensor<6x4x8xf32>, tensor<5x8xf32> -> tensor<6x4x5xf32>
  %rows, %lse = nn.cross_entropy %y, %t ignore_index -100 : tensor<6x4x5xf32>, tensor<6x4xi32>, tensor<6x4xf32>
  %sum = nn.sum %rows [0, 1] : tensor<6x4xf32> to tensor<f32>
  %count = nn.count_labels %t ignore_index -100 : tensor<6x4xi32> -> tensor<i64>
  %loss = nn.divide_by_count %sum, %count : tensor<f32>, tensor<i64>
  return %loss : tensor<f32>
}
