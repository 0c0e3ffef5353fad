// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// What every record says by itself: 1. buffers, 2. element types, 3. shapes,
// 4. the workspace, 5. what is updated in place. Then op by op, first of all
// the shapes, from 6 on what code checks.

// -----

// every record 1: inputs
exec.program @p {
  %0 = exec.alloc : memref<4x4xf32>
  %1 = exec.alloc : memref<4x4xf32>
  // expected-error @below {{'exec.embedding' op does not take 1 inputs, but (ids, table)}}
  exec.embedding on compute (%0 : memref<4x4xf32>) outs(%1 : memref<4x4xf32>)
}

// -----

// every record 1: an optional one
exec.program @p {
  %0 = exec.alloc : memref<4x4xf32>
  %1 = exec.alloc : memref<4x4xf32>
  // expected-error @below {{does not take 1 inputs, but (lhs, rhs, bias?)}}
  exec.gemm on compute (%0 : memref<4x4xf32>) outs(%1 : memref<4x4xf32>)
}

// -----

// every record 1: inputs of several tensors. adamw has 4 per tensor and 3 more.
exec.program @p {
  %0 = exec.alloc : memref<4x4xf32>
  %1 = exec.alloc : memref<4x4xf32>
  %2 = exec.alloc : memref<4x4xf32>
  %3 = exec.alloc : memref<4x4xf32>
  // expected-error @below {{does not take 4 inputs, but (parameters..., firstMoments..., secondMoments..., gradients..., lr, step, coefficient)}}
  exec.adamw on compute (%0, %1, %2, %3 : memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>) outs(%0 : memref<4x4xf32>) {beta1 = 0.9 : f64, beta2 = 0.95 : f64, eps = 1.0e-8 : f64, weight_decay = 0.1 : f64}
}

// -----

// every record 1: at least one tensor
exec.program @p {
  %0 = exec.alloc : memref<f32>
  // expected-error @below {{does not take 0 inputs, but (in...)}}
  exec.abs_max on compute () outs(%0 : memref<f32>)
}

// -----

// every record 1: outputs
exec.program @p {

  // expected-error @below {{does not have 0 outputs, but (out)}}
  exec.fill_zero on compute () outs()
}

// -----

// every record 1: outputs of several tensors
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<4xf32>
  %2 = exec.alloc : memref<4xf32>
  %3 = exec.alloc : memref<4xf32>
  %4 = exec.alloc : memref<4xf32>
  %5 = exec.alloc : memref<4xf32>
  %6 = exec.alloc : memref<4xf32>
  %7 = exec.alloc : memref<4xf32>
  %8 = exec.alloc : memref<f32>
  %9 = exec.alloc : memref<i32>
  %10 = exec.alloc : memref<f32>
  // expected-error @below {{does not have 3 outputs, but (parameters..., firstMoments..., secondMoments...)}}
  exec.adamw on compute (%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10 : memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<i32>, memref<f32>) outs(%0, %2, %4 : memref<4xf32>, memref<4xf32>, memref<4xf32>) {beta1 = 0.9 : f64, beta2 = 0.95 : f64, eps = 1.0e-8 : f64, weight_decay = 0.1 : f64}
}

// -----

// every record 2: a type of its own
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<16x8xf32>
  %2 = exec.alloc : memref<4x8xf32>
  // expected-error @below {{needs 'ids' of i32, got 'memref<4xf32>'}}
  exec.embedding on compute (%0, %1 : memref<4xf32>, memref<16x8xf32>) outs(%2 : memref<4x8xf32>)
}

// -----

// every record 2: of the float types
exec.program @p {
  %0 = exec.alloc : memref<2x4x6x8xf64>
  %1 = exec.alloc : memref<2x5x3x8xf64>
  %2 = exec.alloc : memref<2x5x3x8xf64>
  %3 = exec.alloc : memref<2x4x6x8xf64>
  %4 = exec.alloc : memref<2x6x4xf32>
  // expected-error @below {{needs 'q' of f32 or bf16, got 'memref<2x4x6x8xf64>'}}
  exec.attention on compute (%0, %1, %2 : memref<2x4x6x8xf64>, memref<2x5x3x8xf64>, memref<2x5x3x8xf64>) outs(%3, %4 : memref<2x4x6x8xf64>, memref<2x6x4xf32>) {causal, scale = 1.25e-01 : f64}
}

// -----

// every record 2: one type for several buffers
exec.program @p {
  %0 = exec.alloc : memref<4xi32>
  %1 = exec.alloc : memref<16x8xbf16>
  %2 = exec.alloc : memref<4x8xf32>
  // expected-error @below {{needs 'out' of the element type of 'table', got 'memref<4x8xf32>'}}
  exec.embedding on compute (%0, %1 : memref<4xi32>, memref<16x8xbf16>) outs(%2 : memref<4x8xf32>)
}

// -----

// every record 2: any type, but one
exec.program @p {
  %0 = exec.alloc : memref<4x8xf32>
  %1 = exec.alloc : memref<8x4xi32>
  // expected-error @below {{needs 'out' of the element type of 'in', got 'memref<8x4xi32>'}}
  exec.transpose on compute (%0 : memref<4x8xf32>) outs(%1 : memref<8x4xi32>) {permutation = array<i64: 1, 0>}
}

// -----

// every record 3: the number of dimensions
exec.program @p {
  %0 = exec.alloc : memref<2x4x6x8xf32>
  %1 = exec.alloc : memref<2x15x8xf32>
  %2 = exec.alloc : memref<2x5x3x8xf32>
  %3 = exec.alloc : memref<2x4x6x8xf32>
  %4 = exec.alloc : memref<2x6x4xf32>
  // expected-error @below {{needs 'k' of shape [batch, kvLen, kvHeads, headDim], got 'memref<2x15x8xf32>'}}
  exec.attention on compute (%0, %1, %2 : memref<2x4x6x8xf32>, memref<2x15x8xf32>, memref<2x5x3x8xf32>) outs(%3, %4 : memref<2x4x6x8xf32>, memref<2x6x4xf32>) {causal, scale = 1.25e-01 : f64}
}

// -----

// every record 3: a dimension of two buffers
exec.program @p {
  %0 = exec.alloc : memref<2x4x6x8xf32>
  %1 = exec.alloc : memref<2x5x3x7xf32>
  %2 = exec.alloc : memref<2x5x3x7xf32>
  %3 = exec.alloc : memref<2x4x6x8xf32>
  %4 = exec.alloc : memref<2x6x4xf32>
  // expected-error @below {{needs 'k' of shape [batch, kvLen, kvHeads, headDim], got 'memref<2x5x3x7xf32>': headDim is 8 by 'q' ('memref<2x4x6x8xf32>')}}
  exec.attention on compute (%0, %1, %2 : memref<2x4x6x8xf32>, memref<2x5x3x7xf32>, memref<2x5x3x7xf32>) outs(%3, %4 : memref<2x4x6x8xf32>, memref<2x6x4xf32>) {causal, scale = 1.25e-01 : f64}
}

// -----

// every record 3: a group of dimensions
exec.program @p {
  %0 = exec.alloc : memref<2x4x16xf32>
  %1 = exec.alloc : memref<8xi32>
  %2 = exec.alloc : memref<2x4xf32>
  %3 = exec.alloc : memref<2x4xf32>
  // expected-error @below {{needs 'targets' of shape [rows...], got 'memref<8xi32>': rows is 2 x 4 by 'logits' ('memref<2x4x16xf32>')}}
  exec.cross_entropy on compute (%0, %1 : memref<2x4x16xf32>, memref<8xi32>) outs(%2, %3 : memref<2x4xf32>, memref<2x4xf32>) {ignore_index = -100 : i64}
}

// -----

// every record 4: none
exec.program @p {
  %0 = exec.alloc : memref<4x4xf32>
  %1 = exec.alloc : memref<64xi8>
  // expected-error @below {{takes no workspace}}
  exec.fill_zero on compute () outs(%0 : memref<4x4xf32>) workspace(%1 : memref<64xi8>)
}

// -----

// every record 4: one
exec.program @p {
  %0 = exec.alloc : memref<4x4xf32>
  %1 = exec.alloc : memref<4x4xf32>
  %2 = exec.alloc : memref<4x4xf32>
  %3 = exec.alloc : memref<64xi8>
  %4 = exec.alloc : memref<64xi8>
  // expected-error @below {{takes at most one workspace}}
  exec.gemm on compute (%0, %1 : memref<4x4xf32>, memref<4x4xf32>) outs(%2 : memref<4x4xf32>) workspace(%3, %4 : memref<64xi8>, memref<64xi8>)
}

// -----

// every record 4: bytes
exec.program @p {
  %0 = exec.alloc : memref<4x4xf32>
  %1 = exec.alloc : memref<4x4xf32>
  %2 = exec.alloc : memref<4x4xf32>
  %3 = exec.alloc : memref<4x4xf32>
  // expected-error @below {{needs a workspace of bytes, 'memref<…xi8>', got 'memref<4x4xf32>'}}
  exec.gemm on compute (%0, %1 : memref<4x4xf32>, memref<4x4xf32>) outs(%2 : memref<4x4xf32>) workspace(%3 : memref<4x4xf32>)
}

// -----

// every record 5
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<4xf32>
  %2 = exec.alloc : memref<4xf32>
  %3 = exec.alloc : memref<4xf32>
  %4 = exec.alloc : memref<f32>
  %5 = exec.alloc : memref<i32>
  %6 = exec.alloc : memref<f32>
  // expected-error @below {{updates in place: output 1 must be input 1}}
  exec.adamw on compute (%0, %1, %2, %3, %4, %5, %6 : memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<i32>, memref<f32>) outs(%0, %2, %1 : memref<4xf32>, memref<4xf32>, memref<4xf32>) {beta1 = 0.9 : f64, beta2 = 0.95 : f64, eps = 1.0e-8 : f64, weight_decay = 0.1 : f64}
}

// -----

// every record 5: another buffer
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<4xf32>
  %2 = exec.alloc : memref<4xf32>
  %3 = exec.alloc : memref<4xf32>
  %4 = exec.alloc : memref<f32>
  %5 = exec.alloc : memref<i32>
  %6 = exec.alloc : memref<f32>
  %7 = exec.alloc : memref<4xf32>
  // expected-error @below {{updates in place: output 0 must be input 0}}
  exec.adamw on compute (%0, %1, %2, %3, %4, %5, %6 : memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<i32>, memref<f32>) outs(%7, %1, %2 : memref<4xf32>, memref<4xf32>, memref<4xf32>) {beta1 = 0.9 : f64, beta2 = 0.95 : f64, eps = 1.0e-8 : f64, weight_decay = 0.1 : f64}
}

// -----

// gemm 7
exec.program @p {
  %a = exec.alloc : memref<4x4xf32>
  %b = exec.alloc : memref<3xf32>
  // expected-error @below {{needs a bias of shape [4], got 'memref<3xf32>'}}
  exec.gemm on compute (%a, %a, %b : memref<4x4xf32>, memref<4x4xf32>, memref<3xf32>) outs(%a : memref<4x4xf32>)
}

// -----

// gemm 6: ranks
exec.program @p {
  %a = exec.alloc : memref<4x4xf32>
  %b = exec.alloc : memref<1x4x4xf32>
  // expected-error @below {{needs operands of equal rank, at least 2}}
  exec.gemm on compute (%a, %b : memref<4x4xf32>, memref<1x4x4xf32>) outs(%a : memref<4x4xf32>)
}

// -----

// gemm 6: shapes. The right side is not transposed, so 4 columns meet 8 rows.
exec.program @p {
  %a = exec.alloc : memref<2x4xf32>
  %b = exec.alloc : memref<8x4xf32>
  %c = exec.alloc : memref<2x8xf32>
  // expected-error @below {{has shapes that do not agree: 'memref<2x4xf32>' times 'memref<8x4xf32>' gives 'memref<2x8xf32>'}}
  exec.gemm on compute (%a, %b : memref<2x4xf32>, memref<8x4xf32>) outs(%c : memref<2x8xf32>)
}

// -----

// gemm_add 6
exec.program @p {
  %a = exec.alloc : memref<2x4xf32>
  %b = exec.alloc : memref<8x4xf32>
  %c = exec.alloc : memref<2x8xf32>
  // expected-error @below {{has shapes that do not agree: 'memref<2x4xf32>' times 'memref<8x4xf32>' gives 'memref<2x8xf32>'}}
  exec.gemm_add on compute (%a, %b, %c : memref<2x4xf32>, memref<8x4xf32>, memref<2x8xf32>) outs(%c : memref<2x8xf32>)
}

// -----

// gemm_add 2: a sum in bf16
exec.program @p {
  %a = exec.alloc : memref<4x4xbf16>
  %b = exec.alloc : memref<4x4xbf16>
  %c = exec.alloc : memref<4x4xbf16>
  // expected-error @below {{needs 'sum' of f32, got 'memref<4x4xbf16>'}}
  exec.gemm_add on compute (%a, %b, %c : memref<4x4xbf16>, memref<4x4xbf16>, memref<4x4xbf16>) outs(%c : memref<4x4xbf16>)
}

// -----

// gemm_add 5: the sum is the result
exec.program @p {
  %a = exec.alloc : memref<4x4xf32>
  %b = exec.alloc : memref<4x4xf32>
  %c = exec.alloc : memref<4x4xf32>
  %d = exec.alloc : memref<4x4xf32>
  // expected-error @below {{updates in place: output 0 must be input 2}}
  exec.gemm_add on compute (%a, %b, %c : memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>) outs(%d : memref<4x4xf32>)
}

// -----

// gemm 2: bf16 weights and f32 activations
exec.program @p {
  %0 = exec.alloc : memref<4x4xf32>
  %1 = exec.alloc : memref<4x4xbf16>
  %2 = exec.alloc : memref<4x4xf32>
  // expected-error @below {{needs 'rhs' of the element type of 'lhs', got 'memref<4x4xbf16>'}}
  exec.gemm on compute (%0, %1 : memref<4x4xf32>, memref<4x4xbf16>) outs(%2 : memref<4x4xf32>)
}

// -----

// gemm 2: a result in integers
exec.program @p {
  %0 = exec.alloc : memref<4x4xf32>
  %1 = exec.alloc : memref<4x4xf32>
  %2 = exec.alloc : memref<4x4xi32>
  // expected-error @below {{needs 'out' of f32 or bf16, got 'memref<4x4xi32>'}}
  exec.gemm on compute (%0, %1 : memref<4x4xf32>, memref<4x4xf32>) outs(%2 : memref<4x4xi32>)
}

// -----

// gemm 1: two results
exec.program @p {
  %0 = exec.alloc : memref<4x4xf32>
  %1 = exec.alloc : memref<4x4xf32>
  %2 = exec.alloc : memref<4x4xf32>
  %3 = exec.alloc : memref<4x4xf32>
  // expected-error @below {{does not have 2 outputs, but (out)}}
  exec.gemm on compute (%0, %1 : memref<4x4xf32>, memref<4x4xf32>) outs(%2, %3 : memref<4x4xf32>, memref<4x4xf32>)
}

// -----

// attention 3: keys and values of two lengths
exec.program @p {
  %0 = exec.alloc : memref<2x4x6x8xf32>
  %1 = exec.alloc : memref<2x5x3x8xf32>
  %2 = exec.alloc : memref<2x4x3x8xf32>
  %3 = exec.alloc : memref<2x4x6x8xf32>
  %4 = exec.alloc : memref<2x6x4xf32>
  // expected-error @below {{needs 'v' of shape [batch, kvLen, kvHeads, headDim], got 'memref<2x4x3x8xf32>': kvLen is 5 by 'k'}}
  exec.attention on compute (%0, %1, %2 : memref<2x4x6x8xf32>, memref<2x5x3x8xf32>, memref<2x4x3x8xf32>) outs(%3, %4 : memref<2x4x6x8xf32>, memref<2x6x4xf32>) {causal, scale = 1.25e-01 : f64}
}

// -----

// attention 3: the statistics of another order
exec.program @p {
  %0 = exec.alloc : memref<2x4x6x8xf32>
  %1 = exec.alloc : memref<2x5x3x8xf32>
  %2 = exec.alloc : memref<2x5x3x8xf32>
  %3 = exec.alloc : memref<2x4x6x8xf32>
  %4 = exec.alloc : memref<2x4x6xf32>
  // expected-error @below {{needs 'lse' of shape [batch, heads, qLen], got 'memref<2x4x6xf32>': heads is 6 by 'q'}}
  exec.attention on compute (%0, %1, %2 : memref<2x4x6x8xf32>, memref<2x5x3x8xf32>, memref<2x5x3x8xf32>) outs(%3, %4 : memref<2x4x6x8xf32>, memref<2x4x6xf32>) {causal, scale = 1.25e-01 : f64}
}

// -----

// attention 2: the statistics
exec.program @p {
  %0 = exec.alloc : memref<2x4x6x8xf32>
  %1 = exec.alloc : memref<2x5x3x8xf32>
  %2 = exec.alloc : memref<2x5x3x8xf32>
  %3 = exec.alloc : memref<2x4x6x8xf32>
  %4 = exec.alloc : memref<2x6x4xbf16>
  // expected-error @below {{needs 'lse' of f32, got 'memref<2x6x4xbf16>'}}
  exec.attention on compute (%0, %1, %2 : memref<2x4x6x8xf32>, memref<2x5x3x8xf32>, memref<2x5x3x8xf32>) outs(%3, %4 : memref<2x4x6x8xf32>, memref<2x6x4xbf16>) {causal, scale = 1.25e-01 : f64}
}

// -----

// attention 6
exec.program @p {
  %0 = exec.alloc : memref<2x4x6x8xf32>
  %1 = exec.alloc : memref<2x5x4x8xf32>
  %2 = exec.alloc : memref<2x5x4x8xf32>
  %3 = exec.alloc : memref<2x4x6x8xf32>
  %4 = exec.alloc : memref<2x6x4xf32>
  // expected-error @below {{has 6 heads, which 4 key heads do not divide}}
  exec.attention on compute (%0, %1, %2 : memref<2x4x6x8xf32>, memref<2x5x4x8xf32>, memref<2x5x4x8xf32>) outs(%3, %4 : memref<2x4x6x8xf32>, memref<2x6x4xf32>) {causal, scale = 1.25e-01 : f64}
}

// -----

// attention 7: causal
exec.program @p {
  %0 = exec.alloc : memref<2x5x6x8xf32>
  %1 = exec.alloc : memref<2x5x3x8xf32>
  %2 = exec.alloc : memref<2x5x3x8xf32>
  %3 = exec.alloc : memref<2x5x6x8xf32>
  %4 = exec.alloc : memref<2x6x5xf32>
  // expected-error @below {{has a window, which needs 'causal'}}
  exec.attention on compute (%0, %1, %2 : memref<2x5x6x8xf32>, memref<2x5x3x8xf32>, memref<2x5x3x8xf32>) outs(%3, %4 : memref<2x5x6x8xf32>, memref<2x6x5xf32>) {scale = 1.25e-01 : f64, window = 4 : i64}
}

// -----

// attention 7: lengths
exec.program @p {
  %0 = exec.alloc : memref<2x4x6x8xf32>
  %1 = exec.alloc : memref<2x5x3x8xf32>
  %2 = exec.alloc : memref<2x5x3x8xf32>
  %3 = exec.alloc : memref<2x4x6x8xf32>
  %4 = exec.alloc : memref<2x6x4xf32>
  // expected-error @below {{has a window over 4 queries and 5 keys, which differ}}
  exec.attention on compute (%0, %1, %2 : memref<2x4x6x8xf32>, memref<2x5x3x8xf32>, memref<2x5x3x8xf32>) outs(%3, %4 : memref<2x4x6x8xf32>, memref<2x6x4xf32>) {causal, scale = 1.25e-01 : f64, window = 4 : i64}
}

// -----

// attention 7: a key
exec.program @p {
  %0 = exec.alloc : memref<2x5x6x8xf32>
  %1 = exec.alloc : memref<2x5x3x8xf32>
  %2 = exec.alloc : memref<2x5x3x8xf32>
  %3 = exec.alloc : memref<2x5x6x8xf32>
  %4 = exec.alloc : memref<2x6x5xf32>
  // expected-error @below {{has a window of 0 keys; it needs 1 or more}}
  exec.attention on compute (%0, %1, %2 : memref<2x5x6x8xf32>, memref<2x5x3x8xf32>, memref<2x5x3x8xf32>) outs(%3, %4 : memref<2x5x6x8xf32>, memref<2x6x5xf32>) {causal, scale = 1.25e-01 : f64, window = 0 : i64}
}

// -----

// attention 8
exec.program @p {
  %0 = exec.alloc : memref<2x5x6x8xf32>
  %1 = exec.alloc : memref<2x5x3x8xf32>
  %2 = exec.alloc : memref<2x5x3x8xf32>
  %3 = exec.alloc : memref<2x5x6x8xf32>
  %4 = exec.alloc : memref<2x6x5xf32>
  // expected-error @below {{has a cap that is not positive and finite}}
  exec.attention on compute (%0, %1, %2 : memref<2x5x6x8xf32>, memref<2x5x3x8xf32>, memref<2x5x3x8xf32>) outs(%3, %4 : memref<2x5x6x8xf32>, memref<2x6x5xf32>) {cap = 0.0 : f64, scale = 1.25e-01 : f64}
}

// -----

// attention_grad 7
exec.program @p {
  %0 = exec.alloc : memref<2x5x6x8xf32>
  %1 = exec.alloc : memref<2x5x3x8xf32>
  %2 = exec.alloc : memref<2x5x3x8xf32>
  %3 = exec.alloc : memref<2x5x6x8xf32>
  %4 = exec.alloc : memref<2x6x5xf32>
  %5 = exec.alloc : memref<2x5x6x8xf32>
  %6 = exec.alloc : memref<2x5x6x8xf32>
  %7 = exec.alloc : memref<2x5x3x8xf32>
  %8 = exec.alloc : memref<2x5x3x8xf32>
  // expected-error @below {{has a window, which needs 'causal'}}
  exec.attention_grad on compute (%0, %1, %2, %3, %4, %5 : memref<2x5x6x8xf32>, memref<2x5x3x8xf32>, memref<2x5x3x8xf32>, memref<2x5x6x8xf32>, memref<2x6x5xf32>, memref<2x5x6x8xf32>) outs(%6, %7, %8 : memref<2x5x6x8xf32>, memref<2x5x3x8xf32>, memref<2x5x3x8xf32>) {scale = 1.25e-01 : f64, window = 4 : i64}
}

// -----

// attention_grad 8
exec.program @p {
  %0 = exec.alloc : memref<2x5x6x8xf32>
  %1 = exec.alloc : memref<2x5x3x8xf32>
  %2 = exec.alloc : memref<2x5x3x8xf32>
  %3 = exec.alloc : memref<2x5x6x8xf32>
  %4 = exec.alloc : memref<2x6x5xf32>
  %5 = exec.alloc : memref<2x5x6x8xf32>
  %6 = exec.alloc : memref<2x5x6x8xf32>
  %7 = exec.alloc : memref<2x5x3x8xf32>
  %8 = exec.alloc : memref<2x5x3x8xf32>
  // expected-error @below {{has a cap that is not positive and finite}}
  exec.attention_grad on compute (%0, %1, %2, %3, %4, %5 : memref<2x5x6x8xf32>, memref<2x5x3x8xf32>, memref<2x5x3x8xf32>, memref<2x5x6x8xf32>, memref<2x6x5xf32>, memref<2x5x6x8xf32>) outs(%6, %7, %8 : memref<2x5x6x8xf32>, memref<2x5x3x8xf32>, memref<2x5x3x8xf32>) {cap = 0x7FF0000000000000 : f64, scale = 1.25e-01 : f64}
}

// -----

// attention_grad 3: the cotangent
exec.program @p {
  %0 = exec.alloc : memref<2x4x6x8xf32>
  %1 = exec.alloc : memref<2x5x3x8xf32>
  %2 = exec.alloc : memref<2x5x3x8xf32>
  %3 = exec.alloc : memref<2x4x6x8xf32>
  %4 = exec.alloc : memref<2x6x4xf32>
  %5 = exec.alloc : memref<2x4x3x8xf32>
  %6 = exec.alloc : memref<2x4x6x8xf32>
  %7 = exec.alloc : memref<2x5x3x8xf32>
  %8 = exec.alloc : memref<2x5x3x8xf32>
  // expected-error @below {{needs 'dout' of shape [batch, qLen, heads, headDim], got 'memref<2x4x3x8xf32>': heads is 6 by 'q'}}
  exec.attention_grad on compute (%0, %1, %2, %3, %4, %5 : memref<2x4x6x8xf32>, memref<2x5x3x8xf32>, memref<2x5x3x8xf32>, memref<2x4x6x8xf32>, memref<2x6x4xf32>, memref<2x4x3x8xf32>) outs(%6, %7, %8 : memref<2x4x6x8xf32>, memref<2x5x3x8xf32>, memref<2x5x3x8xf32>) {causal, scale = 1.25e-01 : f64}
}

// -----

// attention_grad 3: a gradient of another key
exec.program @p {
  %0 = exec.alloc : memref<2x4x6x8xf32>
  %1 = exec.alloc : memref<2x5x3x8xf32>
  %2 = exec.alloc : memref<2x5x3x8xf32>
  %3 = exec.alloc : memref<2x4x6x8xf32>
  %4 = exec.alloc : memref<2x6x4xf32>
  %5 = exec.alloc : memref<2x4x6x8xf32>
  %6 = exec.alloc : memref<2x4x6x8xf32>
  %7 = exec.alloc : memref<2x4x6x8xf32>
  %8 = exec.alloc : memref<2x5x3x8xf32>
  // expected-error @below {{needs 'dk' of shape [batch, kvLen, kvHeads, headDim], got 'memref<2x4x6x8xf32>'}}
  exec.attention_grad on compute (%0, %1, %2, %3, %4, %5 : memref<2x4x6x8xf32>, memref<2x5x3x8xf32>, memref<2x5x3x8xf32>, memref<2x4x6x8xf32>, memref<2x6x4xf32>, memref<2x4x6x8xf32>) outs(%6, %7, %8 : memref<2x4x6x8xf32>, memref<2x4x6x8xf32>, memref<2x5x3x8xf32>) {causal, scale = 1.25e-01 : f64}
}

// -----

// attention_grad 6
exec.program @p {
  %0 = exec.alloc : memref<2x4x6x8xf32>
  %1 = exec.alloc : memref<2x5x4x8xf32>
  %2 = exec.alloc : memref<2x5x4x8xf32>
  %3 = exec.alloc : memref<2x4x6x8xf32>
  %4 = exec.alloc : memref<2x6x4xf32>
  %5 = exec.alloc : memref<2x4x6x8xf32>
  %6 = exec.alloc : memref<2x4x6x8xf32>
  %7 = exec.alloc : memref<2x5x4x8xf32>
  %8 = exec.alloc : memref<2x5x4x8xf32>
  // expected-error @below {{has 6 heads, which 4 key heads do not divide}}
  exec.attention_grad on compute (%0, %1, %2, %3, %4, %5 : memref<2x4x6x8xf32>, memref<2x5x4x8xf32>, memref<2x5x4x8xf32>, memref<2x4x6x8xf32>, memref<2x6x4xf32>, memref<2x4x6x8xf32>) outs(%6, %7, %8 : memref<2x4x6x8xf32>, memref<2x5x4x8xf32>, memref<2x5x4x8xf32>) {causal, scale = 1.25e-01 : f64}
}

// -----

// rotary 3: fewer positions than the sequence has
exec.program @p {
  %0 = exec.alloc : memref<2x4x6x8xf32>
  %1 = exec.alloc : memref<3x4x2xf32>
  %2 = exec.alloc : memref<2x4x6x8xf32>
  // expected-error @below {{needs 'table' of shape [>=sequence, headDim/2, 2], got 'memref<3x4x2xf32>': sequence is 4 by 'x' ('memref<2x4x6x8xf32>')}}
  exec.rotary on compute (%0, %1 : memref<2x4x6x8xf32>, memref<3x4x2xf32>) outs(%2 : memref<2x4x6x8xf32>) pairs halves
}

// -----

// rotary 3: other pairs
exec.program @p {
  %0 = exec.alloc : memref<2x4x6x8xf32>
  %1 = exec.alloc : memref<4x8x2xf32>
  %2 = exec.alloc : memref<2x4x6x8xf32>
  // expected-error @below {{needs 'table' of shape [>=sequence, headDim/2, 2], got 'memref<4x8x2xf32>': headDim is 8 by 'x'}}
  exec.rotary on compute (%0, %1 : memref<2x4x6x8xf32>, memref<4x8x2xf32>) outs(%2 : memref<2x4x6x8xf32>) pairs halves
}

// -----

// rotary 3: cosine and sine
exec.program @p {
  %0 = exec.alloc : memref<2x4x6x8xf32>
  %1 = exec.alloc : memref<4x4x3xf32>
  %2 = exec.alloc : memref<2x4x6x8xf32>
  // expected-error @below {{needs 'table' of shape [>=sequence, headDim/2, 2], got 'memref<4x4x3xf32>'}}
  exec.rotary on compute (%0, %1 : memref<2x4x6x8xf32>, memref<4x4x3xf32>) outs(%2 : memref<2x4x6x8xf32>) pairs halves
}

// -----

// rotary 3: heads of odd size have no pairs
exec.program @p {
  %0 = exec.alloc : memref<2x4x6x7xf32>
  %1 = exec.alloc : memref<4x3x2xf32>
  %2 = exec.alloc : memref<2x4x6x7xf32>
  // expected-error @below {{headDim is 7 by 'x'}}
  exec.rotary on compute (%0, %1 : memref<2x4x6x7xf32>, memref<4x3x2xf32>) outs(%2 : memref<2x4x6x7xf32>) pairs halves
}

// -----

// split_heads 6: the heads add up
exec.program @p {
  %0 = exec.alloc : memref<2x4x9x8xf32>
  %1 = exec.alloc : memref<4x4x2xf32>
  %2 = exec.alloc : memref<2x4x4x8xf32>
  %3 = exec.alloc : memref<2x4x2x8xf32>
  %4 = exec.alloc : memref<2x4x2x8xf32>
  // expected-error @below {{has 9 heads, but its parts have 8}}
  exec.split_heads on compute (%0, %1 : memref<2x4x9x8xf32>, memref<4x4x2xf32>) outs(%2, %3, %4 : memref<2x4x4x8xf32>, memref<2x4x2x8xf32>, memref<2x4x2x8xf32>) pairs halves
}

// -----

// split_heads 3: as many values as keys
exec.program @p {
  %0 = exec.alloc : memref<2x4x8x8xf32>
  %1 = exec.alloc : memref<4x4x2xf32>
  %2 = exec.alloc : memref<2x4x4x8xf32>
  %3 = exec.alloc : memref<2x4x2x8xf32>
  %4 = exec.alloc : memref<2x4x1x8xf32>
  // expected-error @below {{needs 'v' of shape [batch, sequence, kvHeads, headDim], got 'memref<2x4x1x8xf32>': kvHeads is 2 by 'k'}}
  exec.split_heads on compute (%0, %1 : memref<2x4x8x8xf32>, memref<4x4x2xf32>) outs(%2, %3, %4 : memref<2x4x4x8xf32>, memref<2x4x2x8xf32>, memref<2x4x1x8xf32>) pairs halves
}

// -----

// join_heads 6: the heads add up
exec.program @p {
  %0 = exec.alloc : memref<2x4x4x8xf32>
  %1 = exec.alloc : memref<2x4x2x8xf32>
  %2 = exec.alloc : memref<2x4x2x8xf32>
  %3 = exec.alloc : memref<4x4x2xf32>
  %4 = exec.alloc : memref<2x4x7x8xf32>
  // expected-error @below {{has 7 heads, but its parts have 8}}
  exec.join_heads on compute (%0, %1, %2, %3 : memref<2x4x4x8xf32>, memref<2x4x2x8xf32>, memref<2x4x2x8xf32>, memref<4x4x2xf32>) outs(%4 : memref<2x4x7x8xf32>) pairs halves
}

// -----

// embedding 3: columns
exec.program @p {
  %0 = exec.alloc : memref<4xi32>
  %1 = exec.alloc : memref<16x8xf32>
  %2 = exec.alloc : memref<4x7xf32>
  // expected-error @below {{needs 'out' of shape [rows..., cols], got 'memref<4x7xf32>': cols is 8 by 'table'}}
  exec.embedding on compute (%0, %1 : memref<4xi32>, memref<16x8xf32>) outs(%2 : memref<4x7xf32>)
}

// -----

// embedding_grad 3: rows
exec.program @p {
  %0 = exec.alloc : memref<4xi32>
  %1 = exec.alloc : memref<5x8xf32>
  %2 = exec.alloc : memref<16x8xf32>
  // expected-error @below {{needs 'dy' of shape [rows..., cols], got 'memref<5x8xf32>': rows is 4 by 'ids'}}
  exec.embedding_grad on compute (%0, %1 : memref<4xi32>, memref<5x8xf32>) outs(%2 : memref<16x8xf32>)
}

// -----

// embedding_grad 3: columns
exec.program @p {
  %0 = exec.alloc : memref<4xi32>
  %1 = exec.alloc : memref<4x8xf32>
  %2 = exec.alloc : memref<16x9xf32>
  // expected-error @below {{needs 'out' of shape [classes, cols], got 'memref<16x9xf32>': cols is 8 by 'dy'}}
  exec.embedding_grad on compute (%0, %1 : memref<4xi32>, memref<4x8xf32>) outs(%2 : memref<16x9xf32>)
}

// -----

// cross_entropy 3: losses
exec.program @p {
  %0 = exec.alloc : memref<4x16xf32>
  %1 = exec.alloc : memref<4xi32>
  %2 = exec.alloc : memref<5xf32>
  %3 = exec.alloc : memref<4xf32>
  // expected-error @below {{needs 'losses' of shape [rows...], got 'memref<5xf32>': rows is 4 by 'logits'}}
  exec.cross_entropy on compute (%0, %1 : memref<4x16xf32>, memref<4xi32>) outs(%2, %3 : memref<5xf32>, memref<4xf32>) {ignore_index = -100 : i64}
}

// -----

// cross_entropy_grad 3: the gradient
exec.program @p {
  %0 = exec.alloc : memref<4x16xf32>
  %1 = exec.alloc : memref<4xi32>
  %2 = exec.alloc : memref<4xf32>
  %3 = exec.alloc : memref<4xf32>
  %4 = exec.alloc : memref<4x15xf32>
  // expected-error @below {{needs 'out' of shape [rows..., classes], got 'memref<4x15xf32>': classes is 16 by 'logits'}}
  exec.cross_entropy_grad on compute (%0, %1, %2, %3 : memref<4x16xf32>, memref<4xi32>, memref<4xf32>, memref<4xf32>) outs(%4 : memref<4x15xf32>) {ignore_index = -100 : i64}
}

// -----

// count_labels 2
exec.program @p {
  %0 = exec.alloc : memref<4xi32>
  %1 = exec.alloc : memref<i32>
  // expected-error @below {{needs 'counts' of i64, got 'memref<i32>'}}
  exec.count_labels on compute (%0 : memref<4xi32>) outs(%1 : memref<i32>) {ignore_index = -100 : i64}
}

// -----

// count_labels 6
exec.program @p {
  %0 = exec.alloc : memref<4xi32>
  %1 = exec.alloc : memref<3xi64>
  // expected-error @below {{cannot split 'memref<4xi32>' into 3 equal parts}}
  exec.count_labels on compute (%0 : memref<4xi32>) outs(%1 : memref<3xi64>) {ignore_index = -100 : i64}
}

// -----

// copy 1
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<4xf32>
  %2 = exec.alloc : memref<4xf32>
  // expected-error @below {{does not take 2 inputs, but (from)}}
  exec.copy on compute (%0, %1 : memref<4xf32>, memref<4xf32>) outs(%2 : memref<4xf32>)
}

// -----

// copy 3
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<8xf32>
  // expected-error @below {{needs 'to' of shape [elements...], got 'memref<8xf32>': elements is 4 by 'from'}}
  exec.copy on compute (%0 : memref<4xf32>) outs(%1 : memref<8xf32>)
}

// -----

// copy 2
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<4xbf16>
  // expected-error @below {{needs 'to' of the element type of 'from', got 'memref<4xbf16>'}}
  exec.copy on compute (%0 : memref<4xf32>) outs(%1 : memref<4xbf16>)
}

// -----

// transpose 6: a dimension twice
exec.program @p {
  %0 = exec.alloc : memref<4x8xf32>
  %1 = exec.alloc : memref<8x4xf32>
  // expected-error @below {{needs a permutation of the 2 dimensions of 'memref<4x8xf32>', got [0, 0]}}
  exec.transpose on compute (%0 : memref<4x8xf32>) outs(%1 : memref<8x4xf32>) {permutation = array<i64: 0, 0>}
}

// -----

// transpose 6: too few
exec.program @p {
  %0 = exec.alloc : memref<4x8xf32>
  %1 = exec.alloc : memref<8x4xf32>
  // expected-error @below {{needs a permutation of the 2 dimensions of 'memref<4x8xf32>', got [0]}}
  exec.transpose on compute (%0 : memref<4x8xf32>) outs(%1 : memref<8x4xf32>) {permutation = array<i64: 0>}
}

// -----

// transpose 7
exec.program @p {
  %0 = exec.alloc : memref<4x8xf32>
  %1 = exec.alloc : memref<4x8xf32>
  // expected-error @below {{must produce 'memref<8x4xf32>' from 'memref<4x8xf32>', not 'memref<4x8xf32>'}}
  exec.transpose on compute (%0 : memref<4x8xf32>) outs(%1 : memref<4x8xf32>) {permutation = array<i64: 1, 0>}
}

// -----

// copy_box 6: beyond the output
exec.program @p {
  %0 = exec.alloc : memref<4x4xf32>
  %1 = exec.alloc : memref<8x4xf32>
  // expected-error @below {{the box is not inside 'memref<4x4xf32>' and 'memref<8x4xf32>'}}
  exec.copy_box on compute (%0 : memref<4x4xf32>) outs(%1 : memref<8x4xf32>) {in_offsets = array<i64: 0, 0>, out_offsets = array<i64: 5, 0>, shape = array<i64: 4, 4>}
}

// -----

// copy_box 6: more dimensions than the tensors
exec.program @p {
  %0 = exec.alloc : memref<4x4xf32>
  %1 = exec.alloc : memref<8x4xf32>
  // expected-error @below {{the box is not inside 'memref<4x4xf32>' and 'memref<8x4xf32>'}}
  exec.copy_box on compute (%0 : memref<4x4xf32>) outs(%1 : memref<8x4xf32>) {in_offsets = array<i64: 0, 0>, out_offsets = array<i64: 0, 0>, shape = array<i64: 1, 4, 4>}
}

// -----

// shard_of 6
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<4x4xf32>
  %1 = exec.alloc : memref<2x4xf32>
  // expected-error @below {{refers to #fsdp.axis_ref<"tp">, which mesh @mesh lacks}}
  exec.shard_of on compute (%0 : memref<4x4xf32>) outs(%1 : memref<2x4xf32>) over @mesh["tp"]
}

// -----

// shard_of 7: 5 rows in 2 parts are 3
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<5x4xf32>
  %1 = exec.alloc : memref<2x4xf32>
  // expected-error @below {{cannot produce 'memref<2x4xf32>' as one of 2 shards of 'memref<5x4xf32>'}}
  exec.shard_of on compute (%0 : memref<5x4xf32>) outs(%1 : memref<2x4xf32>) over @mesh["dp_shard"]
}

// -----

// shard_of 7: no dimension
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<f32>
  %1 = exec.alloc : memref<f32>
  // expected-error @below {{cannot produce 'memref<f32>' as one of 2 shards of 'memref<f32>'}}
  exec.shard_of on compute (%0 : memref<f32>) outs(%1 : memref<f32>) over @mesh["dp_shard"]
}

// -----

// rows_of_shard 6
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<4xi32>
  %1 = exec.alloc : memref<4xi32>
  // expected-error @below {{refers to #fsdp.axis_ref<"tp">, which mesh @mesh lacks}}
  exec.rows_of_shard on compute (%0 : memref<4xi32>) outs(%1 : memref<4xi32>) over @mesh["tp"] of 8
}

// -----

// rows_of_shard 7
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<4xi32>
  %1 = exec.alloc : memref<4xi32>
  // expected-error @below {{needs a table of rows, got 0}}
  exec.rows_of_shard on compute (%0 : memref<4xi32>) outs(%1 : memref<4xi32>) over @mesh["dp_shard"] of 0
}

// -----

// rows_of_shard 8
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<5xi32>
  %1 = exec.alloc : memref<5xi32>
  // expected-error @below {{cannot split 5 numbers over 2 ranks}}
  exec.rows_of_shard on compute (%0 : memref<5xi32>) outs(%1 : memref<5xi32>) over @mesh["dp_shard"] of 8 {by_rank}
}

// -----

// narrow 2
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<4xf32>
  // expected-error @below {{needs 'out' of bf16, got 'memref<4xf32>'}}
  exec.narrow on compute (%0 : memref<4xf32>) outs(%1 : memref<4xf32>)
}

// -----

// narrow 3: tensor 1 has another shape than its input
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<8xf32>
  %2 = exec.alloc : memref<4xbf16>
  %3 = exec.alloc : memref<4xbf16>
  // expected-error @below {{needs 'out' of shape [elements...], got 'memref<4xbf16>': elements is 8 by 'in' ('memref<8xf32>')}}
  exec.narrow on compute (%0, %1 : memref<4xf32>, memref<8xf32>) outs(%2, %3 : memref<4xbf16>, memref<4xbf16>)
}

// -----

// accumulate 2: a sum is in f32
exec.program @p {
  %0 = exec.alloc : memref<4xbf16>
  %1 = exec.alloc : memref<4xbf16>
  // expected-error @below {{needs 'sums' of f32, got 'memref<4xbf16>'}}
  exec.accumulate on compute (%0, %1 : memref<4xbf16>, memref<4xbf16>) outs(%0 : memref<4xbf16>)
}

// -----

// accumulate 3: value 1 has another shape than its sum
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<8xf32>
  %2 = exec.alloc : memref<4xbf16>
  // expected-error @below {{needs 'values' of shape [elements...], got 'memref<4xbf16>': elements is 8 by 'sums' ('memref<8xf32>')}}
  exec.accumulate on compute (%0, %1, %2, %2 : memref<4xf32>, memref<8xf32>, memref<4xbf16>, memref<4xbf16>) outs(%0, %1 : memref<4xf32>, memref<8xf32>)
}

// -----

// accumulate 5: in place
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<4xf32>
  %2 = exec.alloc : memref<4xf32>
  // expected-error @below {{updates in place: output 0 must be input 0}}
  exec.accumulate on compute (%0, %1 : memref<4xf32>, memref<4xf32>) outs(%2 : memref<4xf32>)
}

// -----

// abs_max 2
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<4xi32>
  %2 = exec.alloc : memref<f32>
  // expected-error @below {{needs 'in' of f32 or bf16, got 'memref<4xi32>'}}
  exec.abs_max on compute (%0, %1 : memref<4xf32>, memref<4xi32>) outs(%2 : memref<f32>)
}

// -----

// sum_squares 3: two digits
exec.program @p {
  %0 = exec.alloc : memref<f32>
  %1 = exec.alloc : memref<4xf32>
  %2 = exec.alloc : memref<3xi64>
  // expected-error @below {{needs 'out' of shape [2], got 'memref<3xi64>'}}
  exec.sum_squares on compute (%0, %1 : memref<f32>, memref<4xf32>) outs(%2 : memref<3xi64>)
}

// -----

// clip_coefficient 6
exec.program @p {
  %0 = exec.alloc : memref<f32>
  %1 = exec.alloc : memref<3xi64>
  %2 = exec.alloc : memref<f32>
  %3 = exec.alloc : memref<f32>
  // expected-error @below {{needs pairs of digits in sum, got 'memref<3xi64>'}}
  exec.clip_coefficient on compute (%0, %1 : memref<f32>, memref<3xi64>) outs(%2, %3 : memref<f32>, memref<f32>) {max_norm = 1.0 : f64}
}

// -----

// adamw 3: tensor 1 has moments of another shape; tensor 0 may have any
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<8xf32>
  %2 = exec.alloc : memref<4xf32>
  %3 = exec.alloc : memref<8xf32>
  %4 = exec.alloc : memref<4xf32>
  %5 = exec.alloc : memref<4x2xf32>
  %6 = exec.alloc : memref<4xf32>
  %7 = exec.alloc : memref<8xf32>
  %8 = exec.alloc : memref<f32>
  %9 = exec.alloc : memref<i32>
  %10 = exec.alloc : memref<f32>
  // expected-error @below {{needs 'secondMoments' of shape [elements...], got 'memref<4x2xf32>': elements is 8 by 'parameters' ('memref<8xf32>')}}
  exec.adamw on compute (%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10 : memref<4xf32>, memref<8xf32>, memref<4xf32>, memref<8xf32>, memref<4xf32>, memref<4x2xf32>, memref<4xf32>, memref<8xf32>, memref<f32>, memref<i32>, memref<f32>) outs(%0, %1, %2, %3, %4, %5 : memref<4xf32>, memref<8xf32>, memref<4xf32>, memref<8xf32>, memref<4xf32>, memref<4x2xf32>) {beta1 = 0.9 : f64, beta2 = 0.95 : f64, eps = 1.0e-8 : f64, weight_decay = 0.1 : f64}
}

// -----

// adamw 2: the step
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<4xf32>
  %2 = exec.alloc : memref<4xf32>
  %3 = exec.alloc : memref<4xf32>
  %4 = exec.alloc : memref<f32>
  %5 = exec.alloc : memref<f32>
  %6 = exec.alloc : memref<f32>
  // expected-error @below {{needs 'step' of i32, got 'memref<f32>'}}
  exec.adamw on compute (%0, %1, %2, %3, %4, %5, %6 : memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>) outs(%0, %1, %2 : memref<4xf32>, memref<4xf32>, memref<4xf32>) {beta1 = 0.9 : f64, beta2 = 0.95 : f64, eps = 1.0e-8 : f64, weight_decay = 0.1 : f64}
}

// -----

// attention 9: starts of documents need 'causal'
exec.program @p {
  %0 = exec.alloc : memref<2x4x6x8xf32>
  %1 = exec.alloc : memref<2x4x3x8xf32>
  %2 = exec.alloc : memref<2x4xi32>
  %3 = exec.alloc : memref<2x4x6x8xf32>
  %4 = exec.alloc : memref<2x6x4xf32>
  // expected-error @below {{has starts of documents, which need 'causal'}}
  exec.attention on compute (%0, %1, %1, %2 : memref<2x4x6x8xf32>, memref<2x4x3x8xf32>, memref<2x4x3x8xf32>, memref<2x4xi32>) outs(%3, %4 : memref<2x4x6x8xf32>, memref<2x6x4xf32>) {scale = 1.25e-01 : f64}
}

// -----

// attention 3: a start per query
exec.program @p {
  %0 = exec.alloc : memref<2x4x6x8xf32>
  %1 = exec.alloc : memref<2x4x3x8xf32>
  %2 = exec.alloc : memref<2x5xi32>
  %3 = exec.alloc : memref<2x4x6x8xf32>
  %4 = exec.alloc : memref<2x6x4xf32>
  // expected-error @below {{needs 'starts' of shape [batch, qLen], got 'memref<2x5xi32>': qLen is 4 by 'q'}}
  exec.attention on compute (%0, %1, %1, %2 : memref<2x4x6x8xf32>, memref<2x4x3x8xf32>, memref<2x4x3x8xf32>, memref<2x5xi32>) outs(%3, %4 : memref<2x4x6x8xf32>, memref<2x6x4xf32>) {causal, scale = 1.25e-01 : f64}
}

// -----

// attention_grad 10: one of fast and plain
exec.program @p {
  %0 = exec.alloc : memref<1x8x4x16xf32>
  %1 = exec.alloc : memref<1x8x2x16xf32>
  %2 = exec.alloc : memref<1x4x8xf32>
  %3 = exec.alloc : memref<1x8x4x16xf32>
  %4 = exec.alloc : memref<1x8x2x16xf32>
  %5 = exec.alloc : memref<1x8x2x16xf32>
  // expected-error @below {{is 'fast' and 'plain'; the reference attention adds in one order}}
  exec.attention_grad on compute (%0, %1, %1, %0, %2, %0 : memref<1x8x4x16xf32>, memref<1x8x2x16xf32>, memref<1x8x2x16xf32>, memref<1x8x4x16xf32>, memref<1x4x8xf32>, memref<1x8x4x16xf32>) outs(%3, %4, %5 : memref<1x8x4x16xf32>, memref<1x8x2x16xf32>, memref<1x8x2x16xf32>) {causal, fast, plain, scale = 2.5e-01 : f64}
}
