// RUN: fsdp-opt %s --split-input-file --nn-fuse | FileCheck %s
// RUN: fsdp-opt %s --split-input-file '--pass-pipeline=builtin.module(func.func(nn-fuse{least-row-blocks=3}))' | FileCheck %s --check-prefix=LEAST
// RUN: fsdp-opt %s --split-input-file '--pass-pipeline=builtin.module(func.func(nn-fuse{least-row-blocks=2}))' | FileCheck %s

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

// -----

// What is computed again, and all gradients of the gate, read each of gate, up
// and cotangent once: a kernel before the product that reads the first result.
// The kept values and what reads them anew are one input each.
// CHECK-LABEL: func.func @gate_computed_again
// CHECK: nn.linear_input_grad
// CHECK: %[[F:.*]]:3 = nn.fusion(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
// CHECK-NEXT: ^bb0(%[[G:.*]]: tensor<4x8xf32>, %[[U:.*]]: tensor<4x8xf32>, %[[DM:.*]]: tensor<4x8xf32>):
// CHECK-NEXT: %[[S:.*]] = nn.silu %[[G]]
// CHECK-NEXT: %[[M:.*]] = nn.mul %[[S]], %[[U]]
// CHECK-NEXT: %[[DU:.*]] = nn.mul %[[DM]], %[[S]]
// CHECK-NEXT: %[[DS:.*]] = nn.mul %[[DM]], %[[U]]
// CHECK-NEXT: %[[DG:.*]] = nn.silu_grad %[[G]], %[[DS]]
// CHECK-NEXT: nn.yield %[[M]], %[[DU]], %[[DG]]
// CHECK-NEXT: }
// CHECK-NEXT: nn.linear_weight_grad %{{.*}}, %[[F]]#0
// CHECK-NEXT: nn.linear_input_grad %[[F]]#1
// CHECK-NEXT: return
func.func @gate_computed_again(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %dy: tensor<4x2xf32>, %v: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %g = nn.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %u = nn.linear %g, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %dm = nn.linear_input_grad %dy, %v : tensor<4x2xf32>, tensor<2x8xf32> -> tensor<4x8xf32>
  %g2 = nn.recompute_from %g : tensor<4x8xf32> -> tensor<4x8xf32>
  %s = nn.silu %g2 {fsdp.origin = #fsdp.origin<"again silu">} : tensor<4x8xf32>
  %u2 = nn.recompute_from %u : tensor<4x8xf32> -> tensor<4x8xf32>
  %m = nn.mul %s, %u2 {fsdp.origin = #fsdp.origin<"again mul">} : tensor<4x8xf32>
  %dv = nn.linear_weight_grad %dy, %m : tensor<4x2xf32>, tensor<4x8xf32> -> tensor<2x8xf32>
  %ds = nn.mul %dm, %u : tensor<4x8xf32>
  %du = nn.mul %dm, %s : tensor<4x8xf32>
  %dx = nn.linear_input_grad %du, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %dg = nn.silu_grad %g, %ds : tensor<4x8xf32>
  return %dv, %dx, %dg : tensor<2x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Only the activation is computed again: the kernel of the other gradients
// joins the one that reads the cotangent, too.
// CHECK-LABEL: func.func @activation_computed_again
// CHECK: %[[F:.*]]:2 = nn.fusion(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
// CHECK: nn.silu_grad
// CHECK-NEXT: nn.yield
// CHECK-NEXT: }
// CHECK-NEXT: nn.linear_input_grad %[[F]]#0
func.func @activation_computed_again(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %g = nn.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %u = nn.linear %g, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %dm = nn.linear %u, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %ds = nn.mul %dm, %u : tensor<4x8xf32>
  %g2 = nn.recompute_from %g : tensor<4x8xf32> -> tensor<4x8xf32>
  %s = nn.silu %g2 {fsdp.origin = #fsdp.origin<"again silu">} : tensor<4x8xf32>
  %du = nn.mul %dm, %s : tensor<4x8xf32>
  %dx = nn.linear_input_grad %du, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %dg = nn.silu_grad %g, %ds : tensor<4x8xf32>
  return %dx, %dg : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Nothing is computed again: kernels are those of chains.
// CHECK-LABEL: func.func @nothing_computed_again
// CHECK: nn.mul
// CHECK-NEXT: nn.linear_input_grad
// CHECK-NEXT: nn.fusion
// CHECK-NOT: nn.fusion
func.func @nothing_computed_again(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %s: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %g = nn.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %u = nn.linear %g, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %dm = nn.linear %u, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %ds = nn.mul %dm, %u : tensor<4x8xf32>
  %du = nn.mul %dm, %s : tensor<4x8xf32>
  %dx = nn.linear_input_grad %du, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %dg = nn.silu_grad %g, %ds : tensor<4x8xf32>
  return %dx, %dg : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Earlier, the product would keep its result alive and free nothing: the last
// op uses its operand too.
// CHECK-LABEL: func.func @frees_nothing
// CHECK-NOT: nn.fusion
func.func @frees_nothing(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %a = nn.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %a2 = nn.recompute_from %a : tensor<4x8xf32> -> tensor<4x8xf32>
  %s = nn.silu %a2 {fsdp.origin = #fsdp.origin<"again silu">} : tensor<4x8xf32>
  %u = nn.linear %s, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %y = nn.mul %a, %x : tensor<4x8xf32>
  %z = nn.linear %a, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  return %u, %y, %z : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// What the later kernel reads beside does not exist yet.
// CHECK-LABEL: func.func @not_there_yet
// CHECK-NOT: nn.fusion
func.func @not_there_yet(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %a = nn.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %s = nn.silu %a {fsdp.origin = #fsdp.origin<"again silu">} : tensor<4x8xf32>
  %u = nn.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %y = nn.mul %a, %u : tensor<4x8xf32>
  return %s, %y : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// A wait stands between kernels that read the same.
// CHECK-LABEL: func.func @readers_around_a_wait
// CHECK-NOT: nn.fusion
fsdp.mesh @mesh ["dp_shard" = 2]
func.func @readers_around_a_wait(%x: tensor<4x8xf32>, %w8: tensor<8x8xf32>, %p: tensor<2x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %a = nn.linear %x, %w8 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %f = fsdp.async : !fsdp.future<tensor<4x8xf32>> {
    %g = fsdp.all_gather %p on @mesh["dp_shard"] dim 0 : tensor<2x8xf32> -> tensor<4x8xf32>
    fsdp.yield %g : tensor<4x8xf32>
  }
  %s = nn.silu %a {fsdp.origin = #fsdp.origin<"again silu">} : tensor<4x8xf32>
  %w = fsdp.await %f : !fsdp.future<tensor<4x8xf32>> -> tensor<4x8xf32>
  %y = nn.neg %a : tensor<4x8xf32>
  return %s, %y, %w : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// The gradients of a norm read the same. The gradient of its weight joins that
// of its input, so the sum of two gradients is never stored.
// CHECK-LABEL: func.func @norm_gradients
// CHECK-NEXT: %[[F:.*]]:2 = nn.fusion(%{{.*}}) : {{.*}} -> (tensor<64x8xbf16>, tensor<8xbf16>) {
// CHECK: nn.add
// CHECK-NEXT: nn.rms_norm_input_grad
// CHECK-NEXT: nn.rms_norm_weight_grad
// CHECK: return %[[F]]#0, %[[F]]#1
// LEAST-LABEL: func.func @norm_gradients
// LEAST: nn.yield
// LEAST: nn.rms_norm_weight_grad
func.func @norm_gradients(%x: tensor<64x8xbf16>, %w: tensor<8xbf16>, %r: tensor<64xf32>, %a: tensor<64x8xbf16>, %b: tensor<64x8xbf16>) -> (tensor<64x8xbf16>, tensor<8xbf16>) {
  %dy = nn.add %a, %b : tensor<64x8xbf16>
  %dx = nn.rms_norm_input_grad %x, %w, %r, %dy : tensor<64x8xbf16>, tensor<8xbf16>, tensor<64xf32>
  %dw = nn.rms_norm_weight_grad %x, %r, %dy : tensor<64x8xbf16>, tensor<64xf32> to tensor<8xbf16>
  return %dx, %dw : tensor<64x8xbf16>, tensor<8xbf16>
}

// -----

// Without a sum before them they are siblings, and the gradient of a bias is a
// third. A row op that comes later joins too.
// CHECK-LABEL: func.func @sums_of_siblings
// CHECK-NEXT: nn.fusion
// CHECK: nn.layer_norm_input_grad
// CHECK-NEXT: nn.layer_norm_weight_grad
// CHECK-NEXT: nn.sum
// CHECK-NEXT: nn.add
// CHECK-NEXT: nn.yield
func.func @sums_of_siblings(%x: tensor<2x32x8xf32>, %w: tensor<8xf32>, %m: tensor<2x32xf32>, %r: tensor<2x32xf32>, %dy: tensor<2x32x8xf32>) -> (tensor<2x32x8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %dx = nn.layer_norm_input_grad %x, %w, %m, %r, %dy : tensor<2x32x8xf32>, tensor<8xf32>, tensor<2x32xf32>
  %dw = nn.layer_norm_weight_grad %x, %m, %r, %dy : tensor<2x32x8xf32>, tensor<2x32xf32> to tensor<8xf32>
  %db = nn.sum %dy [0, 1] : tensor<2x32x8xf32> to tensor<8xf32>
  %sum = nn.add %dx, %x : tensor<2x32x8xf32>
  return %sum, %dw, %db : tensor<2x32x8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// 48 rows are no whole blocks, rows of 12 columns no whole vectors, a sum of what
// needs exp would compute that twice, and a kernel whose result is read before
// another operand of the sum exists cannot move there.
// CHECK-LABEL: func.func @no_blocks
// CHECK-NOT: nn.fusion
// CHECK: return
func.func @no_blocks(%x: tensor<48x8xf32>) -> (tensor<48x8xf32>, tensor<8xf32>) {
  %y = nn.neg %x : tensor<48x8xf32>
  %s = nn.sum %y [0] : tensor<48x8xf32> to tensor<8xf32>
  return %y, %s : tensor<48x8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @no_vectors
// CHECK-NOT: nn.fusion
// CHECK: return
func.func @no_vectors(%x: tensor<64x12xf32>) -> (tensor<64x12xf32>, tensor<12xf32>) {
  %y = nn.neg %x : tensor<64x12xf32>
  %s = nn.sum %y [0] : tensor<64x12xf32> to tensor<12xf32>
  return %y, %s : tensor<64x12xf32>, tensor<12xf32>
}

// Registers of a GPU suffice for two such sums, not for three.
// CHECK-LABEL: func.func @many_columns
// CHECK: nn.fusion
// CHECK-COUNT-2: nn.sum
// CHECK-NEXT: nn.yield
// CHECK: nn.sum
func.func @many_columns(%x: tensor<64x8192xf32>, %z: tensor<64x8192xf32>) -> (tensor<64x8192xf32>, tensor<8192xf32>, tensor<8192xf32>, tensor<8192xf32>) {
  %y = nn.add %x, %z : tensor<64x8192xf32>
  %s = nn.sum %y [0] : tensor<64x8192xf32> to tensor<8192xf32>
  %t = nn.sum %x [0] : tensor<64x8192xf32> to tensor<8192xf32>
  %u = nn.sum %z [0] : tensor<64x8192xf32> to tensor<8192xf32>
  return %y, %s, %t, %u : tensor<64x8192xf32>, tensor<8192xf32>, tensor<8192xf32>, tensor<8192xf32>
}

// CHECK-LABEL: func.func @unread
// CHECK-NOT: nn.fusion
// CHECK: return
func.func @unread(%x: tensor<64x8xf32>, %z: tensor<64x8xf32>) -> tensor<64x8xf32> {
  %y = nn.neg %x : tensor<64x8xf32>
  %s = nn.sum %y [0] : tensor<64x8xf32> to tensor<8xf32>
  return %y : tensor<64x8xf32>
}

// CHECK-LABEL: func.func @expensive
// CHECK-NOT: nn.fusion
// CHECK: return
func.func @expensive(%x: tensor<64x8xf32>) -> (tensor<64x8xf32>, tensor<8xf32>) {
  %y = nn.exp %x : tensor<64x8xf32>
  %s = nn.sum %y [0] : tensor<64x8xf32> to tensor<8xf32>
  return %y, %s : tensor<64x8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @too_late
// CHECK-NEXT: nn.neg
// CHECK-NEXT: nn.linear
// CHECK-NEXT: nn.rms_norm_weight_grad
func.func @too_late(%x: tensor<64x8xf32>, %r: tensor<64xf32>, %w: tensor<8x8xf32>) -> (tensor<64x8xf32>, tensor<8xf32>) {
  %y = nn.neg %x : tensor<64x8xf32>
  %z = nn.linear %y, %w : tensor<64x8xf32>, tensor<8x8xf32> -> tensor<64x8xf32>
  %s = nn.rms_norm_weight_grad %y, %r, %z : tensor<64x8xf32>, tensor<64xf32> to tensor<8xf32>
  return %z, %s : tensor<64x8xf32>, tensor<8xf32>
}
