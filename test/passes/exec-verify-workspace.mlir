// RUN: fsdp-opt --exec-verify --split-input-file --verify-diagnostics %s

// Where the module says its target, every workspace has the bytes that the
// target's libraries need. Those of "test" are fixed: 64 for a matmul, 4096 for
// attention and 8192 for its gradient; a reduction needs the pieces of all ranks
// in the type that travels; the gradient of an embedding table that is not f32
// the table in f32.

// What it needs, exactly.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 32768 : i64, exec.target = "test", exec.threads = 1 : i64} {
  exec.program @p arena 32768 attributes {exec.reads = [], exec.writes = []} {
    %0 = exec.alloc at 0 : memref<8x8xf32>
    %1 = exec.alloc at 256 : memref<8x8xf32>
    %2 = exec.alloc at 512 : memref<8x8xf32>
    %3 = exec.alloc at 768 : memref<64xi8>
    exec.fill_zero on compute () outs(%0 : memref<8x8xf32>)
    exec.fill_zero on compute () outs(%1 : memref<8x8xf32>)
    exec.gemm on compute (%0, %1 : memref<8x8xf32>, memref<8x8xf32>) outs(%2 : memref<8x8xf32>) workspace(%3 : memref<64xi8>)
  }
}

// -----

// One byte less.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 32768 : i64, exec.target = "test", exec.threads = 1 : i64} {
  exec.program @p arena 32768 {
    %0 = exec.alloc at 0 : memref<8x8xf32>
    %1 = exec.alloc at 256 : memref<8x8xf32>
    %2 = exec.alloc at 512 : memref<8x8xf32>
    %3 = exec.alloc at 768 : memref<63xi8>
    exec.fill_zero on compute () outs(%0 : memref<8x8xf32>)
    exec.fill_zero on compute () outs(%1 : memref<8x8xf32>)
    // expected-error @below {{has 63 bytes of workspace, but target test needs 64}}
    exec.gemm on compute (%0, %1 : memref<8x8xf32>, memref<8x8xf32>) outs(%2 : memref<8x8xf32>) workspace(%3 : memref<63xi8>)
  }
}

// -----

// None at all.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 32768 : i64, exec.target = "test", exec.threads = 1 : i64} {
  exec.program @p arena 32768 {
    %0 = exec.alloc at 0 : memref<8x8xf32>
    %1 = exec.alloc at 256 : memref<8x8xf32>
    %2 = exec.alloc at 512 : memref<8x8xf32>
    exec.fill_zero on compute () outs(%0 : memref<8x8xf32>)
    exec.fill_zero on compute () outs(%1 : memref<8x8xf32>)
    // expected-error @below {{has 0 bytes of workspace, but target test needs 64}}
    exec.gemm on compute (%0, %1 : memref<8x8xf32>, memref<8x8xf32>) outs(%2 : memref<8x8xf32>)
  }
}

// -----

// The same in a function, where every call would run into it.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 32768 : i64, exec.target = "test", exec.threads = 1 : i64} {
  exec.func @block {
  ^bb0(%0: memref<8x8xf32>, %1: memref<8x8xf32>, %2: memref<8x8xf32>):
    %3 = exec.alloc at 768 : memref<63xi8>
    // expected-error @below {{has 63 bytes of workspace, but target test needs 64}}
    exec.gemm on compute (%0, %1 : memref<8x8xf32>, memref<8x8xf32>) outs(%2 : memref<8x8xf32>) workspace(%3 : memref<63xi8>)
  }
  exec.program @p arena 32768 {
    %0 = exec.alloc at 0 : memref<8x8xf32>
    %1 = exec.alloc at 256 : memref<8x8xf32>
    %2 = exec.alloc at 512 : memref<8x8xf32>
    exec.fill_zero on compute () outs(%0 : memref<8x8xf32>)
    exec.fill_zero on compute () outs(%1 : memref<8x8xf32>)
    exec.call @block(%0, %1, %2) events [] : memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>
  }
}

// -----

// Without a target nothing is known of libraries.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 32768 : i64} {
  exec.program @p arena 32768 attributes {exec.reads = [], exec.writes = []} {
    %0 = exec.alloc at 0 : memref<8x8xf32>
    %1 = exec.alloc at 256 : memref<8x8xf32>
    %2 = exec.alloc at 512 : memref<8x8xf32>
    %3 = exec.alloc at 768 : memref<63xi8>
    exec.fill_zero on compute () outs(%0 : memref<8x8xf32>)
    exec.fill_zero on compute () outs(%1 : memref<8x8xf32>)
    exec.gemm on compute (%0, %1 : memref<8x8xf32>, memref<8x8xf32>) outs(%2 : memref<8x8xf32>) workspace(%3 : memref<63xi8>)
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 32768 : i64, exec.target = "test", exec.threads = 1 : i64} {
  exec.program @p arena 32768 {
    %0 = exec.alloc at 0 : memref<1x4x2x8xf32>
    %1 = exec.alloc at 1024 : memref<1x4x1x8xf32>
    %2 = exec.alloc at 1536 : memref<1x4x1x8xf32>
    %3 = exec.alloc at 2048 : memref<1x4x2x8xf32>
    %4 = exec.alloc at 3072 : memref<1x2x4xf32>
    %5 = exec.alloc at 3328 : memref<4095xi8>
    exec.fill_zero on compute () outs(%0 : memref<1x4x2x8xf32>)
    exec.fill_zero on compute () outs(%1 : memref<1x4x1x8xf32>)
    exec.fill_zero on compute () outs(%2 : memref<1x4x1x8xf32>)
    // expected-error @below {{has 4095 bytes of workspace, but target test needs 4096}}
    exec.attention on compute (%0, %1, %2 : memref<1x4x2x8xf32>, memref<1x4x1x8xf32>, memref<1x4x1x8xf32>) outs(%3, %4 : memref<1x4x2x8xf32>, memref<1x2x4xf32>) workspace(%5 : memref<4095xi8>) {causal, scale = 1.25e-01 : f64}
  }
}

// -----

// Enough for attention, not for its gradient.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 32768 : i64, exec.target = "test", exec.threads = 1 : i64} {
  exec.program @p arena 32768 {
    %0 = exec.alloc at 0 : memref<1x4x2x8xf32>
    %1 = exec.alloc at 1024 : memref<1x4x1x8xf32>
    %2 = exec.alloc at 1536 : memref<1x4x1x8xf32>
    %3 = exec.alloc at 2048 : memref<1x4x2x8xf32>
    %4 = exec.alloc at 3072 : memref<1x2x4xf32>
    %5 = exec.alloc at 3328 : memref<1x4x2x8xf32>
    %6 = exec.alloc at 4352 : memref<1x4x2x8xf32>
    %7 = exec.alloc at 5376 : memref<1x4x1x8xf32>
    %8 = exec.alloc at 5888 : memref<1x4x1x8xf32>
    %9 = exec.alloc at 6400 : memref<4096xi8>
    exec.fill_zero on compute () outs(%0 : memref<1x4x2x8xf32>)
    exec.fill_zero on compute () outs(%1 : memref<1x4x1x8xf32>)
    exec.fill_zero on compute () outs(%2 : memref<1x4x1x8xf32>)
    exec.fill_zero on compute () outs(%3 : memref<1x4x2x8xf32>)
    exec.fill_zero on compute () outs(%4 : memref<1x2x4xf32>)
    exec.fill_zero on compute () outs(%5 : memref<1x4x2x8xf32>)
    // expected-error @below {{has 4096 bytes of workspace, but target test needs 8192}}
    exec.attention_grad on compute (%0, %1, %2, %3, %4, %5 : memref<1x4x2x8xf32>, memref<1x4x1x8xf32>, memref<1x4x1x8xf32>, memref<1x4x2x8xf32>, memref<1x2x4xf32>, memref<1x4x2x8xf32>) outs(%6, %7, %8 : memref<1x4x2x8xf32>, memref<1x4x1x8xf32>, memref<1x4x1x8xf32>) workspace(%9 : memref<4096xi8>) {causal, scale = 1.25e-01 : f64}
  }
}

// -----

// 16 classes of 8 in f32.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 32768 : i64, exec.target = "test", exec.threads = 1 : i64} {
  exec.program @p arena 32768 {
    %0 = exec.alloc at 0 : memref<4xi32>
    %1 = exec.alloc at 256 : memref<4x8xbf16>
    %2 = exec.alloc at 512 : memref<16x8xbf16>
    %3 = exec.alloc at 1536 : memref<511xi8>
    exec.fill_zero on compute () outs(%0 : memref<4xi32>)
    exec.fill_zero on compute () outs(%1 : memref<4x8xbf16>)
    // expected-error @below {{has 511 bytes of workspace, but target test needs 512}}
    exec.embedding_grad on compute (%0, %1 : memref<4xi32>, memref<4x8xbf16>) outs(%2 : memref<16x8xbf16>) workspace(%3 : memref<511xi8>)
  }
}

// -----

// A table in f32 is its own sum.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 32768 : i64, exec.target = "test", exec.threads = 1 : i64} {
  exec.program @p arena 32768 attributes {exec.reads = [], exec.writes = []} {
    %0 = exec.alloc at 0 : memref<4xi32>
    %1 = exec.alloc at 256 : memref<4x8xf32>
    %2 = exec.alloc at 768 : memref<16x8xf32>
    exec.fill_zero on compute () outs(%0 : memref<4xi32>)
    exec.fill_zero on compute () outs(%1 : memref<4x8xf32>)
    exec.embedding_grad on compute (%0, %1 : memref<4xi32>, memref<4x8xf32>) outs(%2 : memref<16x8xf32>)
  }
}

// -----

// 4 ranks give 3 rows of 2 each, in bf16.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 32768 : i64, exec.target = "test", exec.threads = 1 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 4]
  exec.program @p arena 32768 {
    %0 = exec.alloc at 0 : memref<12x2xbf16>
    %1 = exec.alloc at 256 : memref<3x2xf32>
    %2 = exec.alloc at 512 : memref<47xi8>
    exec.fill_zero on compute () outs(%0 : memref<12x2xbf16>)
    // expected-error @below {{has 47 bytes of workspace, but target test needs 48}}
    exec.collective reduce_scatter on compute (%0 : memref<12x2xbf16>) outs(%1 : memref<3x2xf32>) workspace(%2 : memref<47xi8>) over @mesh["dp_shard"]
  }
}

// -----

// The second tensor of a bucket.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 32768 : i64, exec.target = "test", exec.threads = 1 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 4]
  exec.program @p arena 32768 {
    %0 = exec.alloc at 0 : memref<16xf32>
    %1 = exec.alloc at 256 : memref<16xf32>
    %2 = exec.alloc at 512 : memref<16xf32>
    %3 = exec.alloc at 768 : memref<16xf32>
    %4 = exec.alloc at 1024 : memref<64xi8>
    %5 = exec.alloc at 1280 : memref<63xi8>
    exec.fill_zero on compute () outs(%0 : memref<16xf32>)
    exec.fill_zero on compute () outs(%1 : memref<16xf32>)
    // expected-error @below {{has 63 bytes of workspace, but target test needs 64}}
    exec.collective all_reduce on compute (%0, %1 : memref<16xf32>, memref<16xf32>) outs(%2, %3 : memref<16xf32>, memref<16xf32>) workspace(%4, %5 : memref<64xi8>, memref<63xi8>) over @mesh["dp_shard"]
  }
}

// -----

// 96 MiB from 3 other ranks: on a CPU room for all of it, on a GPU for one of two
// rounds.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 268435456 : i64, exec.target = "cpu", exec.threads = 1 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 4]
  exec.program @p arena 268435456 {
    %0 = exec.alloc at 0 : memref<33554432xf32>
    %1 = exec.alloc at 134217728 : memref<8388608xf32>
    %2 = exec.alloc at 167772160 : memref<100663295xi8>
    exec.fill_zero on compute () outs(%0 : memref<33554432xf32>)
    // expected-error @below {{has 100663295 bytes of workspace, but target cpu needs 100663296}}
    exec.collective reduce_scatter on compute (%0 : memref<33554432xf32>) outs(%1 : memref<8388608xf32>) workspace(%2 : memref<100663295xi8>) over @mesh["dp_shard"]
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 268435456 : i64, exec.target = "cuda", exec.threads = 1 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 4]
  exec.program @p arena 268435456 attributes {exec.reads = [], exec.writes = []} {
    %0 = exec.alloc at 0 : memref<33554432xf32>
    %1 = exec.alloc at 134217728 : memref<8388608xf32>
    %2 = exec.alloc at 167772160 : memref<50331648xi8>
    exec.fill_zero on compute () outs(%0 : memref<33554432xf32>)
    exec.collective reduce_scatter on compute (%0 : memref<33554432xf32>) outs(%1 : memref<8388608xf32>) workspace(%2 : memref<50331648xi8>) over @mesh["dp_shard"]
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 268435456 : i64, exec.target = "cuda", exec.threads = 1 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 4]
  exec.program @p arena 268435456 {
    %0 = exec.alloc at 0 : memref<33554432xf32>
    %1 = exec.alloc at 134217728 : memref<8388608xf32>
    %2 = exec.alloc at 167772160 : memref<50331647xi8>
    exec.fill_zero on compute () outs(%0 : memref<33554432xf32>)
    // expected-error @below {{has 50331647 bytes of workspace, but target cuda needs 50331648}}
    exec.collective reduce_scatter on compute (%0 : memref<33554432xf32>) outs(%1 : memref<8388608xf32>) workspace(%2 : memref<50331647xi8>) over @mesh["dp_shard"]
  }
}

// -----

// A part of a buffer that begins within what the target's libraries take is no
// operand of theirs; other work may read it.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 2048 : i64, exec.target = "cuda"} {
  exec.program @p arena 2048 attributes {exec.reads = [], exec.writes = []} {
    %0 = exec.alloc at 0 : memref<32xf32>
    %1 = exec.alloc at 512 : memref<4x4xf32>
    %part = exec.view %0[4] : memref<32xf32> to memref<4x4xf32>
    exec.fill_zero on compute () outs(%0 : memref<32xf32>)
    exec.copy on compute (%part : memref<4x4xf32>) outs(%1 : memref<4x4xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 2048 : i64, exec.target = "test"} {
  exec.program @p arena 2048 {
    %0 = exec.alloc at 0 : memref<32xf32>
    %1 = exec.alloc at 512 : memref<4x4xf32>
    %2 = exec.alloc at 768 : memref<64xi8>
    %part = exec.view %0[4] : memref<32xf32> to memref<4x4xf32>
    exec.fill_zero on compute () outs(%0 : memref<32xf32>)
    // expected-error @below {{has an operand at byte 16 of the arena, but libraries of target test take multiples of 128}}
    exec.gemm on compute (%part, %part : memref<4x4xf32>, memref<4x4xf32>) outs(%1 : memref<4x4xf32>) workspace(%2 : memref<64xi8>)
  }
}

// -----

// So it is inside a function, where calls say which bytes an argument has.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 2048 : i64, exec.target = "test"} {
  exec.func @square {
  ^bb0(%x: memref<4x4xf32>, %y: memref<4x4xf32>, %s: memref<64xi8>):
    // expected-error @below {{has an operand at byte 16 of the arena, but libraries of target test take multiples of 128}}
    exec.gemm on compute (%x, %x : memref<4x4xf32>, memref<4x4xf32>) outs(%y : memref<4x4xf32>) workspace(%s : memref<64xi8>)
  }
  exec.program @p arena 2048 {
    %0 = exec.alloc at 0 : memref<32xf32>
    %1 = exec.alloc at 512 : memref<4x4xf32>
    %2 = exec.alloc at 768 : memref<64xi8>
    %part = exec.view %0[4] : memref<32xf32> to memref<4x4xf32>
    exec.fill_zero on compute () outs(%0 : memref<32xf32>)
    exec.call @square(%part, %1, %2) events [] : memref<4x4xf32>, memref<4x4xf32>, memref<64xi8>
  }
}

// -----

// A target that does not exist.

// expected-error @below {{has workspaces of target "abacus", which does not exist; there are cpu, cuda and test}}
module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 64 : i64, exec.target = "abacus"} {
}

// -----

// A GPU's attention wants 4 MiB and more, whatever its size.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 32768 : i64, exec.target = "cuda"} {
  exec.program @p arena 32768 {
    %q = exec.alloc at 0 : memref<1x4x2x8xf32>
    %lse = exec.alloc at 256 : memref<1x2x4xf32>
    %o = exec.alloc at 512 : memref<1x4x2x8xf32>
    %s = exec.alloc at 1024 : memref<4096xi8>
    exec.fill_zero on compute () outs(%q : memref<1x4x2x8xf32>)
    // expected-error @below {{has 4096 bytes of workspace, but target cuda needs 4194304}}
    exec.attention on compute (%q, %q, %q : memref<1x4x2x8xf32>, memref<1x4x2x8xf32>, memref<1x4x2x8xf32>)
        outs(%o, %lse : memref<1x4x2x8xf32>, memref<1x2x4xf32>) workspace(%s : memref<4096xi8>) {scale = 1.0 : f64}
  }
}

// -----

// A sum of the library's own needs no workspace, and a library.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 1024 : i64, exec.target = "cuda", exec.threads = 1 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 2]
  exec.program @p arena 1024 attributes {exec.reads = [], exec.writes = []} {
    %0 = exec.alloc at 0 : memref<8xf32>
    %1 = exec.alloc at 256 : memref<0xi8>
    exec.fill_zero on compute () outs(%0 : memref<8xf32>)
    exec.collective all_reduce on compute (%0 : memref<8xf32>) outs(%0 : memref<8xf32>) workspace(%1 : memref<0xi8>) over @mesh["dp_shard"] {fast}
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 256 : i64, exec.target = "cpu", exec.threads = 1 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 2]
  exec.program @p arena 256 {
    %0 = exec.alloc at 0 : memref<8xf32>
    %1 = exec.alloc at 64 : memref<0xi8>
    exec.fill_zero on compute () outs(%0 : memref<8xf32>)
    // expected-error @below {{is fast, but target cpu has no library that adds over ranks}}
    exec.collective all_reduce on compute (%0 : memref<8xf32>) outs(%0 : memref<8xf32>) workspace(%1 : memref<0xi8>) over @mesh["dp_shard"] {fast}
  }
}

// -----

// Everything begins at a multiple of what the target says, on which targets
// differ.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 512 : i64, exec.target = "cpu", exec.threads = 1 : i64} {
  exec.program @p arena 512 attributes {exec.reads = [], exec.writes = []} {
    %0 = exec.alloc at 64 : memref<16xf32>
    exec.fill_zero on compute () outs(%0 : memref<16xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 512 : i64, exec.target = "test", exec.threads = 1 : i64} {
  exec.program @p arena 512 attributes {exec.reads = [], exec.writes = []} {
    %0 = exec.alloc at 128 : memref<16xf32>
    exec.fill_zero on compute () outs(%0 : memref<16xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 512 : i64, exec.target = "test", exec.threads = 1 : i64} {
  exec.program @p arena 512 {
    // expected-error @below {{has offset 64, but on target test all have multiples of 128 bytes}}
    %0 = exec.alloc at 64 : memref<16xf32>
    exec.fill_zero on compute () outs(%0 : memref<16xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 512 : i64, exec.arena_bytes = 512 : i64, exec.target = "test", exec.threads = 1 : i64} {
  exec.range @x : memref<16xf32> role input at 0
  // expected-error @below {{has offset 64, but on target test all have multiples of 128 bytes}}
  exec.range @y : memref<16xf32> role input at 64
}

// -----

// So do parts of buffers that a library computes with.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 512 : i64, exec.target = "test", exec.threads = 1 : i64} {
  exec.program @p arena 512 {
    %0 = exec.alloc at 0 : memref<32xf32>
    %1 = exec.alloc at 128 : memref<4x4xf32>
    %2 = exec.alloc at 256 : memref<64xi8>
    %part = exec.view %0[16] : memref<32xf32> to memref<4x4xf32>
    exec.fill_zero on compute () outs(%0 : memref<32xf32>)
    // expected-error @below {{has an operand at byte 64 of the arena, but libraries of target test take multiples of 128}}
    exec.gemm on compute (%part, %part : memref<4x4xf32>, memref<4x4xf32>) outs(%1 : memref<4x4xf32>) workspace(%2 : memref<64xi8>)
  }
}
