// RUN: fsdp-opt --exec-plan-memory=memory-budget=256 --split-input-file --verify-diagnostics %s

// A program that does not fit is an error with the largest live buffers and advice.

fsdp.mesh @mesh ["dp_shard" = 4]
exec.range @w : memref<16xf32> role parameter
// expected-error @+4 {{program @gathered_parameter_is_too_large needs 384 B (384 bytes), but the memory budget is 256 B (256 bytes)}}
// expected-note @+3 {{256 B at the peak: full (gathered parameter)}}
// expected-note @+2 {{64 B at the peak: copy (activation)}}
// expected-note @+1 {{most of the peak, at exec.copy, is gathered parameter, 256 B: reshard after forward (parallelism.fsdp_reshard_after_forward), prefetch less far (prefetch in a plan) or gather smaller buckets (compile.bucket)}}
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
// expected-error @+2 {{program @persistent_ranges_are_too_large needs 448 B (448 bytes), but the memory budget is 256 B (256 bytes)}}
// expected-note @+1 {{parameters, optimizer state and other persistent ranges alone take 448 B (448 bytes): shard them over more ranks (compile.mode fully_shard)}}
exec.program @persistent_ranges_are_too_large {
}

// -----

// 64 ranges of 2^56 bytes fill the 2^62 bytes of an arena.

exec.range @w0 : memref<72057594037927936xi8> role parameter
exec.range @w1 : memref<72057594037927936xi8> role parameter
exec.range @w2 : memref<72057594037927936xi8> role parameter
exec.range @w3 : memref<72057594037927936xi8> role parameter
exec.range @w4 : memref<72057594037927936xi8> role parameter
exec.range @w5 : memref<72057594037927936xi8> role parameter
exec.range @w6 : memref<72057594037927936xi8> role parameter
exec.range @w7 : memref<72057594037927936xi8> role parameter
exec.range @w8 : memref<72057594037927936xi8> role parameter
exec.range @w9 : memref<72057594037927936xi8> role parameter
exec.range @w10 : memref<72057594037927936xi8> role parameter
exec.range @w11 : memref<72057594037927936xi8> role parameter
exec.range @w12 : memref<72057594037927936xi8> role parameter
exec.range @w13 : memref<72057594037927936xi8> role parameter
exec.range @w14 : memref<72057594037927936xi8> role parameter
exec.range @w15 : memref<72057594037927936xi8> role parameter
exec.range @w16 : memref<72057594037927936xi8> role parameter
exec.range @w17 : memref<72057594037927936xi8> role parameter
exec.range @w18 : memref<72057594037927936xi8> role parameter
exec.range @w19 : memref<72057594037927936xi8> role parameter
exec.range @w20 : memref<72057594037927936xi8> role parameter
exec.range @w21 : memref<72057594037927936xi8> role parameter
exec.range @w22 : memref<72057594037927936xi8> role parameter
exec.range @w23 : memref<72057594037927936xi8> role parameter
exec.range @w24 : memref<72057594037927936xi8> role parameter
exec.range @w25 : memref<72057594037927936xi8> role parameter
exec.range @w26 : memref<72057594037927936xi8> role parameter
exec.range @w27 : memref<72057594037927936xi8> role parameter
exec.range @w28 : memref<72057594037927936xi8> role parameter
exec.range @w29 : memref<72057594037927936xi8> role parameter
exec.range @w30 : memref<72057594037927936xi8> role parameter
exec.range @w31 : memref<72057594037927936xi8> role parameter
exec.range @w32 : memref<72057594037927936xi8> role parameter
exec.range @w33 : memref<72057594037927936xi8> role parameter
exec.range @w34 : memref<72057594037927936xi8> role parameter
exec.range @w35 : memref<72057594037927936xi8> role parameter
exec.range @w36 : memref<72057594037927936xi8> role parameter
exec.range @w37 : memref<72057594037927936xi8> role parameter
exec.range @w38 : memref<72057594037927936xi8> role parameter
exec.range @w39 : memref<72057594037927936xi8> role parameter
exec.range @w40 : memref<72057594037927936xi8> role parameter
exec.range @w41 : memref<72057594037927936xi8> role parameter
exec.range @w42 : memref<72057594037927936xi8> role parameter
exec.range @w43 : memref<72057594037927936xi8> role parameter
exec.range @w44 : memref<72057594037927936xi8> role parameter
exec.range @w45 : memref<72057594037927936xi8> role parameter
exec.range @w46 : memref<72057594037927936xi8> role parameter
exec.range @w47 : memref<72057594037927936xi8> role parameter
exec.range @w48 : memref<72057594037927936xi8> role parameter
exec.range @w49 : memref<72057594037927936xi8> role parameter
exec.range @w50 : memref<72057594037927936xi8> role parameter
exec.range @w51 : memref<72057594037927936xi8> role parameter
exec.range @w52 : memref<72057594037927936xi8> role parameter
exec.range @w53 : memref<72057594037927936xi8> role parameter
exec.range @w54 : memref<72057594037927936xi8> role parameter
exec.range @w55 : memref<72057594037927936xi8> role parameter
exec.range @w56 : memref<72057594037927936xi8> role parameter
exec.range @w57 : memref<72057594037927936xi8> role parameter
exec.range @w58 : memref<72057594037927936xi8> role parameter
exec.range @w59 : memref<72057594037927936xi8> role parameter
exec.range @w60 : memref<72057594037927936xi8> role parameter
exec.range @w61 : memref<72057594037927936xi8> role parameter
exec.range @w62 : memref<72057594037927936xi8> role parameter
exec.range @w63 : memref<72057594037927936xi8> role parameter
// expected-error @below {{'exec.range' op @w64 ends 4611686018427387968 bytes from the start of the arena, which may have 2^62}}
exec.range @w64 : memref<1xi8> role parameter

// -----

// Intervals and ranges share the arena: 2^61 bytes and 2^61 + 64.

exec.range @w0 : memref<72057594037927936xi8> role parameter
exec.range @w1 : memref<72057594037927936xi8> role parameter
exec.range @w2 : memref<72057594037927936xi8> role parameter
exec.range @w3 : memref<72057594037927936xi8> role parameter
exec.range @w4 : memref<72057594037927936xi8> role parameter
exec.range @w5 : memref<72057594037927936xi8> role parameter
exec.range @w6 : memref<72057594037927936xi8> role parameter
exec.range @w7 : memref<72057594037927936xi8> role parameter
exec.range @w8 : memref<72057594037927936xi8> role parameter
exec.range @w9 : memref<72057594037927936xi8> role parameter
exec.range @w10 : memref<72057594037927936xi8> role parameter
exec.range @w11 : memref<72057594037927936xi8> role parameter
exec.range @w12 : memref<72057594037927936xi8> role parameter
exec.range @w13 : memref<72057594037927936xi8> role parameter
exec.range @w14 : memref<72057594037927936xi8> role parameter
exec.range @w15 : memref<72057594037927936xi8> role parameter
exec.range @w16 : memref<72057594037927936xi8> role parameter
exec.range @w17 : memref<72057594037927936xi8> role parameter
exec.range @w18 : memref<72057594037927936xi8> role parameter
exec.range @w19 : memref<72057594037927936xi8> role parameter
exec.range @w20 : memref<72057594037927936xi8> role parameter
exec.range @w21 : memref<72057594037927936xi8> role parameter
exec.range @w22 : memref<72057594037927936xi8> role parameter
exec.range @w23 : memref<72057594037927936xi8> role parameter
exec.range @w24 : memref<72057594037927936xi8> role parameter
exec.range @w25 : memref<72057594037927936xi8> role parameter
exec.range @w26 : memref<72057594037927936xi8> role parameter
exec.range @w27 : memref<72057594037927936xi8> role parameter
exec.range @w28 : memref<72057594037927936xi8> role parameter
exec.range @w29 : memref<72057594037927936xi8> role parameter
exec.range @w30 : memref<72057594037927936xi8> role parameter
exec.range @w31 : memref<72057594037927936xi8> role parameter
// expected-error @below {{does not fit an arena: its buffers have more than 2^62 bytes together}}
exec.program @intervals_are_too_large {
  %a0 = exec.alloc : memref<72057594037927936xi8>
  %a1 = exec.alloc : memref<72057594037927936xi8>
  %a2 = exec.alloc : memref<72057594037927936xi8>
  %a3 = exec.alloc : memref<72057594037927936xi8>
  %a4 = exec.alloc : memref<72057594037927936xi8>
  %a5 = exec.alloc : memref<72057594037927936xi8>
  %a6 = exec.alloc : memref<72057594037927936xi8>
  %a7 = exec.alloc : memref<72057594037927936xi8>
  %a8 = exec.alloc : memref<72057594037927936xi8>
  %a9 = exec.alloc : memref<72057594037927936xi8>
  %a10 = exec.alloc : memref<72057594037927936xi8>
  %a11 = exec.alloc : memref<72057594037927936xi8>
  %a12 = exec.alloc : memref<72057594037927936xi8>
  %a13 = exec.alloc : memref<72057594037927936xi8>
  %a14 = exec.alloc : memref<72057594037927936xi8>
  %a15 = exec.alloc : memref<72057594037927936xi8>
  %a16 = exec.alloc : memref<72057594037927936xi8>
  %a17 = exec.alloc : memref<72057594037927936xi8>
  %a18 = exec.alloc : memref<72057594037927936xi8>
  %a19 = exec.alloc : memref<72057594037927936xi8>
  %a20 = exec.alloc : memref<72057594037927936xi8>
  %a21 = exec.alloc : memref<72057594037927936xi8>
  %a22 = exec.alloc : memref<72057594037927936xi8>
  %a23 = exec.alloc : memref<72057594037927936xi8>
  %a24 = exec.alloc : memref<72057594037927936xi8>
  %a25 = exec.alloc : memref<72057594037927936xi8>
  %a26 = exec.alloc : memref<72057594037927936xi8>
  %a27 = exec.alloc : memref<72057594037927936xi8>
  %a28 = exec.alloc : memref<72057594037927936xi8>
  %a29 = exec.alloc : memref<72057594037927936xi8>
  %a30 = exec.alloc : memref<72057594037927936xi8>
  %a31 = exec.alloc : memref<72057594037927936xi8>
  %b = exec.alloc : memref<1xi8>
  %c = exec.alloc : memref<1xi8>
  exec.copy on compute (%a0 : memref<72057594037927936xi8>) outs(%a1 : memref<72057594037927936xi8>)
  exec.copy on compute (%a2 : memref<72057594037927936xi8>) outs(%a3 : memref<72057594037927936xi8>)
  exec.copy on compute (%a4 : memref<72057594037927936xi8>) outs(%a5 : memref<72057594037927936xi8>)
  exec.copy on compute (%a6 : memref<72057594037927936xi8>) outs(%a7 : memref<72057594037927936xi8>)
  exec.copy on compute (%a8 : memref<72057594037927936xi8>) outs(%a9 : memref<72057594037927936xi8>)
  exec.copy on compute (%a10 : memref<72057594037927936xi8>) outs(%a11 : memref<72057594037927936xi8>)
  exec.copy on compute (%a12 : memref<72057594037927936xi8>) outs(%a13 : memref<72057594037927936xi8>)
  exec.copy on compute (%a14 : memref<72057594037927936xi8>) outs(%a15 : memref<72057594037927936xi8>)
  exec.copy on compute (%a16 : memref<72057594037927936xi8>) outs(%a17 : memref<72057594037927936xi8>)
  exec.copy on compute (%a18 : memref<72057594037927936xi8>) outs(%a19 : memref<72057594037927936xi8>)
  exec.copy on compute (%a20 : memref<72057594037927936xi8>) outs(%a21 : memref<72057594037927936xi8>)
  exec.copy on compute (%a22 : memref<72057594037927936xi8>) outs(%a23 : memref<72057594037927936xi8>)
  exec.copy on compute (%a24 : memref<72057594037927936xi8>) outs(%a25 : memref<72057594037927936xi8>)
  exec.copy on compute (%a26 : memref<72057594037927936xi8>) outs(%a27 : memref<72057594037927936xi8>)
  exec.copy on compute (%a28 : memref<72057594037927936xi8>) outs(%a29 : memref<72057594037927936xi8>)
  exec.copy on compute (%a30 : memref<72057594037927936xi8>) outs(%a31 : memref<72057594037927936xi8>)
  exec.copy on compute (%b : memref<1xi8>) outs(%c : memref<1xi8>)
}

// -----

// What helps depends on what fills the peak: here gradients.

fsdp.mesh @mesh ["dp_shard" = 4]
exec.range @g : memref<4xf32> role gradient
// expected-error @+4 {{program @gradients_are_too_large needs}}
// expected-note @+3 {{256 B at the peak: full (gradient)}}
// expected-note @+2 {{64 B at the peak: scratch (workspace)}}
// expected-note @+1 {{is gradient, 256 B: await reductions earlier (defer in a plan) or reduce smaller buckets (compile.bucket)}}
exec.program @gradients_are_too_large {
  %g = exec.get @g : memref<4xf32>
  %f = exec.alloc "full" : memref<64xf32>
  %s = exec.alloc "scratch" : memref<64xi8>
  %v = exec.view %f[0] : memref<64xf32> to memref<16xf32>
  exec.collective reduce_scatter on compute (%v : memref<16xf32>) outs(%g : memref<4xf32>) workspace(%s : memref<64xi8>) over @mesh["dp_shard"]
}

// -----

// Workspaces.

exec.range @a : memref<4x4xf32> role input
exec.range @b : memref<4x4xf32> role output
// expected-error @+3 {{program @workspaces_are_too_large needs}}
// expected-note @+2 {{256 B at the peak: scratch (workspace)}}
// expected-note @+1 {{is workspace, 256 B: on CPUs, use fewer compute threads per rank (compile.threads)}}
exec.program @workspaces_are_too_large {
  %a = exec.get @a : memref<4x4xf32>
  %b = exec.get @b : memref<4x4xf32>
  %s = exec.alloc "scratch" : memref<256xi8>
  exec.gemm on compute (%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%b : memref<4x4xf32>) workspace(%s : memref<256xi8>)
}

// -----

// Activations: there is no recomputation of activations to advise.

exec.range @x : memref<4xf32> role input
// expected-error @+3 {{program @activations_are_too_large needs}}
// expected-note @+2 {{256 B at the peak: layers.1.feed_forward.w2: linear (activation)}}
// expected-note @+1 {{is activation, 256 B: compute values again in the backward pass (compile.recompute), project to logits in chunks (compile.loss_chunks), take a smaller batch (training.local_batch_size) or shorter sequences (training.seq_len)}}
exec.program @activations_are_too_large {
  %x = exec.get @x : memref<4xf32>
  %a = exec.alloc "layers.1.feed_forward.w2: linear" : memref<64xf32>
  %v = exec.view %a[0] : memref<64xf32> to memref<4xf32>
  exec.copy on compute (%x : memref<4xf32>) outs(%v : memref<4xf32>)
}

// -----

// Ranges that no arena has side by side.

exec.range @a : memref<4xf32> role parameter
exec.range @b : memref<4xf32> role parameter
exec.program @gap {
  // expected-error @below {{reads @b after @a, but that has 16 bytes, and ranges begin at multiples of 64}}
  %a = exec.get @a adjacent [@b] : memref<8xf32>
  exec.copy on compute (%a : memref<8xf32>) outs(%a : memref<8xf32>)
}

// -----

exec.range @a : memref<16xf32> role parameter
exec.range @b : memref<16xf32> role parameter
exec.range @c : memref<16xf32> role parameter
exec.program @two_after_one {
  %a = exec.get @a adjacent [@b] : memref<32xf32>
  // expected-error @below {{reads @c after @a, but @b follows that already}}
  %c = exec.get @a adjacent [@c] : memref<32xf32>
  exec.copy on compute (%a : memref<32xf32>) outs(%c : memref<32xf32>)
}

// -----

exec.range @a : memref<16xf32> role parameter
exec.range @b : memref<16xf32> role parameter
exec.range @c : memref<16xf32> role parameter
exec.program @one_after_two {
  %a = exec.get @a adjacent [@b] : memref<32xf32>
  // expected-error @below {{reads @b after @c, but it follows @a already}}
  %c = exec.get @c adjacent [@b] : memref<32xf32>
  exec.copy on compute (%a : memref<32xf32>) outs(%c : memref<32xf32>)
}

// -----

exec.range @a : memref<16xf32> role parameter
exec.range @b : memref<16xf32> role parameter
exec.range @c : memref<16xf32> role parameter
exec.program @ring {
  %a = exec.get @a adjacent [@b, @c] : memref<48xf32>
  // expected-error @below {{reads @a after @c, but that follows it already}}
  %c = exec.get @c adjacent [@a] : memref<32xf32>
  %b = exec.view %a[0] : memref<48xf32> to memref<32xf32>
  exec.copy on compute (%b : memref<32xf32>) outs(%c : memref<32xf32>)
}
