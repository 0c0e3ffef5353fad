// RUN: fsdp-opt %s --nn-chunk-loss=chunks=2 --split-input-file | FileCheck %s
// RUN: fsdp-opt %s --nn-chunk-loss=chunks=1 --split-input-file | FileCheck %s --check-prefix=WHOLE

// Every chunk but the last is differentiated before nn.seed, by a cotangent
// that a constant 1 gives; what the count needs moves before the chunks. The
// last chunk is differentiated where the whole loss was. The weight's gradient
// is a sum in f32, rounded once. A program without gradients stays as it is.
// CHECK-LABEL: func.func @train
// CHECK-SAME: (%{{.*}}: tensor<2x4x8xbf16>, %[[W:.*]]: tensor<16x8xbf16>, %[[T:.*]]: tensor<2x4xi32>)
// CHECK-NEXT: %[[COUNT:.*]] = nn.count_labels %[[T]] ignore_index -100 {nn.module = "loss"} : tensor<2x4xi32> -> tensor<i64>
// CHECK-NEXT: %[[ONE:.*]] = nn.constant dense<1.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[EARLY:.*]] = nn.divide_by_count %[[ONE]], %[[COUNT]] {nn.module = "loss"}
// CHECK-NEXT: %[[DROWS:.*]] = nn.broadcast %[[EARLY]] [] {nn.module = "loss"} : tensor<f32> to tensor<2x4xf32>
// CHECK-NEXT: %[[H:.*]] = nn.reshape %{{.*}} {nn.module = "loss"} : tensor<2x4x8xbf16> to tensor<8x8xbf16>
// CHECK-NEXT: %[[ROWTARGETS:.*]] = nn.reshape %[[T]] {nn.module = "loss"} : tensor<2x4xi32> to tensor<8xi32>
// CHECK-NEXT: %[[ROWDROWS:.*]] = nn.reshape %[[DROWS]] {nn.module = "loss"} : tensor<2x4xf32> to tensor<8xf32>
// CHECK-NEXT: %[[H0:.*]] = nn.slice %[[H]] [0, 0] {nn.module = "output"} : tensor<8x8xbf16> to tensor<4x8xbf16>
// CHECK-NEXT: %[[LOGITS0:.*]] = nn.linear %[[H0]], %[[W]] {nn.module = "output"} : tensor<4x8xbf16>, tensor<16x8xbf16> -> tensor<4x16xbf16>
// CHECK-NEXT: %[[T0:.*]] = nn.slice %[[ROWTARGETS]] [0] {nn.module = "loss"} : tensor<8xi32> to tensor<4xi32>
// CHECK-NEXT: %[[ROWS0:.*]], %[[LSE0:.*]] = nn.cross_entropy %[[LOGITS0]], %[[T0]] ignore_index -100 {nn.module = "loss"}
// CHECK-NEXT: %[[DROWS0:.*]] = nn.slice %[[ROWDROWS]] [0] {nn.module = "loss"} : tensor<8xf32> to tensor<4xf32>
// CHECK-NEXT: %[[D0:.*]] = nn.cross_entropy_grad %[[LOGITS0]], %[[T0]], %[[LSE0]], %[[DROWS0]] ignore_index -100 {nn.module = "loss"}
// CHECK-NEXT: %[[DH0:.*]] = nn.linear_input_grad %[[D0]], %[[W]] {nn.module = "output"} : tensor<4x16xbf16>, tensor<16x8xbf16> -> tensor<4x8xbf16>
// CHECK-NEXT: %[[DW0:.*]] = nn.linear_weight_grad %[[D0]], %[[H0]] {nn.module = "output"} : tensor<4x16xbf16>, tensor<4x8xbf16> -> tensor<16x8xf32>
// CHECK-NEXT: %[[H1:.*]] = nn.slice %[[H]] [4, 0] {nn.module = "output"}
// CHECK-NEXT: %[[LOGITS1:.*]] = nn.linear %[[H1]], %[[W]] {nn.module = "output"}
// CHECK-NEXT: %[[T1:.*]] = nn.slice %[[ROWTARGETS]] [4] {nn.module = "loss"}
// CHECK-NEXT: %[[ROWS1:.*]], %[[LSE1:.*]] = nn.cross_entropy %[[LOGITS1]], %[[T1]] ignore_index -100 {nn.module = "loss"}
// CHECK-NEXT: %[[ROWS:.*]] = nn.concat %[[ROWS0]], %[[ROWS1]] dim 0 {nn.module = "loss"} : tensor<4xf32>, tensor<4xf32> to tensor<8xf32>
// CHECK-NEXT: %[[ROWSHAPED:.*]] = nn.reshape %[[ROWS]] {nn.module = "loss"} : tensor<8xf32> to tensor<2x4xf32>
// CHECK-NEXT: %[[SUM:.*]] = nn.sum %[[ROWSHAPED]]
// CHECK-NEXT: %[[LOSS:.*]] = nn.divide_by_count %[[SUM]], %[[COUNT]]
// CHECK-NEXT: nn.seed %[[LOSS]]
// CHECK: %[[D1:.*]] = nn.cross_entropy_grad %[[LOGITS1]], %[[T1]], %[[LSE1]]
// CHECK-NEXT: %[[DH1:.*]] = nn.linear_input_grad %[[D1]], %[[W]]
// CHECK-NEXT: %[[DW1:.*]] = nn.linear_weight_grad %[[D1]], %[[H1]] sum %[[DW0]] {nn.module = "output"} : tensor<4x16xbf16>, tensor<4x8xbf16>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT: nn.concat %[[DH0]], %[[DH1]] dim 0 {nn.module = "output"} : tensor<4x8xbf16>, tensor<4x8xbf16> to tensor<8x8xbf16>
// CHECK: %[[DW:.*]] = nn.cast %[[DW1]] {nn.module = "output"} : tensor<16x8xf32> to tensor<16x8xbf16>
// CHECK: return %[[LOSS]], %{{.*}}, %[[DW]]
// CHECK-LABEL: func.func @evaluate
// CHECK: nn.linear {{.*}} -> tensor<2x4x16xbf16>
// CHECK-NEXT: nn.cross_entropy

// WHOLE-LABEL: func.func @train
// WHOLE: nn.cross_entropy_grad {{.*}} : tensor<2x4x16xbf16>
// WHOLE-NOT: nn.concat
func.func @train(%h: tensor<2x4x8xbf16>, %w: tensor<16x8xbf16>, %t: tensor<2x4xi32>)
    -> (tensor<f32>, tensor<2x4x8xbf16>, tensor<16x8xbf16>) {
  %logits = nn.linear %h, %w {nn.module = "output"} : tensor<2x4x8xbf16>, tensor<16x8xbf16> -> tensor<2x4x16xbf16>
  %rows, %lse = nn.cross_entropy %logits, %t ignore_index -100 {nn.module = "loss"} : tensor<2x4x16xbf16>, tensor<2x4xi32>, tensor<2x4xf32>
  %sum = nn.sum %rows [0, 1] {nn.module = "loss"} : tensor<2x4xf32> to tensor<f32>
  %count = nn.count_labels %t ignore_index -100 {nn.module = "loss"} : tensor<2x4xi32> -> tensor<i64>
  %loss = nn.divide_by_count %sum, %count {nn.module = "loss"} : tensor<f32>, tensor<i64>
  %seed = nn.seed %loss {nn.module = "loss"} : tensor<f32>
  %dsum = nn.divide_by_count %seed, %count {nn.module = "loss"} : tensor<f32>, tensor<i64>
  %drows = nn.broadcast %dsum [] {nn.module = "loss"} : tensor<f32> to tensor<2x4xf32>
  %d = nn.cross_entropy_grad %logits, %t, %lse, %drows ignore_index -100 {nn.module = "loss"} : tensor<2x4x16xbf16>, tensor<2x4xi32>, tensor<2x4xf32>
  %dh = nn.linear_input_grad %d, %w {nn.module = "output"} : tensor<2x4x16xbf16>, tensor<16x8xbf16> -> tensor<2x4x8xbf16>
  %dw = nn.linear_weight_grad %d, %h {nn.module = "output"} : tensor<2x4x16xbf16>, tensor<2x4x8xbf16> -> tensor<16x8xbf16>
  return %loss, %dh, %dw : tensor<f32>, tensor<2x4x8xbf16>, tensor<16x8xbf16>
}
func.func @evaluate(%h: tensor<2x4x8xbf16>, %w: tensor<16x8xbf16>, %t: tensor<2x4xi32>)
    -> (tensor<2x4xf32>, tensor<2x4x16xbf16>) {
  %logits = nn.linear %h, %w : tensor<2x4x8xbf16>, tensor<16x8xbf16> -> tensor<2x4x16xbf16>
  %rows, %lse = nn.cross_entropy %logits, %t ignore_index -100 : tensor<2x4x16xbf16>, tensor<2x4xi32>, tensor<2x4xf32>
  return %rows, %logits : tensor<2x4xf32>, tensor<2x4x16xbf16>
}

// -----

// The bias's gradient is a sum in f32 too: a product with ones. Who else reads the
// statistics of all rows gets them. In f32 nothing is rounded at the end.
// CHECK-LABEL: func.func @with_bias
// CHECK: nn.linear %{{.*}}, %{{.*}} bias %[[B:.*]] : tensor<2x3xf32>, tensor<5x3xf32>, tensor<5xf32> -> tensor<2x5xf32>
// CHECK: %[[ONES0:.*]] = nn.constant dense<1.000000e+00> : tensor<2x1xf32>
// CHECK: %[[DB0:.*]] = nn.linear_weight_grad %{{.*}}, %[[ONES0]] : tensor<2x5xf32>, tensor<2x1xf32> -> tensor<5x1xf32>
// CHECK: nn.linear %{{.*}}, %{{.*}} bias %[[B]] :
// CHECK: nn.concat
// CHECK-NEXT: %[[LSE:.*]] = nn.concat %{{.*}}, %{{.*}} dim 0 : tensor<2xf32>, tensor<2xf32> to tensor<4xf32>
// CHECK: nn.seed
// CHECK: %[[DB1:.*]] = nn.linear_weight_grad %{{.*}}, %{{.*}} sum %[[DB0]] : tensor<2x5xf32>, tensor<2x1xf32>, tensor<5x1xf32> -> tensor<5x1xf32>
// CHECK: %[[DB:.*]] = nn.reshape %[[DB1]] : tensor<5x1xf32> to tensor<5xf32>
// CHECK: return %{{.*}}, %{{.*}}, %[[DB]], %[[LSE]]
// WHOLE-LABEL: func.func @with_bias
func.func @with_bias(%h: tensor<4x3xf32>, %w: tensor<5x3xf32>, %b: tensor<5xf32>, %t: tensor<4xi32>)
    -> (tensor<f32>, tensor<5x3xf32>, tensor<5xf32>, tensor<4xf32>) {
  %logits = nn.linear %h, %w bias %b : tensor<4x3xf32>, tensor<5x3xf32>, tensor<5xf32> -> tensor<4x5xf32>
  %rows, %lse = nn.cross_entropy %logits, %t ignore_index -100 : tensor<4x5xf32>, tensor<4xi32>, tensor<4xf32>
  %loss = nn.sum %rows [0] : tensor<4xf32> to tensor<f32>
  %seed = nn.seed %loss : tensor<f32>
  %drows = nn.broadcast %seed [] : tensor<f32> to tensor<4xf32>
  %d = nn.cross_entropy_grad %logits, %t, %lse, %drows ignore_index -100 : tensor<4x5xf32>, tensor<4xi32>, tensor<4xf32>
  %dw = nn.linear_weight_grad %d, %h : tensor<4x5xf32>, tensor<4x3xf32> -> tensor<5x3xf32>
  %db = nn.sum %d [0] : tensor<4x5xf32> to tensor<5xf32>
  return %loss, %dw, %db, %lse : tensor<f32>, tensor<5x3xf32>, tensor<5xf32>, tensor<4xf32>
}
