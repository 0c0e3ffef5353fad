// RUN: fsdp-opt --exec-verify --split-input-file --verify-diagnostics %s

// Programs add to ranges, and clear them, as they state. What was there lies in
// an interval for a while, in halves that another kernel adds to once more, and
// a product is added in place.

module attributes {exec.persistent_bytes = 256 : i64, exec.arena_bytes = 448 : i64} {
  exec.range @sum : memref<4x4xf32> role state at 0
  exec.range @half : memref<16xbf16> role state at 64
  exec.range @x : memref<16xf32> role input at 128
  exec.range @y : memref<16xf32> role output at 192
  exec.kernel @add_halves over(1, 8) access [element, element, element] outputs 1 {
  ^bb0(%a: memref<8xf32>, %b: memref<8xf32>, %out: memref<8xf32>):
    exec.map {
      %0 = exec.load %a : memref<8xf32> -> f32
      %1 = exec.load %b : memref<8xf32> -> f32
      %2 = arith.mulf %0, %0 : f32
      %3 = arith.addf %2, %1 : f32
      exec.store %3, %out : f32, memref<8xf32>
    }
  }
  // Every op of a fused kernel rounds; the sum is rounded as its range is.
  exec.kernel @add_narrow over(1, 16) access [element, element, element] outputs 1 {
  ^bb0(%a: memref<16xbf16>, %b: memref<16xf32>, %out: memref<16xbf16>):
    exec.map {
      %0 = exec.load %a : memref<16xbf16> -> f32
      %1 = exec.load %b : memref<16xf32> -> f32
      %2 = arith.addf %0, %1 : f32
      %3 = arith.truncf %2 : f32 to bf16
      %4 = arith.extf %3 : bf16 to f32
      %5 = arith.addf %4, %1 : f32
      exec.store %5, %out : f32, memref<16xbf16>
    }
  }
  exec.program @adds arena 448 attributes {exec.inputs = ["x"], exec.reads = ["x", "sum", "half"], exec.writes = ["sum", "half"], exec.adds = ["sum", "half"]} {
    %sum = exec.get @sum : memref<4x4xf32>
    %half = exec.get @half : memref<16xbf16>
    %x = exec.get @x : memref<16xf32>
    %a = exec.alloc at 256 : memref<16xf32>
    %b = exec.alloc at 320 : memref<16xf32>
    %c = exec.alloc at 384 : memref<16xbf16>
    %square = exec.view %x[0] : memref<16xf32> to memref<4x4xf32>
    %flat = exec.view %sum[0] : memref<4x4xf32> to memref<16xf32>
    %x_low = exec.view %x[0] : memref<16xf32> to memref<8xf32>
    %a_low = exec.view %a[0] : memref<16xf32> to memref<8xf32>
    %a_high = exec.view %a[8] : memref<16xf32> to memref<8xf32>
    %b_low = exec.view %b[0] : memref<16xf32> to memref<8xf32>
    %b_high = exec.view %b[8] : memref<16xf32> to memref<8xf32>
    exec.gemm_add on compute (%square, %square, %sum : memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>) outs(%sum : memref<4x4xf32>)
    exec.copy on compute (%flat : memref<16xf32>) outs(%a : memref<16xf32>)
    exec.launch @add_halves on compute (%x_low, %a_high : memref<8xf32>, memref<8xf32>) outs(%b_high : memref<8xf32>)
    exec.launch @add_halves on compute (%x_low, %a_low : memref<8xf32>, memref<8xf32>) outs(%b_low : memref<8xf32>)
    exec.copy on compute (%b : memref<16xf32>) outs(%flat : memref<16xf32>)
    exec.launch @add_narrow on compute (%half, %x : memref<16xbf16>, memref<16xf32>) outs(%c : memref<16xbf16>)
    exec.copy on compute (%c : memref<16xbf16>) outs(%half : memref<16xbf16>)
  }
  exec.program @clears arena 256 attributes {exec.outputs = ["y"], exec.reads = [], exec.writes = ["sum", "half", "y"], exec.clears = ["sum", "half"]} {
    %sum = exec.get @sum : memref<4x4xf32>
    %half = exec.get @half : memref<16xbf16>
    %y = exec.get @y : memref<16xf32>
    %flat = exec.view %sum[0] : memref<4x4xf32> to memref<16xf32>
    exec.fill_zero on compute () outs(%y : memref<16xf32>)
    exec.fill_zero on compute () outs(%half : memref<16xbf16>)
    exec.copy on compute (%y : memref<16xf32>) outs(%flat : memref<16xf32>)
  }
}

// -----

// One is the sum of the other and something: both are.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 192 : i64} {
  exec.range @part : memref<16xf32> role state at 0
  exec.range @total : memref<16xf32> role state at 64
  exec.kernel @add over(1, 16) access [element, element, element] outputs 1 {
  ^bb0(%a: memref<16xf32>, %b: memref<16xf32>, %out: memref<16xf32>):
    exec.map {
      %0 = exec.load %a : memref<16xf32> -> f32
      %1 = exec.load %b : memref<16xf32> -> f32
      %2 = arith.addf %0, %1 : f32
      exec.store %2, %out : f32, memref<16xf32>
    }
  }
  exec.program @adds arena 192 attributes {exec.reads = ["part", "total"], exec.writes = ["part", "total"], exec.adds = ["part", "total"]} {
    %part = exec.get @part : memref<16xf32>
    %total = exec.get @total : memref<16xf32>
    %a = exec.alloc at 128 : memref<16xf32>
    exec.launch @add on compute (%total, %part : memref<16xf32>, memref<16xf32>) outs(%a : memref<16xf32>)
    exec.copy on compute (%a : memref<16xf32>) outs(%total : memref<16xf32>)
    exec.copy on compute (%a : memref<16xf32>) outs(%part : memref<16xf32>)
  }
}

// -----

// A statement alone makes no sum of what a program overwrites.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 192 : i64} {
  exec.range @sum : memref<16xf32> role state at 0
  exec.range @x : memref<16xf32> role input at 64
  exec.kernel @add over(1, 16) access [element, element, element] outputs 1 {
  ^bb0(%a: memref<16xf32>, %b: memref<16xf32>, %out: memref<16xf32>):
    exec.map {
      %0 = exec.load %a : memref<16xf32> -> f32
      %1 = exec.load %b : memref<16xf32> -> f32
      %2 = arith.addf %0, %1 : f32
      exec.store %2, %out : f32, memref<16xf32>
    }
  }
  exec.program @overwrites arena 192 attributes {exec.inputs = ["x"], exec.reads = ["x", "sum"], exec.writes = ["sum"], exec.adds = ["sum"]} {
    %sum = exec.get @sum : memref<16xf32>
    %x = exec.get @x : memref<16xf32>
    %a = exec.alloc at 128 : memref<16xf32>
    exec.launch @add on compute (%sum, %x : memref<16xf32>, memref<16xf32>) outs(%a : memref<16xf32>)
    // expected-error @below {{does not leave the sum of the previous value and something else in @sum, but @overwrites states that it adds to it (exec.adds)}}
    exec.copy on compute (%x : memref<16xf32>) outs(%sum : memref<16xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 192 : i64} {
  exec.range @sum : memref<16xf32> role state at 0
  exec.program @puts_it_back arena 192 attributes {exec.reads = ["sum"], exec.writes = ["sum"], exec.adds = ["sum"]} {
    %sum = exec.get @sum : memref<16xf32>
    %a = exec.alloc at 128 : memref<16xf32>
    exec.copy on compute (%sum : memref<16xf32>) outs(%a : memref<16xf32>)
    // expected-error @below {{does not leave the sum of the previous value and something else in @sum}}
    exec.copy on compute (%a : memref<16xf32>) outs(%sum : memref<16xf32>)
  }
}

// -----

// Each half is a sum of the other one.

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 128 : i64} {
  exec.range @sum : memref<16xf32> role state at 0
  exec.kernel @add over(1, 8) access [element, element, element] outputs 1 {
  ^bb0(%a: memref<8xf32>, %b: memref<8xf32>, %out: memref<8xf32>):
    exec.map {
      %0 = exec.load %a : memref<8xf32> -> f32
      %1 = exec.load %b : memref<8xf32> -> f32
      %2 = arith.mulf %1, %1 : f32
      %3 = arith.addf %0, %2 : f32
      exec.store %3, %out : f32, memref<8xf32>
    }
  }
  exec.program @swaps arena 128 attributes {exec.reads = ["sum"], exec.writes = ["sum"], exec.adds = ["sum"]} {
    %sum = exec.get @sum : memref<16xf32>
    %a = exec.alloc at 64 : memref<16xf32>
    %low = exec.view %sum[0] : memref<16xf32> to memref<8xf32>
    %high = exec.view %sum[8] : memref<16xf32> to memref<8xf32>
    %a_low = exec.view %a[0] : memref<16xf32> to memref<8xf32>
    %a_high = exec.view %a[8] : memref<16xf32> to memref<8xf32>
    exec.launch @add on compute (%low, %high : memref<8xf32>, memref<8xf32>) outs(%a_high : memref<8xf32>)
    exec.launch @add on compute (%high, %low : memref<8xf32>, memref<8xf32>) outs(%a_low : memref<8xf32>)
    // expected-error @below {{does not leave the sum of the previous value and something else in @sum}}
    exec.copy on compute (%a : memref<16xf32>) outs(%sum : memref<16xf32>)
  }
}

// -----

// A kernel that reads another column than it writes adds something else.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 192 : i64} {
  exec.range @sum : memref<16xf32> role state at 0
  exec.kernel @add over(1, 16) access [element, element] outputs 1 {
  ^bb0(%a: memref<16xf32>, %out: memref<16xf32>):
    exec.map {
      %first = arith.constant 0 : i32
      %0 = exec.load %a at %first : memref<16xf32> -> f32
      %1 = arith.constant 1.0 : f32
      %2 = arith.addf %0, %1 : f32
      exec.store %2, %out : f32, memref<16xf32>
    }
  }
  exec.program @spreads arena 192 attributes {exec.reads = ["sum"], exec.writes = ["sum"], exec.adds = ["sum"]} {
    %sum = exec.get @sum : memref<16xf32>
    %a = exec.alloc at 128 : memref<16xf32>
    exec.launch @add on compute (%sum : memref<16xf32>) outs(%a : memref<16xf32>)
    // expected-error @below {{does not leave the sum of the previous value and something else in @sum}}
    exec.copy on compute (%a : memref<16xf32>) outs(%sum : memref<16xf32>)
  }
}

// -----

// What a step clears, it adds to with a statement alone.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 192 : i64,
    nn.steps = {train = [#nn.action<@silent times 2>, #nn.action<@clears times 1>]}, exec.steps = {train = {clears = 1 : i64, silent = 2 : i64}}} {
  exec.range @sum : memref<16xf32> role state at 0
  exec.range @x : memref<16xf32> role input at 64
  exec.kernel @add over(1, 16) access [element, element, element] outputs 1 {
  ^bb0(%a: memref<16xf32>, %b: memref<16xf32>, %out: memref<16xf32>):
    exec.map {
      %0 = exec.load %a : memref<16xf32> -> f32
      %1 = exec.load %b : memref<16xf32> -> f32
      %2 = arith.addf %0, %1 : f32
      exec.store %2, %out : f32, memref<16xf32>
    }
  }
  exec.program @silent arena 192 attributes {exec.inputs = ["x"], exec.reads = ["x", "sum"], exec.writes = ["sum"]} {
    %sum = exec.get @sum : memref<16xf32>
    %x = exec.get @x : memref<16xf32>
    %a = exec.alloc at 128 : memref<16xf32>
    exec.launch @add on compute (%sum, %x : memref<16xf32>, memref<16xf32>) outs(%a : memref<16xf32>)
    // expected-error @below {{adds to @sum, which its step clears, but @silent does not state that it does (exec.adds); nn.accumulate states it}}
    exec.copy on compute (%a : memref<16xf32>) outs(%sum : memref<16xf32>)
  }
  exec.program @clears arena 128 attributes {exec.reads = [], exec.writes = ["sum"], exec.clears = ["sum"]} {
    %sum = exec.get @sum : memref<16xf32>
    exec.fill_zero on compute () outs(%sum : memref<16xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 128 : i64} {
  exec.range @sum : memref<16xf32> role state at 0
  exec.range @x : memref<16xf32> role input at 64
  exec.program @clears_to_a_value arena 128 attributes {exec.inputs = ["x"], exec.reads = ["x"], exec.writes = ["sum"], exec.clears = ["sum"]} {
    %sum = exec.get @sum : memref<16xf32>
    %x = exec.get @x : memref<16xf32>
    exec.fill_zero on compute () outs(%sum : memref<16xf32>)
    %low = exec.view %x[0] : memref<16xf32> to memref<1xf32>
    %last = exec.view %sum[15] : memref<16xf32> to memref<1xf32>
    // expected-error @below {{does not leave zeros in @sum, but @clears_to_a_value states that it clears it (exec.clears)}}
    exec.copy on compute (%low : memref<1xf32>) outs(%last : memref<1xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 64 : i64} {
  exec.range @sum : memref<16xf32> role state at 0
  // expected-error @below {{'p' clears 'sum', but does not state that it writes it}}
  exec.program @p arena 64 attributes {exec.reads = [], exec.writes = [], exec.clears = ["sum"]} {
  }
}

// -----

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 64 : i64} {
  exec.range @sum : memref<16xf32> role state at 0
  // expected-error @below {{'p' states both that it adds to 'sum' and that it clears it}}
  exec.program @p arena 64 attributes {exec.reads = ["sum"], exec.writes = ["sum"], exec.adds = ["sum"], exec.clears = ["sum"]} {
  }
}

// -----

// One call adds to several sums, of which each is stated or not.

module attributes {exec.persistent_bytes = 192 : i64, exec.arena_bytes = 192 : i64,
    nn.steps = {train = [#nn.action<@second_is_silent times 1>, #nn.action<@clears times 1>]},
    exec.steps = {train = {second_is_silent = 1 : i64, clears = 1 : i64}}} {
  exec.range @sum : memref<16xf32> role state at 0
  exec.range @other : memref<8xf32> role state at 64
  exec.range @x : memref<16xf32> role input at 128
  exec.program @second_is_silent arena 192 attributes {exec.inputs = ["x"], exec.reads = ["x", "sum", "other"], exec.writes = ["sum", "other"], exec.adds = ["sum"]} {
    %sum = exec.get @sum : memref<16xf32>
    %other = exec.get @other : memref<8xf32>
    %x = exec.get @x : memref<16xf32>
    %low = exec.view %x[0] : memref<16xf32> to memref<8xf32>
    // expected-error @below {{adds to @other, which its step clears, but @second_is_silent does not state that it does (exec.adds); nn.accumulate states it}}
    exec.accumulate on compute (%sum, %other, %x, %low : memref<16xf32>, memref<8xf32>, memref<16xf32>, memref<8xf32>)
        outs(%sum, %other : memref<16xf32>, memref<8xf32>)
  }
  exec.program @clears arena 192 attributes {exec.reads = [], exec.writes = ["sum", "other"], exec.clears = ["sum", "other"]} {
    %sum = exec.get @sum : memref<16xf32>
    %other = exec.get @other : memref<8xf32>
    exec.fill_zero on compute () outs(%sum : memref<16xf32>)
    exec.fill_zero on compute () outs(%other : memref<8xf32>)
  }
}

// -----

// Zeros that are copied from two ranges as one, and what a product adds to with a
// workspace beside it.

module attributes {exec.persistent_bytes = 256 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @c : memref<16xf32> role buffer at 0
  exec.range @d : memref<16xf32> role buffer at 64
  exec.range @e : memref<32xf32> role buffer at 128
  exec.program @clears_by_a_copy arena 512 attributes {exec.reads = [], exec.writes = ["c", "d", "e"], exec.clears = ["c", "d", "e"]} {
    %all = exec.get @c adjacent [@d] : memref<32xf32>
    %c = exec.view %all[0] : memref<32xf32> to memref<16xf32>
    %d = exec.view %all[16] : memref<32xf32> to memref<16xf32>
    %e = exec.get @e : memref<32xf32>
    exec.fill_zero on compute () outs(%c : memref<16xf32>)
    exec.fill_zero on compute () outs(%d : memref<16xf32>)
    exec.copy on compute (%all : memref<32xf32>) outs(%e : memref<32xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 192 : i64, exec.arena_bytes = 256 : i64} {
  exec.range @x : memref<4x4xf32> role input at 0
  exec.range @g : memref<4x4xf32> role input at 64
  exec.range @sum : memref<4x4xf32> role buffer at 128
  exec.program @product_with_a_workspace arena 256 attributes {exec.inputs = ["x", "g"], exec.reads = ["x", "g", "sum"], exec.writes = ["sum"], exec.adds = ["sum"]} {
    %x = exec.get @x : memref<4x4xf32>
    %g = exec.get @g : memref<4x4xf32>
    %sum = exec.get @sum : memref<4x4xf32>
    %s = exec.alloc at 192 : memref<64xi8>
    exec.gemm_add on compute (%g, %x, %sum : memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>) outs(%sum : memref<4x4xf32>) workspace(%s : memref<64xi8>) {transpose_lhs}
  }
}
