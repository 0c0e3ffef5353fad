// RUN: fsdp-opt --exec-outline --split-input-file --verify-diagnostics %s

// Blocks are compared by what they do to bytes, so that memory is planned and
// events are set before.
exec.program @unplanned {
  %a = exec.alloc : memref<16xf32>
  // expected-error @below {{'exec.fill_zero' op uses a buffer without offset; run exec-plan-memory first}}
  exec.fill_zero on compute () outs(%a : memref<16xf32>)
}

// -----

exec.func @f {
  // expected-error @below {{event 1 is not one of the 1 of the call}}
  exec.record 1 on compute
}
exec.program @call_with_too_few_events {
  // expected-note @below {{called here}}
  exec.call @f() events [0]
}

// -----

exec.func @g {
}
exec.func @f {
  // expected-error @below {{'exec.call' op stands inside an exec.func}}
  exec.call @g() events []
}
exec.program @nested_calls {
  exec.call @f() events []
}

// -----

fsdp.mesh @mesh ["dp_shard" = 1]
exec.range @w : memref<16xf32> role parameter at 0
exec.range @v : memref<16xf32> role output at 64
exec.program @not_synchronized {
  %w = exec.get @w : memref<16xf32>
  %v = exec.get @v : memref<16xf32>
  // expected-error @below {{'exec.collective' op still has a token; run exec-synchronize first}}
  %t = exec.collective all_gather on gather (%w : memref<16xf32>) outs(%v : memref<16xf32>) over @mesh["dp_shard"] -> !exec.token
  exec.await %t
}
