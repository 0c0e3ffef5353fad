// RUN: fsdp-compile %s --emit=cpp | FileCheck %s

// A function that several places share gets named offsets and event numbers;
// calls of it in a row are one loop over a table.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 1024 : i64} {

exec.range @layers.0.w : memref<16xf32> role parameter at 0
exec.range @layers.1.w : memref<16xf32> role parameter at 64

// Arguments are named without the number of the block; buffers that are the
// same for every call stand inside.
// CHECK: /// Offsets in the arena of what differs between calls of layer.
// CHECK-NEXT: struct run_layer_offsets {
// CHECK-NEXT:   uint64_t w_; // 16 f32
// CHECK-NEXT:   uint64_t h_; // 16 f32
// Names that had nothing in common say nothing.
// CHECK-NEXT:   uint64_t buffer_; // 16 f32
// CHECK-NEXT:   uint64_t buffer_2_; // 16 f32
// CHECK-NEXT: };
// CHECK: /// layer, for several places: `event` are numbers of events.
// CHECK-NEXT: ISSUES_WORK static void
// CHECK-NEXT: run_layer(Context &c, const run_layer_offsets &buffers,
// CHECK-NEXT:     {{\[\[}}maybe_unused{{\]\]}} const int *event) {
// CHECK-NEXT:   const Ptr base = at(c, 0);
// CHECK-NEXT:   const Ptr w_ = base + buffers.w_;
// CHECK-NEXT:   const Ptr h_ = base + buffers.h_;
// CHECK-NEXT:   wait(c, event[0], Stream::Compute);
// CHECK-NEXT:   const Ptr shared_ = base + 512; // 16 f32
// CHECK-NEXT:   copy(c, Stream::Compute, w_, shared_, 64);
// CHECK-NEXT:   copy(c, Stream::Compute, shared_, h_, 64);
// CHECK-NEXT:   record(c, event[1], Stream::Compute);
// CHECK-NEXT: }
exec.func @layer {
^bb0(%w: memref<16xf32> loc("layers.*.w"), %h: memref<16xf32>,
     %i: memref<16xf32> loc("*d"), %j: memref<16xf32> loc("*")):
  exec.wait 0 on compute
  %s = exec.alloc at 512 "layers.*.shared" : memref<16xf32>
  exec.copy on compute (%w : memref<16xf32>) outs(%s : memref<16xf32>)
  exec.copy on compute (%s : memref<16xf32>) outs(%h : memref<16xf32>)
  exec.record 1 on compute
}

// CHECK: ISSUES_WORK static void run_train(Context &c) {
// CHECK-NEXT:   const Ptr base = at(c, 0);
// CHECK-NEXT:   record(c, 0, Stream::Gather);
// CHECK-NEXT:   // layer: 2 calls
// CHECK-NEXT:   static constexpr run_layer_offsets run_layer_buffers[] = {
// CHECK-NEXT:       {layers_0_w_, 128, 128, 128},
// The view starts 64 bytes into the interval at 192.
// CHECK-NEXT:       {layers_1_w_, 256, 256, 256},
// CHECK-NEXT:   };
// A call may name more events than its function has, and any numbers: the
// runtime makes as many as there are.
// CHECK-NEXT:   static constexpr int run_layer_events[][3] = {
// CHECK-NEXT:       {0, 1},
// CHECK-NEXT:       {1, 3, 2},
// CHECK-NEXT:   };
// CHECK-NEXT:   for (int i = 0; i < 2; ++i)
// CHECK-NEXT:     run_layer(c, run_layer_buffers[i], run_layer_events[i]);
// CHECK-NEXT: }
exec.program @train arena 1024 attributes {exec.reads = ["layers.0.w", "layers.1.w"], exec.writes = []} {
  exec.record 0 on gather
  %w0 = exec.get @layers.0.w : memref<16xf32>
  %h0 = exec.alloc at 128 "layers.0.h" : memref<16xf32>
  exec.call @layer(%w0, %h0, %h0, %h0) events [0, 1] : memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>
  %w1 = exec.get @layers.1.w : memref<16xf32>
  %h1 = exec.alloc at 192 "layers.1.h" : memref<32xf32>
  %v1 = exec.view %h1[16] : memref<32xf32> to memref<16xf32>
  exec.call @layer(%w1, %v1, %v1, %v1) events [1, 2147483647, 7] : memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>
}

// Events are counted through calls.
// CHECK: 1024, // bytes of the arena
// CHECK-NEXT: 4, // events
}
