// RUN: fsdp-opt --exec-synchronize --split-input-file --verify-diagnostics %s

// Conflicts are those of bytes, so that memory is planned before.
exec.program @unplanned {
  %a = exec.alloc : memref<16xf32>
  // expected-error @below {{'exec.fill_zero' op uses a buffer without offset; run exec-plan-memory first}}
  exec.fill_zero on compute () outs(%a : memref<16xf32>)
}

// -----

exec.program @synchronized_before {
  // expected-error @below {{'exec.record' op stands in a program that is to be synchronized}}
  exec.record 0 on compute
}
