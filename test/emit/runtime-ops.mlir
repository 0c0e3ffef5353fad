// RUN: fsdp-compile %s --skip-exec-verify --emit=cpp | FileCheck %s
// RUN: fsdp-opt %s -o %t.mlir
// RUN: fsdp-opt %t.mlir --mlir-print-op-generic | fsdp-opt | diff %t.mlir -

// Every typed operation of the runtime: sizes come from the operands' types,
// buffers stand as the operation's record lists them.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 65536 : i64} {

fsdp.mesh @mesh ["dp_shard" = 4, "tp" = 2]

// CHECK: enum {
// CHECK-NEXT: gemm_8x8x16_tn_add_bf16_f32,
// CHECK: {1, 8, 8, 16, true, false, false, DType::BF16, DType::F32, 0, true},
// CHECK: enum {
// CHECK-NEXT: attention_2x4_6heads_8,
// CHECK: {2, 4, 4, 6, 3, 8, 0.125, true, DType::F32, false},
// CHECK-NEXT: };
// CHECK: static const AxisRef group_0[] = {{[{][{]}}1, 1, 2}, {0, 2, 2{{[}][}]}};
// CHECK: static const int64_t shape[] = {2, 3, 4};
// CHECK-NEXT: static const int64_t permutation[] = {0, 2, 1};
// CHECK-NEXT: static const int64_t box[] = {2, 3};
// CHECK-NEXT: static const int64_t shape_2[] = {4, 8};
// CHECK-NEXT: static const int64_t offsets[] = {1, 0};
// CHECK-NEXT: static const int64_t shape_3[] = {3, 3};
// CHECK-NEXT: static const int64_t offsets_2[] = {0, 0};
// CHECK-NEXT: static const int64_t counts[] = {32, 8};

// CHECK: static void run_p(
exec.program @p arena 65536 {
  %q = exec.alloc at 0 "q" : memref<2x4x6x8xf32>
  %k = exec.alloc at 2048 "k" : memref<2x4x3x8xf32>
  %v = exec.alloc at 4096 "v" : memref<2x4x3x8xf32>
  %o = exec.alloc at 6144 "o" : memref<2x4x6x8xf32>
  %lse = exec.alloc at 8192 "lse" : memref<2x6x4xf32>
  %do = exec.alloc at 10240 "do" : memref<2x4x6x8xf32>
  %dq = exec.alloc at 12288 "dq" : memref<2x4x6x8xf32>
  %dk = exec.alloc at 14336 "dk" : memref<2x4x3x8xf32>
  %dv = exec.alloc at 16384 "dv" : memref<2x4x3x8xf32>
  %ws = exec.alloc at 18432 "ws" : memref<256xi8>
  // CHECK: attention(c, Stream::Compute, attention_2x4_6heads_8, q_, k_, v_, nullptr, o_,
  // CHECK-NEXT: lse_, ws_);
  exec.attention on compute (%q, %k, %v : memref<2x4x6x8xf32>, memref<2x4x3x8xf32>, memref<2x4x3x8xf32>)
      outs(%o, %lse : memref<2x4x6x8xf32>, memref<2x6x4xf32>) workspace(%ws : memref<256xi8>)
      {scale = 1.25e-01 : f64, causal}
  // What is called after the input ends in an underscore, so "do" is no word of C++; a missing workspace is null.
  // CHECK: attentionGrad(c, Stream::Compute, attention_2x4_6heads_8, q_, k_, v_, o_,
  // CHECK-NEXT: lse_, do_, nullptr, dq_, dk_, dv_, nullptr);
  exec.attention_grad on compute (%q, %k, %v, %o, %lse, %do : memref<2x4x6x8xf32>, memref<2x4x3x8xf32>, memref<2x4x3x8xf32>, memref<2x4x6x8xf32>, memref<2x6x4xf32>, memref<2x4x6x8xf32>)
      outs(%dq, %dk, %dv : memref<2x4x6x8xf32>, memref<2x4x3x8xf32>, memref<2x4x3x8xf32>)
      {scale = 1.25e-01 : f64, causal}
  %table = exec.alloc at 20480 "table" : memref<4x4x2xf32>
  // CHECK: rotary(c, Stream::Compute, DType::F32, 2, 4, 6, 8, true, false, q_, table_,
  // CHECK-NEXT: o_);
  exec.rotary on compute (%q, %table : memref<2x4x6x8xf32>, memref<4x4x2xf32>) outs(%o : memref<2x4x6x8xf32>)
      pairs halves

  // Twelve heads, six of them queries.
  %all = exec.alloc at 32768 "all" : memref<2x4x12x8xf32>
  // CHECK: splitHeads(c, Stream::Compute, DType::F32, 2, 4, 6, 3, 8, false, all_, table_,
  // CHECK-NEXT: q_, k_, v_);
  exec.split_heads on compute (%all, %table : memref<2x4x12x8xf32>, memref<4x4x2xf32>)
      outs(%q, %k, %v : memref<2x4x6x8xf32>, memref<2x4x3x8xf32>, memref<2x4x3x8xf32>) pairs adjacent
  // CHECK: joinHeads(c, Stream::Compute, DType::F32, 2, 4, 6, 3, 8, true, q_, k_, v_,
  // CHECK-NEXT: table_, all_);
  exec.join_heads on compute (%q, %k, %v, %table : memref<2x4x6x8xf32>, memref<2x4x3x8xf32>, memref<2x4x3x8xf32>, memref<4x4x2xf32>)
      outs(%all : memref<2x4x12x8xf32>) pairs halves

  %ids = exec.alloc at 22528 "ids" : memref<2x4xi32>
  %words = exec.alloc at 24576 "words" : memref<16x8xbf16>
  %x = exec.alloc at 26624 "x" : memref<2x4x8xbf16>
  // Eight tokens, 16 classes, 8 columns.
  // CHECK: embedding(c, Stream::Compute, DType::BF16, 8, 16, 8, false, ids_, words_, x_);
  exec.embedding on compute (%ids, %words : memref<2x4xi32>, memref<16x8xbf16>) outs(%x : memref<2x4x8xbf16>)
  // CHECK: embeddingGrad(c, Stream::Compute, DType::BF16, 8, 16, 8, false, ids_, x_,
  // CHECK-NEXT: words_, ws_);
  exec.embedding_grad on compute (%ids, %x : memref<2x4xi32>, memref<2x4x8xbf16>) outs(%words : memref<16x8xbf16>)
      workspace(%ws : memref<256xi8>)
  // The rows of 30 that this rank has of those of four, which are told apart.
  // CHECK: rowsOfShard(c, Stream::Compute, 0, 8, 30, true, ids_, ids_);
  exec.rows_of_shard on compute (%ids : memref<2x4xi32>) outs(%ids : memref<2x4xi32>)
      over @mesh["tp", "dp_shard":(2)2] of 30 {by_rank}
  // CHECK: embedding(c, Stream::Compute, DType::BF16, 8, 16, 8, true, ids_, words_,
  exec.embedding on compute (%ids, %words : memref<2x4xi32>, memref<16x8xbf16>) outs(%x : memref<2x4x8xbf16>) {absent}
  %logits = exec.alloc at 28672 "logits" : memref<2x4x16xf32>
  %losses = exec.alloc at 30720 "losses" : memref<2x4xf32>
  %rowlse = exec.alloc at 32768 "rowlse" : memref<2x4xf32>
  %dlogits = exec.alloc at 34816 "dlogits" : memref<2x4x16xf32>
  // CHECK: crossEntropy(c, Stream::Compute, DType::F32, 8, 16, -100, logits_, ids_,
  // CHECK-NEXT: losses_, rowlse_);
  exec.cross_entropy on compute (%logits, %ids : memref<2x4x16xf32>, memref<2x4xi32>) outs(%losses, %rowlse : memref<2x4xf32>, memref<2x4xf32>)
      {ignore_index = -100 : i64}
  // CHECK: crossEntropyGrad(c, Stream::Compute, DType::F32, 8, 16, -100, logits_, ids_,
  // CHECK-NEXT: rowlse_, losses_, dlogits_);
  exec.cross_entropy_grad on compute (%logits, %ids, %rowlse, %losses : memref<2x4x16xf32>, memref<2x4xi32>, memref<2x4xf32>, memref<2x4xf32>)
      outs(%dlogits : memref<2x4x16xf32>) {ignore_index = -100 : i64}
  %count = exec.alloc at 34944 "count" : memref<i64>
  // CHECK: countLabels(c, Stream::Compute, 8, 1, -100, ids_, count_);
  exec.count_labels on compute (%ids : memref<2x4xi32>) outs(%count : memref<i64>) {ignore_index = -100 : i64}

  %a = exec.alloc at 36864 "a" : memref<2x3x4xf32>
  %b = exec.alloc at 38912 "b" : memref<2x4x3xf32>
  // CHECK: transpose(c, Stream::Compute, DType::F32, 3, shape, permutation, a_, b_);
  exec.transpose on compute (%a : memref<2x3x4xf32>) outs(%b : memref<2x4x3xf32>) {permutation = array<i64: 0, 2, 1>}
  %from = exec.alloc at 40960 "from" : memref<4x8xf32>
  %to = exec.alloc at 43008 "to" : memref<3x3xf32>
  // CHECK: fillZero(c, Stream::Compute, to_, 36);
  exec.fill_zero on compute () outs(%to : memref<3x3xf32>)
  // CHECK: copyBox(c, Stream::Compute, DType::F32, 2, box, shape_2, offsets, shape_3,
  // CHECK-NEXT: offsets_2, from_, to_);
  exec.copy_box on compute (%from : memref<4x8xf32>) outs(%to : memref<3x3xf32>)
      {shape = array<i64: 2, 3>, in_offsets = array<i64: 1, 0>, out_offsets = array<i64: 0, 0>}

  // What is added to comes once.
  %total = exec.alloc at 53248 "total" : memref<8x8xf32>
  // CHECK: gemmAdd(c, Stream::Compute, gemm_8x8x16_tn_add_bf16_f32, words_, words_,
  // CHECK-NEXT: total_, nullptr);
  exec.gemm_add on compute (%words, %words, %total : memref<16x8xbf16>, memref<16x8xbf16>, memref<8x8xf32>)
      outs(%total : memref<8x8xf32>) {transpose_lhs}

  // 5 rows of 8 in parts of 2, over tp and half of dp_shard.
  %whole = exec.alloc at 49152 "whole" : memref<5x8xbf16>
  %part = exec.alloc at 49408 "part" : memref<2x8xbf16>
  // CHECK: shardOf(c, Stream::Compute, 0, 80, 32, whole_, part_);
  exec.shard_of on compute (%whole : memref<5x8xbf16>) outs(%part : memref<2x8xbf16>)
      over @mesh["tp", "dp_shard":(2)2]

  %p0 = exec.alloc at 45056 "p0" : memref<4x8xf32>
  %p1 = exec.alloc at 45312 "p1" : memref<8xf32>
  %m0 = exec.alloc at 45568 "m0" : memref<4x8xf32>
  %m1 = exec.alloc at 45824 "m1" : memref<8xf32>
  %v0 = exec.alloc at 46080 "v0" : memref<4x8xf32>
  %v1 = exec.alloc at 46336 "v1" : memref<8xf32>
  %g0 = exec.alloc at 46592 "g0" : memref<4x8xf32>
  %g1 = exec.alloc at 46848 "g1" : memref<8xf32>
  %max = exec.alloc at 47104 "gmax" : memref<f32>
  %sum = exec.alloc at 47168 "gsum" : memref<2xi64>
  %norm = exec.alloc at 47232 "norm" : memref<f32>
  %clip = exec.alloc at 47296 "clip" : memref<f32>
  %lr = exec.alloc at 47360 "lr" : memref<f32>
  %step = exec.alloc at 47424 "step" : memref<i32>
  %n0 = exec.alloc at 47488 "n0" : memref<4x8xbf16>
  %n1 = exec.alloc at 47616 "n1" : memref<8xbf16>
  // CHECK: narrow(c, Stream::Compute, counts, {p0_, p1_}, {n0_, n1_});
  exec.narrow on compute (%p0, %p1 : memref<4x8xf32>, memref<8xf32>) outs(%n0, %n1 : memref<4x8xbf16>, memref<8xbf16>)
  // Sums come once, as what is added to does.
  // CHECK: accumulate(c, Stream::Compute, counts, types, {p0_, p1_}, {n0_, g1_});
  exec.accumulate on compute (%p0, %p1, %n0, %g1 : memref<4x8xf32>, memref<8xf32>, memref<4x8xbf16>, memref<8xf32>)
      outs(%p0, %p1 : memref<4x8xf32>, memref<8xf32>)
  // CHECK: absMax(c, Stream::Compute, counts, nullptr, {g0_, g1_}, gmax_);
  exec.abs_max on compute (%g0, %g1 : memref<4x8xf32>, memref<8xf32>) outs(%max : memref<f32>)
  // What is not all f32 has a list of types.
  // CHECK: sumSquares(c, Stream::Compute, counts, types, gmax_, {n0_, g1_}, gsum_);
  exec.sum_squares on compute (%max, %n0, %g1 : memref<f32>, memref<4x8xbf16>, memref<8xf32>) outs(%sum : memref<2xi64>)
  // CHECK: clipCoefficient(c, Stream::Compute, 1.0, 1, gmax_, gsum_, norm_, clip_);
  exec.clip_coefficient on compute (%max, %sum : memref<f32>, memref<2xi64>) outs(%norm, %clip : memref<f32>, memref<f32>) {max_norm = 1.0 : f64}
  // CHECK: adamw(c, Stream::Compute, {0.9, 0.95, 1e-08, 0.1}, counts, nullptr, {p0_,
  // CHECK-NEXT: p1_}, {m0_, m1_}, {v0_, v1_}, {g0_, g1_}, lr_, step_, clip_);
  exec.adamw on compute (%p0, %p1, %m0, %m1, %v0, %v1, %g0, %g1, %lr, %step, %clip : memref<4x8xf32>, memref<8xf32>, memref<4x8xf32>, memref<8xf32>, memref<4x8xf32>, memref<8xf32>, memref<4x8xf32>, memref<8xf32>, memref<f32>, memref<i32>, memref<f32>)
      outs(%p0, %p1, %m0, %m1, %v0, %v1 : memref<4x8xf32>, memref<8xf32>, memref<4x8xf32>, memref<8xf32>, memref<4x8xf32>, memref<8xf32>)
      {beta1 = 0.9 : f64, beta2 = 0.95 : f64, eps = 1.0e-8 : f64, weight_decay = 0.1 : f64}
  // CHECK: adamwCopy(c, Stream::Compute, {0.9, 0.95, 1e-08, 0.1}, counts_2, nullptr,
  // CHECK-NEXT: {p1_}, {m1_}, {v1_}, {n1_}, {g1_}, lr_, step_, clip_);
  exec.adamw_copy on compute (%p1, %m1, %v1, %n1, %g1, %lr, %step, %clip : memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<8xbf16>, memref<8xf32>, memref<f32>, memref<i32>, memref<f32>)
      outs(%p1, %m1, %v1, %n1 : memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<8xbf16>)
      {beta1 = 0.9 : f64, beta2 = 0.95 : f64, eps = 1.0e-8 : f64, weight_decay = 0.1 : f64}
}
}
