// RUN: fsdp-opt --exec-verify --split-input-file --verify-diagnostics %s

// A program states its own peak too.
module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 64 : i64} {
  // expected-error @below {{'exec.program' op has no arena; run exec-plan-memory first}}
  exec.program @unplanned {
  }
}
