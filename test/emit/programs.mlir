// RUN: fsdp-compile %s --skip-exec-verify --emit=cpp | FileCheck %s
// RUN: not fsdp-compile %s --emit=cpp 2>&1 | FileCheck %s --check-prefix=VERIFY

// Exec text is verified before anything is made of it; here, streams do not
// wait for each other.
// VERIFY: error: {{.*}}'exec.copy' op on stream copy does not wait for the start of the program

// A program is one call of the runtime per op, in order; descriptors are
// entries of tables, each distinct one once.

module attributes {exec.persistent_bytes = 512 : i64, exec.arena_bytes = 2048 : i64} {

fsdp.mesh @mesh ["dp_replicate" = 2, "dp_shard" = 4]

// Headers of the runtime alone: one of the C++ library would take longer to
// compile than the rest of a small step.
// CHECK: #include "fsdp/Runtime/Artifact.h"
// CHECK-NEXT: #include "fsdp/Runtime/KernelRows.h"
// CHECK-EMPTY:
// CHECK-NEXT: using namespace fsdp::rt;

// What persists has a named offset.
// CHECK: static constexpr uint64_t layers_0_w_ = 0; // parameter 4x8 f32
// CHECK-NEXT: static constexpr uint64_t layers_1_w_ = 128; // parameter 4x8 f32
// CHECK-NEXT: static constexpr uint64_t loss_ = 256; // output f32
exec.range @layers.0.w : memref<4x8xf32> role parameter at 0
exec.range @layers.1.w : memref<4x8xf32> role parameter at 128
exec.range @loss : memref<f32> role output at 256

exec.kernel @silu over(4, 8) access [element, element] outputs 1 {
^bb0(%x: memref<4x8xf32>, %y: memref<4x8xf32>):
  exec.map {
    %a = exec.load %x : memref<4x8xf32> -> f32
    exec.store %a, %y : f32, memref<4x8xf32>
  }
}

// Two equal products are one entry; one without a workspace, batched ones and
// those with a bias differ.
// CHECK: enum {
// CHECK-NEXT:   gemm_4x16x8_nt_f32,
// CHECK-NEXT:   gemm_4x16x8_nt_f32_2,
// CHECK-NEXT:   gemm_2_times_4x3x8_tn_bias_bf16_f32,
// CHECK-NEXT: };
// CHECK-NEXT: static const GemmDesc gemms[] = {
// CHECK-NEXT:     {1, 4, 16, 8, false, true, false, DType::F32, DType::F32, 64},
// CHECK-NEXT:     {1, 4, 16, 8, false, true, false, DType::F32, DType::F32, 0},
// CHECK-NEXT:     {2, 4, 3, 8, true, false, true, DType::BF16, DType::F32, 0},
// CHECK-NEXT: };

// Groups name mesh axes by position: dp_shard is axis 1, with 4 ranks. The
// inner half of it is a sub-axis: 2 ranks after a prefix of 2.
// CHECK: static const AxisRef group_0[] = {{[{][{]}}1, 1, 4}};
// CHECK-NEXT: static const AxisRef group_1[] = {{[{][{]}}0, 1, 2}, {1, 2, 2}};
// CHECK-NEXT: static const GroupDesc groups[] = {
// CHECK-NEXT:     {1, group_0},
// CHECK-NEXT:     {2, group_1},
// CHECK-NEXT: };

// A gather of 32 elements per rank gives 4 * 32 = 128, a reduction the inverse.
// CHECK: static const CollectiveItem collective_items[] = {{[{][{]}}32, 128}};
// CHECK: enum {
// CHECK-NEXT:   all_gather_fwd_layers_0,
// CHECK-NEXT:   reduce_scatter_bwd_layers_0,
// CHECK-NEXT:   all_reduce,
// CHECK-NEXT: };
// CHECK: {CollectiveKind::AllGather, ReduceKind::Sum, DType::F32, DType::F32, 0, 1,
// CHECK-NEXT: collective_items, "fwd layers.0"},
// CHECK-NEXT: {CollectiveKind::ReduceScatter, ReduceKind::Sum, DType::BF16, DType::F32, 0,
// CHECK-NEXT: 1, collective_items, "bwd layers.0"},
// CHECK-NEXT: {CollectiveKind::AllReduce, ReduceKind::Max, DType::F32, DType::F32,

// CHECK: /// Program train. Peak 2048 bytes.
// CHECK-NEXT: ISSUES_WORK static void run_train(Context &c) {
// CHECK-NEXT:   const Ptr base = at(c, 0);
exec.program @train arena 2048 attributes {exec.inputs = [], exec.outputs = ["loss"], exec.flops = 1024 : i64} {
  // Of several ranges each has its own name.
  %all = exec.get @layers.0.w adjacent [@layers.1.w] : memref<64xf32>
  %w = exec.view %all[0] : memref<64xf32> to memref<4x8xf32>
  %w1 = exec.view %all[32] : memref<64xf32> to memref<4x8xf32>
  %loss = exec.get @loss : memref<f32>
  %full = exec.alloc at 512 "w gathered" : memref<16x8xf32>
  %x = exec.alloc at 1024 "x" : memref<4x8xf32>
  %y = exec.alloc at 1152 "y" : memref<4x16xf32>
  %s = exec.alloc at 1408 "workspace" : memref<64xi8>
  %half = exec.alloc at 1472 "half" : memref<16x8xbf16>

  // Events order streams.
  // CHECK-NEXT:   // layers.0
  // CHECK-NEXT:   record(c, 0, Stream::Compute);
  // CHECK-NEXT:   wait(c, 0, Stream::Gather);
  exec.record 0 on compute {nn.module = "layers.0"}
  exec.wait 0 on gather {nn.module = "layers.0"}
  // An interval is declared where it is first used, with its shape.
  // CHECK-NEXT:   const Ptr w_gathered_ = base + 512; // 16x8 f32
  // CHECK-NEXT:   collective(c, Stream::Gather, all_gather_fwd_layers_0, {base + layers_0_w_},
  // CHECK-NEXT:       {w_gathered_}, {});
  exec.collective all_gather on gather (%w : memref<4x8xf32>) outs(%full : memref<16x8xf32>)
      over @mesh["dp_shard"] {serves = #fsdp.origin<all "fwd layers.0">, nn.module = "layers.0"}
  // CHECK:   gemm(c, Stream::Compute, gemm_4x16x8_nt_f32, x_, w_gathered_, nullptr, y_,
  // CHECK-NEXT: workspace_);
  exec.gemm on compute (%x, %full : memref<4x8xf32>, memref<16x8xf32>) outs(%y : memref<4x16xf32>)
      workspace(%s : memref<64xi8>) {transpose_rhs, nn.module = "layers.0"}
  // The same again.
  // CHECK-NEXT:   gemm(c, Stream::Compute, gemm_4x16x8_nt_f32, x_, w_gathered_, nullptr, y_,
  // CHECK-NEXT: workspace_);
  exec.gemm on compute (%x, %full : memref<4x8xf32>, memref<16x8xf32>) outs(%y : memref<4x16xf32>)
      workspace(%s : memref<64xi8>) {transpose_rhs, nn.module = "layers.0"}
  // Without a workspace.
  // CHECK-NEXT:   gemm(c, Stream::Compute, gemm_4x16x8_nt_f32_2, x_, w_gathered_, nullptr, y_,
  // CHECK-NEXT: nullptr);
  exec.gemm on compute (%x, %full : memref<4x8xf32>, memref<16x8xf32>) outs(%y : memref<4x16xf32>)
      {transpose_rhs, nn.module = "layers.0"}
  // The location changes, so the comment does. A view is an offset in bytes:
  // 32 elements of 4 bytes.
  // CHECK-NEXT:   // layers.0.ffn
  // CHECK-NEXT:   launch(c, Stream::Compute, "silu", k_silu, 4, 8, {y_ + 128, x_});
  %v = exec.view %y[32] : memref<4x16xf32> to memref<4x8xf32>
  exec.launch @silu on compute (%v : memref<4x8xf32>) outs(%x : memref<4x8xf32>) {nn.module = "layers.0.ffn"}
  // CHECK-NEXT:   copy(c, Stream::Copy, x_, base + layers_0_w_, 128);
  // CHECK-NEXT:   copy(c, Stream::Copy, base + layers_1_w_, x_, 128);
  exec.copy on copy (%x : memref<4x8xf32>) outs(%w : memref<4x8xf32>) {nn.module = "layers.0.ffn"}
  exec.copy on copy (%w1 : memref<4x8xf32>) outs(%x : memref<4x8xf32>) {nn.module = "layers.0.ffn"}
  %a = exec.alloc at 512 "a" : memref<2x8x4xbf16>
  %b = exec.alloc at 640 "b" : memref<2x8x3xbf16>
  %bias = exec.alloc at 768 "bias" : memref<3xbf16>
  %o = exec.alloc at 832 "o" : memref<2x4x3xf32>
  // Without a workspace.
  // CHECK: gemm(c, Stream::Compute, gemm_2_times_4x3x8_tn_bias_bf16_f32, a_, b_, bias_,
  // CHECK-NEXT: o_, nullptr);
  exec.gemm on compute (%a, %b, %bias : memref<2x8x4xbf16>, memref<2x8x3xbf16>, memref<3xbf16>)
      outs(%o : memref<2x4x3xf32>) {transpose_lhs}
  %pieces = exec.alloc at 1792 "pieces" : memref<256xi8>
  // CHECK: collective(c, Stream::Reduce, reduce_scatter_bwd_layers_0, {half_}, {x_},
  // CHECK-NEXT: {pieces_});
  exec.collective reduce_scatter on reduce (%half : memref<16x8xbf16>) outs(%x : memref<4x8xf32>)
      workspace(%pieces : memref<256xi8>) over @mesh["dp_shard"] {serves = #fsdp.origin<all "bwd layers.0">}
  exec.collective all_reduce on compute (%loss : memref<f32>) outs(%loss : memref<f32>)
      workspace(%pieces : memref<256xi8>) over @mesh["dp_replicate", "dp_shard":(2)2] {reduce = #exec<reduce_kind max>}
}

// The artifact counts events and lists programs.
// CHECK: static const fsdp_program programs[] = {
// CHECK-NEXT:     {"train", run_train},
// CHECK-NEXT: };
// CHECK: static const fsdp_artifact artifact = {
// CHECK-NEXT:     FSDP_ARTIFACT_ABI,
// CHECK-NEXT:     manifest,
// CHECK-NEXT:     2048, // bytes of the arena
// CHECK-NEXT:     1, // events
// CHECK-NEXT:     3, gemms,
// CHECK-NEXT:     0, nullptr,
// CHECK-NEXT:     2, groups,
// CHECK-NEXT:     3, collectives,
// CHECK-NEXT:     1, programs,
// CHECK: fsdp_get_artifact(void) {
}
