// RUN: fsdp-opt %s --split-input-file --nn-fuse | FileCheck %s

// A residual and the norm after it are one kernel. The sum leaves too: the
// next residual reads it.
// CHECK-LABEL: func.func @residual_and_norm
// CHECK-NEXT: %[[F:.*]]:2 = nn.fusion(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<8xbf16>) -> (tensor<4x8xbf16>, tensor<4x8xbf16>) {
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4x8xbf16>, %[[B:.*]]: tensor<4x8xbf16>, %[[W:.*]]: tensor<8xbf16>):
// CHECK-NEXT: %[[H:.*]] = nn.add %[[A]], %[[B]]
// CHECK-NEXT: %[[Y:.*]], %{{.*}} = nn.rms_norm %[[H]], %[[W]]
// CHECK-NEXT: nn.yield %[[H]], %[[Y]]
// CHECK: return %[[F]]#0, %[[F]]#1
func.func @residual_and_norm(%x: tensor<4x8xbf16>, %r: tensor<4x8xbf16>, %w: tensor<8xbf16>) -> (tensor<4x8xbf16>, tensor<4x8xbf16>) {
  %h = nn.add %x, %r : tensor<4x8xbf16>
  %y, %rstd = nn.rms_norm %h, %w eps 1.0e-05 : tensor<4x8xbf16>, tensor<8xbf16>, tensor<4xf32>
  return %h, %y : tensor<4x8xbf16>, tensor<4x8xbf16>
}

// -----

// silu waits for its reader, past a matmul that does not need it.
// CHECK-LABEL: func.func @gate_across_a_matmul
// CHECK-NEXT: %[[U:.*]] = nn.linear
// CHECK-NEXT: %[[F:.*]] = nn.fusion(%{{.*}}, %[[U]])
// CHECK: nn.silu
// CHECK-NEXT: nn.mul
func.func @gate_across_a_matmul(%g: tensor<4x8xf32>, %x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %s = nn.silu %g : tensor<4x8xf32>
  %u = nn.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %y = nn.mul %s, %u : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// A matmul reads the sum before the last op: the kernel stays before it,
// and takes the op along, since all that it reads is there.
// CHECK-LABEL: func.func @reader_in_between
// CHECK-NEXT: %[[F:.*]]:2 = nn.fusion(%{{.*}})
// CHECK-NEXT: ^bb0
// CHECK-NEXT: nn.add
// CHECK-NEXT: nn.silu
// CHECK-NEXT: nn.yield
// CHECK-NEXT: }
// CHECK-NEXT: nn.linear %[[F]]#0
func.func @reader_in_between(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %s = nn.add %x, %x : tensor<4x8xf32>
  %u = nn.linear %s, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %y = nn.silu %s : tensor<4x8xf32>
  return %u, %y : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Here the last op reads the matmul, which reads the sum: no kernel can hold
// both.
// CHECK-LABEL: func.func @dependence_through_a_matmul
// CHECK-NOT: nn.fusion
func.func @dependence_through_a_matmul(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %s = nn.add %x, %x : tensor<4x8xf32>
  %u = nn.linear %s, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %y = nn.add %s, %u : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// A reduction would compute the exponential a second time, so it does not join
// exp; a pointwise reader does.
// CHECK-LABEL: func.func @exponential_before_a_reduction
// CHECK-NEXT: nn.fusion
// CHECK-NEXT: ^bb0
// CHECK-NEXT: nn.exp
// CHECK-NEXT: nn.add
// CHECK-NEXT: nn.yield
// CHECK-NEXT: }
// CHECK-NEXT: nn.sum
func.func @exponential_before_a_reduction(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %e = nn.exp %x : tensor<4x8xf32>
  %a = nn.add %e, %x : tensor<4x8xf32>
  %s = nn.sum %a [1] : tensor<4x8xf32> to tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

// A row statistic and what reads it per row share a kernel.
// CHECK-LABEL: func.func @row_statistic
// CHECK-NEXT: nn.fusion(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK: nn.max
// CHECK-NEXT: nn.broadcast
// CHECK-NEXT: nn.sub
func.func @row_statistic(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %m = nn.max %x [1] : tensor<4x8xf32> to tensor<4xf32>
  %b = nn.broadcast %m [0] : tensor<4xf32> to tensor<4x8xf32>
  %y = nn.sub %x, %b : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// On a square, a row statistic has as many elements as a column has: read as
// a column it is another value, which does not exist inside the kernel.
// CHECK-LABEL: func.func @row_statistic_read_as_column
// CHECK-NEXT: %[[M:.*]] = nn.max
// CHECK-NEXT: nn.fusion(%[[M]], %{{.*}})
// CHECK: nn.broadcast
// CHECK-NEXT: nn.sub
func.func @row_statistic_read_as_column(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %m = nn.max %x [1] : tensor<8x8xf32> to tensor<8xf32>
  %b = nn.broadcast %m [1] : tensor<8xf32> to tensor<8x8xf32>
  %y = nn.sub %x, %b : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// Sums over rows have another order of work and stay alone.
// CHECK-LABEL: func.func @sum_over_rows
// CHECK-NOT: nn.fusion
func.func @sum_over_rows(%x: tensor<4x8xf32>) -> tensor<8xf32> {
  %a = nn.add %x, %x : tensor<4x8xf32>
  %s = nn.sum %a [0] : tensor<4x8xf32> to tensor<8xf32>
  return %s : tensor<8xf32>
}

// -----

// Two chains that meet become one kernel; the constant comes from outside and
// costs nothing.
// CHECK-LABEL: func.func @chains_that_meet
// CHECK: nn.fusion
// CHECK-NEXT: ^bb0
// CHECK-NEXT: nn.silu
// CHECK-NEXT: nn.neg
// CHECK-NEXT: nn.mul
// CHECK-NEXT: nn.add
// CHECK-NEXT: nn.yield %{{.*}} : tensor<4x8xf32>
// CHECK-NOT: nn.fusion
func.func @chains_that_meet(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %half = nn.constant dense<0.5> : tensor<4x8xf32>
  %a = nn.silu %x : tensor<4x8xf32>
  %b = nn.neg %y : tensor<4x8xf32>
  %c = nn.mul %a, %b : tensor<4x8xf32>
  %d = nn.add %c, %half : tensor<4x8xf32>
  return %d : tensor<4x8xf32>
}

// -----

// Nothing moves across a wait: what it hides was decided before.
// CHECK-LABEL: func.func @wait_in_between
// CHECK-NOT: nn.fusion
fsdp.mesh @mesh ["dp_shard" = 2]
func.func @wait_in_between(%x: tensor<4x8xf32>, %p: tensor<2x8xf32>) -> tensor<4x8xf32> {
  %f = fsdp.async : !fsdp.future<tensor<4x8xf32>> {
    %g = fsdp.all_gather %p on @mesh["dp_shard"] dim 0 : tensor<2x8xf32> -> tensor<4x8xf32>
    fsdp.yield %g : tensor<4x8xf32>
  }
  %s = nn.silu %x : tensor<4x8xf32>
  %w = fsdp.await %f : !fsdp.future<tensor<4x8xf32>> -> tensor<4x8xf32>
  %y = nn.mul %s, %w : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// A collective in flight reads the sum: the kernel stays where it starts.
// CHECK-LABEL: func.func @read_inside_a_region
// CHECK-NEXT: %[[F:.*]] = nn.fusion
// CHECK: fsdp.async
// CHECK-NEXT: fsdp.all_gather %[[F]]
// CHECK: nn.silu %[[F]]
fsdp.mesh @mesh ["dp_shard" = 2]
func.func @read_inside_a_region(%x: tensor<2x8xf32>) -> (tensor<4x8xf32>, tensor<2x8xf32>) {
  %a = nn.neg %x : tensor<2x8xf32>
  %s = nn.add %a, %x : tensor<2x8xf32>
  %f = fsdp.async : !fsdp.future<tensor<4x8xf32>> {
    %g = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<2x8xf32> -> tensor<4x8xf32>
    fsdp.yield %g : tensor<4x8xf32>
  }
  %y = nn.silu %s : tensor<2x8xf32>
  %w = fsdp.await %f : !fsdp.future<tensor<4x8xf32>> -> tensor<4x8xf32>
  return %w, %y : tensor<4x8xf32>, tensor<2x8xf32>
}
