// RUN: fsdp-opt %s --nn-fold-casts | FileCheck %s
// The optimizer reads bf16 as it is, in a list with f32, and sums over
// microbatches do; any other reader keeps the cast.

module {
  nn.parameter @w : tensor<4x8xf32> init #nn.zeros
  nn.parameter @b : tensor<8xf32> init #nn.zeros
  nn.buffer @w.exp_avg : tensor<4x8xf32> init #nn.zeros
  nn.buffer @w.exp_avg_sq : tensor<4x8xf32> init #nn.zeros
  nn.buffer @b.exp_avg : tensor<8xf32> init #nn.zeros
  nn.buffer @b.exp_avg_sq : tensor<8xf32> init #nn.zeros

  // CHECK-LABEL: func @train
  // CHECK-SAME: (%[[DW:.*]]: tensor<4x8xbf16>, %[[DB:.*]]: tensor<8xf32>,
  func.func @train(%dw: tensor<4x8xbf16>, %db: tensor<8xf32>, %lr: tensor<f32>, %step: tensor<i32>) {
    // CHECK-NOT: nn.cast
    %g = nn.cast %dw : tensor<4x8xbf16> to tensor<4x8xf32>
    // CHECK: %[[M:.*]] = nn.abs_max %[[DW]], %[[DB]] : tensor<4x8xbf16>, tensor<8xf32>
    %m = nn.abs_max %g, %db : tensor<4x8xf32>, tensor<8xf32> -> tensor<f32>
    // CHECK: nn.sum_squares %[[M]], %[[DW]], %[[DB]] :
    %s = nn.sum_squares %m, %g, %db : tensor<f32>, tensor<4x8xf32>, tensor<8xf32> -> tensor<2xi64>
    %n, %c = nn.clip_coefficient %m, %s max_norm 1.0 : tensor<f32>, tensor<2xi64>
    // CHECK: nn.adamw {{.*}}(%[[DW]], %[[DB]]) {{.*}} : tensor<4x8xbf16>, tensor<8xf32>
    nn.adamw [@w, @b] moments [@w.exp_avg, @b.exp_avg], [@w.exp_avg_sq, @b.exp_avg_sq](%g, %db)
        lr %lr step %step clip %c {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}
        : tensor<4x8xf32>, tensor<8xf32>
    return
  }

  // CHECK-LABEL: func @accumulate
  // CHECK-SAME: (%[[DW:.*]]: tensor<4x8xbf16>)
  func.func @accumulate(%dw: tensor<4x8xbf16>) {
    // CHECK-NEXT: nn.accumulate @w.exp_avg, %[[DW]] : tensor<4x8xbf16>
    %g = nn.cast %dw : tensor<4x8xbf16> to tensor<4x8xf32>
    nn.accumulate @w.exp_avg, %g : tensor<4x8xf32>
    return
  }

  // CHECK-LABEL: func @read
  func.func @read(%dw: tensor<4x8xbf16>, %x: tensor<4x8xf32>) -> (tensor<f32>, tensor<4x8xf32>, tensor<f32>, tensor<4x8xf32>) {
    // CHECK: %[[G:.*]] = nn.cast
    %g = nn.cast %dw : tensor<4x8xbf16> to tensor<4x8xf32>
    // CHECK: nn.abs_max %[[G]]
    %m = nn.abs_max %g : tensor<4x8xf32> -> tensor<f32>
    %y = nn.add %g, %x : tensor<4x8xf32>
    // A cast that rounds stays too.
    // CHECK: %[[R:.*]] = nn.cast %{{.*}} : tensor<4x8xf32> to tensor<4x8xbf16>
    %r = nn.cast %x : tensor<4x8xf32> to tensor<4x8xbf16>
    // CHECK: nn.abs_max %[[R]]
    %k = nn.abs_max %r : tensor<4x8xbf16> -> tensor<f32>
    return %m, %y, %k, %y : tensor<f32>, tensor<4x8xf32>, tensor<f32>, tensor<4x8xf32>
  }

  // Two of four rows or fewer are rounded instead of the table, where nothing
  // else reads it.
  // CHECK-LABEL: func @rows
  // CHECK-SAME: (%[[T:.*]]: tensor<4x8xf32>, %[[I:.*]]: tensor<2xi32>)
  func.func @rows(%t: tensor<4x8xf32>, %i: tensor<2xi32>) -> tensor<2x8xbf16> {
    // CHECK-NEXT: %[[R:.*]] = nn.embedding %[[I]], %[[T]] {nn.module = "tok"} : tensor<2xi32>, tensor<4x8xf32> -> tensor<2x8xf32>
    // CHECK-NEXT: %[[E:.*]] = nn.cast %[[R]] {nn.module = "tok"} : tensor<2x8xf32> to tensor<2x8xbf16>
    // CHECK-NEXT: return %[[E]]
    %b = nn.cast %t : tensor<4x8xf32> to tensor<4x8xbf16>
    %e = nn.embedding %i, %b {nn.module = "tok"} : tensor<2xi32>, tensor<4x8xbf16> -> tensor<2x8xbf16>
    return %e : tensor<2x8xbf16>
  }

  // CHECK-LABEL: func @many_rows
  func.func @many_rows(%t: tensor<4x8xf32>, %i: tensor<3xi32>) -> tensor<3x8xbf16> {
    // CHECK-NEXT: nn.cast
    // CHECK-NEXT: nn.embedding
    // CHECK-NEXT: return
    %b = nn.cast %t : tensor<4x8xf32> to tensor<4x8xbf16>
    %e = nn.embedding %i, %b : tensor<3xi32>, tensor<4x8xbf16> -> tensor<3x8xbf16>
    return %e : tensor<3x8xbf16>
  }

  // CHECK-LABEL: func @tied
  func.func @tied(%t: tensor<4x8xf32>, %i: tensor<2xi32>) -> tensor<2x4xbf16> {
    // CHECK-NEXT: nn.cast
    // CHECK-NEXT: nn.embedding
    // CHECK-NEXT: nn.linear
    %b = nn.cast %t : tensor<4x8xf32> to tensor<4x8xbf16>
    %e = nn.embedding %i, %b : tensor<2xi32>, tensor<4x8xbf16> -> tensor<2x8xbf16>
    %y = nn.linear %e, %b : tensor<2x8xbf16>, tensor<4x8xbf16> -> tensor<2x4xbf16>
    return %y : tensor<2x4xbf16>
  }
}
