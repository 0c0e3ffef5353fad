// RUN: fsdp-compile %s --skip-exec-verify --emit=cpp | FileCheck %s

// A window, a cap and starts of documents stand in the table where one of its
// attentions has them, and a window of all keys is none.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 65536 : i64} {

// CHECK: // Attention: batch, query length, key length, heads, key heads, head size,
// CHECK-NEXT: // scale, causal, type, without the library, window, cap of scores, starts of documents.
// CHECK-NEXT: enum {
// CHECK-NEXT: attention_2x4_6heads_8,
// CHECK-NEXT: attention_2x4_6heads_8_window_3,
// CHECK-NEXT: attention_2x4_6heads_8_window_1_capped,
// CHECK-NEXT: attention_2x4_6heads_8_documents,
// CHECK-NEXT: };
// CHECK-NEXT: static const AttentionDesc attentions[] = {
// CHECK-NEXT: {2, 4, 4, 6, 3, 8, 0.125, true, DType::F32, false},
// CHECK-NEXT: {2, 4, 4, 6, 3, 8, 0.125, true, DType::F32, false, 3, 0.0},
// CHECK-NEXT: {2, 4, 4, 6, 3, 8, 0.125, true, DType::F32, true, 1, 50.0},
// CHECK-NEXT: {2, 4, 4, 6, 3, 8, 0.125, true, DType::F32, false, 0, 0.0, true},
// CHECK-NEXT: };
exec.program @p arena 65536 {
  %q = exec.alloc at 0 "q" : memref<2x4x6x8xf32>
  %k = exec.alloc at 2048 "k" : memref<2x4x3x8xf32>
  %v = exec.alloc at 4096 "v" : memref<2x4x3x8xf32>
  %o = exec.alloc at 6144 "o" : memref<2x4x6x8xf32>
  %lse = exec.alloc at 8192 "lse" : memref<2x6x4xf32>
  %ws = exec.alloc at 18432 "ws" : memref<256xi8>
  %starts = exec.alloc at 20480 "starts" : memref<2x4xi32>
  // CHECK: attention(c, Stream::Compute, attention_2x4_6heads_8, q
  exec.attention on compute (%q, %k, %v : memref<2x4x6x8xf32>, memref<2x4x3x8xf32>, memref<2x4x3x8xf32>)
      outs(%o, %lse : memref<2x4x6x8xf32>, memref<2x6x4xf32>) workspace(%ws : memref<256xi8>)
      {causal, scale = 1.25e-01 : f64, window = 4 : i64}
  // CHECK: attention(c, Stream::Compute, attention_2x4_6heads_8_window_3, q
  exec.attention on compute (%q, %k, %v : memref<2x4x6x8xf32>, memref<2x4x3x8xf32>, memref<2x4x3x8xf32>)
      outs(%o, %lse : memref<2x4x6x8xf32>, memref<2x6x4xf32>) workspace(%ws : memref<256xi8>)
      {causal, scale = 1.25e-01 : f64, window = 3 : i64}
  // CHECK: attention(c, Stream::Compute, attention_2x4_6heads_8_window_1_capped, q
  exec.attention on compute (%q, %k, %v : memref<2x4x6x8xf32>, memref<2x4x3x8xf32>, memref<2x4x3x8xf32>)
      outs(%o, %lse : memref<2x4x6x8xf32>, memref<2x6x4xf32>)
      {cap = 5.0e+01 : f64, causal, plain, scale = 1.25e-01 : f64, window = 1 : i64}
  // CHECK: attention(c, Stream::Compute, attention_2x4_6heads_8_documents, q_, k_, v_,
  // CHECK-NEXT: starts_, o_, lse_, ws_);
  exec.attention on compute (%q, %k, %v, %starts : memref<2x4x6x8xf32>, memref<2x4x3x8xf32>, memref<2x4x3x8xf32>, memref<2x4xi32>)
      outs(%o, %lse : memref<2x4x6x8xf32>, memref<2x6x4xf32>) workspace(%ws : memref<256xi8>)
      {causal, scale = 1.25e-01 : f64}
}
}
