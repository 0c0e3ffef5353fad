// RUN: fsdp-opt --exec-plan-memory=memory-budget=256 --split-input-file --verify-diagnostics %s

// A program that does not fit is an error with the largest tenants and advice.

fsdp.mesh @mesh ["dp_shard" = 4]
exec.range @w : memref<16xf32> role parameter
// expected-error @+4 {{'exec.program' op needs 384 bytes, but the memory budget is 256}}
// expected-note @+3 {{256 bytes at the peak: gathered parameter full}}
// expected-note @+2 {{64 bytes at the peak: activation copy}}
// expected-note @+1 {{most of the peak at exec.copy is gathered parameter (256 bytes): reshard after forward, prefetch less far, or gather smaller buckets}}
exec.program @gathered_parameter_is_too_large {
  %w = exec.get @w : memref<16xf32>
  %f = exec.alloc "full" : memref<64xf32>
  %c = exec.alloc "copy" : memref<16xf32>
  exec.collective all_gather on compute (%w : memref<16xf32>) outs(%f : memref<64xf32>) over @mesh["dp_shard"]
  %v = exec.view %f[16] : memref<64xf32> to memref<16xf32>
  exec.copy on compute (%v : memref<16xf32>) outs(%c : memref<16xf32>)
}

// -----

// Persistent ranges alone may be too large.

exec.range @w : memref<100xf32> role parameter
// expected-error @+2 {{needs 448 bytes, but the memory budget is 256}}
// expected-note @+1 {{parameters, optimizer state and other persistent ranges alone take 448 bytes: shard them over more ranks}}
exec.program @persistent_ranges_are_too_large {
}
