// RUN: fsdp-opt --exec-plan-memory --split-input-file %s | FileCheck %s
// RUN: fsdp-opt --exec-plan-memory=report --split-input-file %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REPORT
// RUN: fsdp-opt --exec-plan-memory --split-input-file --remarks-filter=exec-plan-memory --remark-format=emitRemark %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Ranges are placed by role (parameter, state, gradient, buffer, input,
// output), each padded to 64 bytes: @w 0, @v 64, @m 128, @g 192, @t 256,
// @x 320, @y 384, together 448. Nothing is transient, so the arena ends there.

// CHECK: module attributes {exec.arena_bytes = 448 : i64, exec.persistent_bytes = 448 : i64}
// CHECK-DAG: exec.range @y {{.*}} role output at 384
// CHECK-DAG: exec.range @x {{.*}} role input at 320
// CHECK-DAG: exec.range @g {{.*}} role gradient at 192
// CHECK-DAG: exec.range @m {{.*}} role state at 128
// CHECK-DAG: exec.range @w {{.*}} role parameter at 0
// CHECK-DAG: exec.range @t {{.*}} role buffer at 256
// CHECK-DAG: exec.range @v {{.*}} role parameter at 64
exec.range @y : memref<4xf32> role output
exec.range @x : memref<4xi32> role input
exec.range @g : memref<4xf32> role gradient
exec.range @m : memref<16xf32> role state
exec.range @w : memref<4xf32> role parameter
exec.range @t : memref<1xf32> role buffer
exec.range @v : memref<15xf32> role parameter

// -----

// Two intervals that live at different times share their bytes: %a lives in
// [0, 2), %b in [1, 3), %c in [2, 4). %a and %c share; the arena has 64 (range)
// + 2 * 64 bytes. Uses through a view count; the unused %d goes away.

// CHECK: exec.arena_bytes = 192 : i64, exec.persistent_bytes = 64 : i64
// CHECK-LABEL: exec.program @intervals_share_bytes_over_time arena 192
// CHECK-DAG: exec.alloc at [[A:64|128]] "a"
// CHECK-DAG: exec.alloc at {{64|128}} "b"
// CHECK-DAG: exec.alloc at [[A]] "c"
// CHECK-NOT: "d"

// REPORT: memory per rank: one arena of 192 B (192 bytes)
// REPORT-NEXT: persistent: 64 B
// REPORT-NEXT: 64 B parameter
// REPORT-NEXT: @intervals_share_bytes_over_time: peak 192 B (192 bytes), 128 B of it transient; 192 B (192 bytes) alive at once, which the peak exceeds by 0.00 %
// REPORT-NEXT: most is alive at exec.copy:
// REPORT-NEXT: 128 B activation
// REPORT-NEXT: the largest there:
// REPORT-NEXT: 64 B activation a
// REPORT-NEXT: 64 B activation b

// REMARK: [Passed] ArenaPlanned | Category:exec-plan-memory | Function=intervals_share_bytes_over_time | at=exec.copy, lowerBound=192, peak=192
exec.range @w : memref<16xf32> role parameter
exec.program @intervals_share_bytes_over_time {
  %w = exec.get @w : memref<16xf32>
  %a = exec.alloc "a" : memref<16xf32>
  %b = exec.alloc "b" : memref<16xf32>
  %c = exec.alloc "c" : memref<16xf32>
  %d = exec.alloc "d" : memref<16xf32>
  exec.copy on compute (%w : memref<16xf32>) outs(%a : memref<16xf32>)
  %v = exec.view %a[8] : memref<16xf32> to memref<8xf32>
  %u = exec.view %b[0] : memref<16xf32> to memref<8xf32>
  exec.copy on compute (%v : memref<8xf32>) outs(%u : memref<8xf32>)
  exec.copy on compute (%b : memref<16xf32>) outs(%c : memref<16xf32>)
  exec.copy on compute (%c : memref<16xf32>) outs(%w : memref<16xf32>)
}

// -----

// A gather in flight holds its input and its output until the await: %s, copied
// at position 0 and gathered at 1, lives to the await at 3, so %t (used at 2
// only) cannot have its bytes: the range's 64, and at position 2 64 (%s) + 128
// (%f) + 64 (%t) bytes.

fsdp.mesh @mesh ["dp_shard" = 2]
exec.range @w : memref<16xf32> role parameter
// CHECK-LABEL: exec.program @buffers_live_until_the_await arena 320
// CHECK-SAME: at = "exec.copy", kinds = [{bytes = 128 : i64, kind = "activation"}, {bytes = 128 : i64, kind = "gathered parameter"}]
// CHECK-SAME: lower_bound = 320
// CHECK-SAME: tenants = [{bytes = 128 : i64, kind = "gathered parameter", label = "full"}
exec.program @buffers_live_until_the_await {
  %w = exec.get @w : memref<16xf32>
  %s = exec.alloc "shard" : memref<16xf32>
  %f = exec.alloc "full" : memref<32xf32>
  %t = exec.alloc "other" : memref<16xf32>
  exec.copy on compute (%w : memref<16xf32>) outs(%s : memref<16xf32>)
  %token = exec.collective all_gather on gather (%s : memref<16xf32>) outs(%f : memref<32xf32>)
      over @mesh["dp_shard"] -> !exec.token
  exec.copy on compute (%w : memref<16xf32>) outs(%t : memref<16xf32>)
  exec.await %token
  %v = exec.view %f[16] : memref<32xf32> to memref<16xf32>
  exec.copy on compute (%v : memref<16xf32>) outs(%w : memref<16xf32>)
}

// -----

// Programs run one after another and share the transient bytes: the arena is
// as large as the larger one.

exec.range @w : memref<16xf32> role parameter
// CHECK: exec.arena_bytes = 192 : i64
// CHECK-LABEL: exec.program @smaller arena 128
// CHECK: exec.alloc at 64
exec.program @smaller {
  %w = exec.get @w : memref<16xf32>
  %a = exec.alloc : memref<16xf32>
  exec.copy on compute (%w : memref<16xf32>) outs(%a : memref<16xf32>)
}
// CHECK-LABEL: exec.program @larger arena 192
// CHECK: exec.alloc at 64
exec.program @larger {
  %w = exec.get @w : memref<16xf32>
  %a = exec.alloc : memref<32xf32>
  %v = exec.view %a[0] : memref<32xf32> to memref<16xf32>
  exec.copy on compute (%w : memref<16xf32>) outs(%v : memref<16xf32>)
}

// -----

// What nobody awaits is in flight until a later operation of its stream has
// been awaited: %a, read by the first gather, lives to the await and shares no
// bytes with %other, but %after may have its bytes.

fsdp.mesh @mesh ["dp_shard" = 1]
exec.range @w : memref<16xf32> role parameter
// CHECK-LABEL: exec.program @a_later_await_ends_it arena 320
// CHECK-DAG: exec.alloc at [[A:[0-9]+]] "a"
// CHECK-DAG: exec.alloc at [[A]] "after"
exec.program @a_later_await_ends_it {
  %w = exec.get @w : memref<16xf32>
  %a = exec.alloc "a" : memref<16xf32>
  %b = exec.alloc "b" : memref<16xf32>
  %c = exec.alloc "c" : memref<16xf32>
  %other = exec.alloc "other" : memref<16xf32>
  %after = exec.alloc "after" : memref<16xf32>
  exec.copy on compute (%w : memref<16xf32>) outs(%a : memref<16xf32>)
  %first = exec.collective all_gather on gather (%a : memref<16xf32>) outs(%b : memref<16xf32>)
      over @mesh["dp_shard"] -> !exec.token
  %second = exec.collective all_gather on gather (%b : memref<16xf32>) outs(%c : memref<16xf32>)
      over @mesh["dp_shard"] -> !exec.token
  exec.copy on compute (%w : memref<16xf32>) outs(%other : memref<16xf32>)
  exec.await %second
  exec.copy on compute (%c : memref<16xf32>) outs(%after : memref<16xf32>)
  exec.copy on compute (%after : memref<16xf32>) outs(%w : memref<16xf32>)
}

// -----

// An output that one program alone gives lies behind the persistent part, in
// bytes that the intervals of the program that needs more have too. What two
// programs give and scalars persist. The arena is 64 (range) + 64 (@both) + 64
// (@norm) + 512 bytes; without sharing @logits it would be 256 larger.

exec.range @w : memref<16xf32> role parameter
exec.range @logits : memref<64xf32> role output
exec.range @both : memref<16xf32> role output
exec.range @norm : memref<f32> role output
// CHECK: exec.arena_bytes = 704 : i64, exec.persistent_bytes = 192 : i64
// CHECK-DAG: exec.range @both {{.*}} at 64
// CHECK-DAG: exec.range @norm {{.*}} at 128
// CHECK-DAG: exec.range @logits {{.*}} at 192
// CHECK-LABEL: exec.program @train arena 704
// CHECK: exec.alloc at 192
// CHECK-LABEL: exec.program @evaluate arena 512
// CHECK-SAME: tenants = [{bytes = 256 : i64, kind = "output", label = "logits"}, {bytes = 64
// CHECK: exec.alloc at 448
// REPORT: one arena of 704 B
// REPORT-NEXT: persistent: 192 B
// REPORT: @evaluate: peak 512 B (512 bytes), 320 B of it transient
// REPORT: 256 B output logits
// What fits beside it names it too.
// CHECK-LABEL: exec.program @update arena 512
// CHECK-SAME: kinds = [{bytes = 256 : i64, kind = "another's output"}, {bytes = 64 : i64, kind = "activation"}]
// REPORT: @update: peak 512 B (512 bytes), 320 B of it transient
// REPORT-NEXT: most is alive at exec.copy:
// REPORT-NEXT: 256 B another's output
// REPORT-NEXT: 64 B activation
// REPORT-NEXT: the largest there:
// REPORT-NEXT: 256 B another's output logits
exec.program @train attributes {exec.outputs = ["both", "norm"]} {
  %w = exec.get @w : memref<16xf32>
  %both = exec.get @both : memref<16xf32>
  %norm = exec.get @norm : memref<f32>
  %a = exec.alloc : memref<128xf32>
  %v = exec.view %a[0] : memref<128xf32> to memref<16xf32>
  %u = exec.view %a[16] : memref<128xf32> to memref<f32>
  exec.copy on compute (%w : memref<16xf32>) outs(%v : memref<16xf32>)
  exec.copy on compute (%v : memref<16xf32>) outs(%both : memref<16xf32>)
  exec.copy on compute (%u : memref<f32>) outs(%norm : memref<f32>)
}
exec.program @evaluate attributes {exec.outputs = ["both", "logits"]} {
  %w = exec.get @w : memref<16xf32>
  %both = exec.get @both : memref<16xf32>
  %logits = exec.get @logits : memref<64xf32>
  %a = exec.alloc : memref<16xf32>
  %v = exec.view %logits[0] : memref<64xf32> to memref<16xf32>
  exec.copy on compute (%w : memref<16xf32>) outs(%a : memref<16xf32>)
  exec.copy on compute (%a : memref<16xf32>) outs(%v : memref<16xf32>)
  exec.copy on compute (%a : memref<16xf32>) outs(%both : memref<16xf32>)
}
exec.program @update {
  %w = exec.get @w : memref<16xf32>
  %a = exec.alloc : memref<16xf32>
  exec.copy on compute (%w : memref<16xf32>) outs(%a : memref<16xf32>)
  exec.copy on compute (%a : memref<16xf32>) outs(%w : memref<16xf32>)
}

// -----

// What blocks have alike is one live buffer: %a and %b live with %c, and are larger.

exec.range @w : memref<16xf32> role parameter
// CHECK-LABEL: exec.program @blocks_are_one_buffer
// CHECK-SAME: tenants = [{bytes = 128 : i64, count = 2 : i64, kind = "activation", label = "layers.*.mlp: silu"}, {bytes = 64 : i64, kind = "activation", label = "layers.2.mlp: mul"}]
// REPORT: @blocks_are_one_buffer: peak 256 B
// REPORT: the largest there:
// REPORT-NEXT: 128 B activation layers.*.mlp: silu, 2 × 64 B
// REPORT-NEXT: 64 B activation layers.2.mlp: mul
exec.program @blocks_are_one_buffer {
  %w = exec.get @w : memref<16xf32>
  %a = exec.alloc "layers.0.mlp: silu" : memref<16xf32>
  %b = exec.alloc "layers.1.mlp: silu" : memref<16xf32>
  %c = exec.alloc "layers.2.mlp: mul" : memref<16xf32>
  exec.copy on compute (%w : memref<16xf32>) outs(%a : memref<16xf32>)
  exec.copy on compute (%w : memref<16xf32>) outs(%b : memref<16xf32>)
  exec.copy on compute (%w : memref<16xf32>) outs(%c : memref<16xf32>)
  exec.copy on compute (%a : memref<16xf32>) outs(%w : memref<16xf32>)
  exec.copy on compute (%b : memref<16xf32>) outs(%w : memref<16xf32>)
  exec.copy on compute (%c : memref<16xf32>) outs(%w : memref<16xf32>)
}

// -----

// Ranges that work reads as one lie without a gap, whatever stands between them in
// the text: @q, @k, @v, then @w and @u after each other, which two programs ask for.
// CHECK: module attributes {exec.arena_bytes = 512 : i64, exec.persistent_bytes = 384 : i64}
// CHECK-DAG: exec.range @w {{.*}} at 192
// CHECK-DAG: exec.range @q {{.*}} at 0
// CHECK-DAG: exec.range @v {{.*}} at 128
// CHECK-DAG: exec.range @k {{.*}} at 64
// CHECK-DAG: exec.range @u {{.*}} at 256
// CHECK-DAG: exec.range @y {{.*}} at 320
exec.range @v : memref<4xf32> role parameter
exec.range @q : memref<16xf32> role parameter
exec.range @w : memref<16xf32> role parameter
exec.range @k : memref<4x4xf32> role parameter
exec.range @u : memref<16xf32> role parameter
exec.range @y : memref<16xf32> role output
exec.program @first {
  %w = exec.get @w adjacent [@u] : memref<32xf32>
  %q = exec.get @q adjacent [@k, @v] : memref<36xf32>
  %y = exec.get @y : memref<16xf32>
  %a = exec.view %q[16] : memref<36xf32> to memref<16xf32>
  %b = exec.view %w[16] : memref<32xf32> to memref<16xf32>
  exec.copy on compute (%a : memref<16xf32>) outs(%y : memref<16xf32>)
  exec.copy on compute (%b : memref<16xf32>) outs(%y : memref<16xf32>)
}
exec.program @second {
  %q = exec.get @q adjacent [@k] : memref<32xf32>
  %y = exec.alloc "y" : memref<32xf32>
  %z = exec.view %y[0] : memref<32xf32> to memref<16xf32>
  %a = exec.view %q[0] : memref<32xf32> to memref<16xf32>
  exec.copy on compute (%a : memref<16xf32>) outs(%z : memref<16xf32>)
}
