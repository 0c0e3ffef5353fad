// RUN: fsdp-opt --exec-synchronize %s | FileCheck %s

// Every range and interval has 64 bytes and its place is stated, so that the
// conflicts can be read off. Reads come first in an op, then writes.

fsdp.mesh @mesh ["dp_shard" = 1]
exec.range @w : memref<16xf32> role parameter at 0
exec.range @v : memref<16xf32> role parameter at 64
exec.range @y : memref<16xf32> role output at 128

// A gather is ordered after the start of the program and before its reader;
// the compute stream has then seen all of the gather stream, so that nothing
// is left to wait for at the end.
// CHECK-LABEL: exec.program @read_after_write
// CHECK: exec.record 0 on compute
// CHECK: exec.wait 0 on gather
// CHECK-NEXT: exec.collective all_gather on gather
// CHECK-NOT: token
// CHECK-NEXT: exec.record 1 on gather
// CHECK-NEXT: exec.wait 1 on compute
// CHECK-NEXT: exec.copy on compute
// CHECK-NEXT: }
exec.program @read_after_write {
  %w = exec.get @w : memref<16xf32>
  %y = exec.get @y : memref<16xf32>
  %f = exec.alloc at 192 : memref<16xf32>
  %t = exec.collective all_gather on gather (%w : memref<16xf32>) outs(%f : memref<16xf32>) over @mesh["dp_shard"] -> !exec.token
  exec.await %t
  exec.copy on compute (%f : memref<16xf32>) outs(%y : memref<16xf32>)
}

// The second gather overwrites what the first copy reads: it waits for that
// copy, not for the second, and the wait implies the start of the program.
// CHECK-LABEL: exec.program @write_after_read
// CHECK-NOT: exec.record 0
// CHECK: exec.copy on compute
// CHECK-NEXT: exec.record 0 on compute
// CHECK-NEXT: exec.copy on compute
// CHECK-NEXT: exec.wait 0 on gather
// CHECK-NEXT: exec.collective
// CHECK-NEXT: exec.record 1 on gather
// CHECK-NEXT: exec.wait 1 on compute
// CHECK-NEXT: }
exec.program @write_after_read {
  %w = exec.get @w : memref<16xf32>
  %v = exec.get @v : memref<16xf32>
  %y = exec.get @y : memref<16xf32>
  %f = exec.alloc at 192 : memref<16xf32>
  exec.copy on compute (%f : memref<16xf32>) outs(%y : memref<16xf32>)
  exec.copy on compute (%v : memref<16xf32>) outs(%y : memref<16xf32>)
  %t = exec.collective all_gather on gather (%w : memref<16xf32>) outs(%f : memref<16xf32>) over @mesh["dp_shard"] -> !exec.token
  exec.await %t
}

// Two writers of one interval are ordered even if nobody reads the first.
// CHECK-LABEL: exec.program @write_after_write
// CHECK: exec.copy on compute
// CHECK-NEXT: exec.record 0 on compute
// CHECK-NEXT: exec.wait 0 on gather
// CHECK-NEXT: exec.collective
exec.program @write_after_write {
  %w = exec.get @w : memref<16xf32>
  %v = exec.get @v : memref<16xf32>
  %f = exec.alloc at 192 : memref<16xf32>
  exec.copy on compute (%v : memref<16xf32>) outs(%f : memref<16xf32>)
  exec.collective all_gather on gather (%w : memref<16xf32>) outs(%f : memref<16xf32>) over @mesh["dp_shard"]
}

// Different intervals at the same bytes conflict, views count for the bytes
// they cover, and readers do not wait for readers: only the second copy of
// the compute stream writes the bytes that the copy stream reads.
// CHECK-LABEL: exec.program @bytes_count_not_values
// CHECK: exec.copy on compute
// CHECK-NEXT: exec.copy on compute
// CHECK-NEXT: exec.record 0 on compute
// CHECK-NEXT: exec.copy on compute
// CHECK-NEXT: exec.wait 0 on copy
// CHECK-NEXT: exec.copy on copy
// CHECK-NEXT: exec.record 1 on copy
// CHECK-NEXT: exec.wait 1 on compute
// CHECK-NEXT: }
exec.program @bytes_count_not_values {
  %w = exec.get @w : memref<16xf32>
  %v = exec.get @v : memref<16xf32>
  %a = exec.alloc at 192 : memref<32xf32>
  %low = exec.view %a[0] : memref<32xf32> to memref<16xf32>
  %high = exec.view %a[16] : memref<32xf32> to memref<16xf32>
  %again = exec.alloc at 256 : memref<16xf32>
  %b = exec.alloc at 320 : memref<16xf32>
  exec.copy on compute (%w : memref<16xf32>) outs(%low : memref<16xf32>)
  exec.copy on compute (%v : memref<16xf32>) outs(%high : memref<16xf32>)
  exec.copy on compute (%w : memref<16xf32>) outs(%low : memref<16xf32>)
  exec.copy on copy (%again : memref<16xf32>) outs(%b : memref<16xf32>)
}

// One record serves two waiting streams; the reduce stream learns of the
// gather through the copy stream, so that it waits for one event only; the
// compute stream waits for it alone at the end.
// CHECK-LABEL: exec.program @waits_are_transitive
// CHECK: exec.record 0 on compute
// CHECK: exec.wait 0 on gather
// CHECK-NEXT: exec.collective all_gather on gather
// CHECK-NEXT: exec.record 1 on gather
// CHECK-NEXT: exec.wait 1 on copy
// CHECK-NEXT: exec.copy on copy
// CHECK-NEXT: exec.record 2 on copy
// CHECK-NEXT: exec.wait 2 on reduce
// CHECK-NEXT: exec.collective all_reduce on reduce
// CHECK-NEXT: exec.record 3 on reduce
// CHECK-NEXT: exec.wait 1 on compute
// CHECK-NEXT: exec.copy on compute
// CHECK-NEXT: exec.wait 3 on compute
// CHECK-NEXT: }
exec.program @waits_are_transitive {
  %w = exec.get @w : memref<16xf32>
  %y = exec.get @y : memref<16xf32>
  %f = exec.alloc at 192 : memref<16xf32>
  %g = exec.alloc at 256 : memref<16xf32>
  %r = exec.alloc at 320 : memref<16xf32>
  %q = exec.alloc at 384 : memref<16xf32>
  %s = exec.alloc at 448 : memref<64xi8>
  %t = exec.alloc at 512 : memref<64xi8>
  exec.collective all_gather on gather (%w : memref<16xf32>) outs(%f : memref<16xf32>) over @mesh["dp_shard"]
  exec.copy on copy (%f : memref<16xf32>) outs(%g : memref<16xf32>)
  exec.collective all_reduce on reduce (%g, %f : memref<16xf32>, memref<16xf32>) outs(%r, %q : memref<16xf32>, memref<16xf32>)
      workspace(%s, %t : memref<64xi8>, memref<64xi8>) over @mesh["dp_shard"]
  exec.copy on compute (%f : memref<16xf32>) outs(%y : memref<16xf32>)
}

// Two awaits before one op need one wait: the later collective implies the
// earlier one of its stream.
// CHECK-LABEL: exec.program @awaits_of_one_stream_merge
// CHECK: exec.collective
// CHECK-NEXT: exec.collective
// CHECK-NEXT: exec.record 1 on gather
// CHECK-NEXT: exec.wait 1 on compute
// CHECK-NEXT: exec.copy on compute
// CHECK-NEXT: }
exec.program @awaits_of_one_stream_merge {
  %w = exec.get @w : memref<16xf32>
  %y = exec.get @y : memref<16xf32>
  %f = exec.alloc at 192 : memref<16xf32>
  %g = exec.alloc at 256 : memref<16xf32>
  %t = exec.collective all_gather on gather (%w : memref<16xf32>) outs(%f : memref<16xf32>) over @mesh["dp_shard"] -> !exec.token
  %u = exec.collective all_gather on gather (%w : memref<16xf32>) outs(%g : memref<16xf32>) over @mesh["dp_shard"] -> !exec.token
  exec.await %t
  exec.await %u
  exec.copy on compute (%f : memref<16xf32>) outs(%y : memref<16xf32>)
}

// One stream needs no events.
// CHECK-LABEL: exec.program @one_stream
// CHECK-NOT: exec.record
// CHECK-NOT: exec.wait
exec.program @one_stream {
  %w = exec.get @w : memref<16xf32>
  %y = exec.get @y : memref<16xf32>
  exec.copy on compute (%w : memref<16xf32>) outs(%y : memref<16xf32>)
  exec.copy on compute (%y : memref<16xf32>) outs(%w : memref<16xf32>)
}
