// RUN: fsdp-opt --exec-verify --split-input-file --verify-diagnostics %s

// Programs do what they state of ranges: two microbatches, whose sum one
// program creates and another takes, after a count.

module attributes {exec.persistent_bytes = 384 : i64, exec.arena_bytes = 448 : i64,
    nn.steps = {train = [#nn.action<@count times 1>, #nn.action<@accumulate times 2>, #nn.action<@update times 1>]},
    exec.steps = {train = {accumulate = 2 : i64, count = 1 : i64, update = 1 : i64}}} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @sum : memref<16xf32> role state at 64
  exec.range @g : memref<16xf32> role gradient at 128
  exec.range @x : memref<16xf32> role input at 192
  exec.range @n : memref<16xf32> role input at 256
  exec.range @y : memref<16xf32> role output at 320
  exec.kernel @add over(1, 16) access [element, element, element, element] outputs 1 {
  ^bb0(%a: memref<16xf32>, %b: memref<16xf32>, %c: memref<16xf32>, %out: memref<16xf32>):
    exec.map {
      %0 = exec.load %a : memref<16xf32> -> f32
      %1 = exec.load %b : memref<16xf32> -> f32
      %2 = exec.load %c : memref<16xf32> -> f32
      %3 = arith.addf %0, %1 : f32
      %4 = arith.addf %2, %3 : f32
      exec.store %4, %out : f32, memref<16xf32>
    }
  }
  exec.program @count arena 384 attributes {exec.inputs = ["x"], exec.outputs = ["n"], exec.reads = ["x"], exec.writes = ["n"]} {
    %x = exec.get @x : memref<16xf32>
    %n = exec.get @n : memref<16xf32>
    exec.copy on compute (%x : memref<16xf32>) outs(%n : memref<16xf32>)
  }
  exec.program @accumulate arena 448 attributes {exec.inputs = ["x", "n"], exec.outputs = [], exec.reads = ["x", "n", "sum"], exec.writes = ["sum"], exec.adds = ["sum"]} {
    %x = exec.get @x : memref<16xf32>
    %n = exec.get @n : memref<16xf32>
    %sum = exec.get @sum : memref<16xf32>
    %a = exec.alloc at 384 : memref<16xf32>
    exec.launch @add on compute (%x, %n, %sum : memref<16xf32>, memref<16xf32>, memref<16xf32>) outs(%a : memref<16xf32>)
    exec.copy on compute (%a : memref<16xf32>) outs(%sum : memref<16xf32>)
  }
  // Halves make a whole.
  exec.program @update arena 384 attributes {exec.inputs = [], exec.outputs = ["y"], exec.reads = ["sum", "w"], exec.writes = ["sum", "w", "g", "y"], exec.clears = ["sum"]} {
    %w = exec.get @w : memref<16xf32>
    %sum = exec.get @sum : memref<16xf32>
    %g = exec.get @g : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %low = exec.view %sum[0] : memref<16xf32> to memref<8xf32>
    %high = exec.view %sum[8] : memref<16xf32> to memref<8xf32>
    %g_low = exec.view %g[0] : memref<16xf32> to memref<8xf32>
    %g_high = exec.view %g[8] : memref<16xf32> to memref<8xf32>
    exec.copy on compute (%high : memref<8xf32>) outs(%g_high : memref<8xf32>)
    exec.copy on compute (%low : memref<8xf32>) outs(%g_low : memref<8xf32>)
    exec.copy on compute (%w : memref<16xf32>) outs(%y : memref<16xf32>)
    exec.copy on compute (%g : memref<16xf32>) outs(%w : memref<16xf32>)
    exec.fill_zero on compute () outs(%sum : memref<16xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 128 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  // expected-error @below {{does not write bytes [96, 128) of @y, which it returns}}
  exec.program @half_of_an_output arena 128 attributes {exec.outputs = ["y"], exec.reads = ["w"], exec.writes = ["y"]} {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %from = exec.view %w[0] : memref<16xf32> to memref<8xf32>
    %to = exec.view %y[0] : memref<16xf32> to memref<8xf32>
    exec.copy on compute (%from : memref<8xf32>) outs(%to : memref<8xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 128 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @v : memref<16xf32> role parameter at 64
  // expected-error @below {{does not write bytes [0, 64) of @w, which it states to write whole}}
  exec.program @forgets_a_parameter arena 128 attributes {exec.reads = [], exec.writes = ["w"]} {
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 128 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @v : memref<16xf32> role parameter at 64
  exec.program @writes_another_parameter arena 128 attributes {exec.reads = ["w"], exec.writes = []} {
    %w = exec.get @w : memref<16xf32>
    %v = exec.get @v : memref<16xf32>
    // expected-error @below {{writes @v, but @writes_another_parameter does not state that it does (exec.writes)}}
    exec.copy on compute (%w : memref<16xf32>) outs(%v : memref<16xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 128 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @v : memref<16xf32> role parameter at 64
  exec.program @reads_another_parameter arena 128 attributes {exec.reads = [], exec.writes = ["v"]} {
    %w = exec.get @w : memref<16xf32>
    %v = exec.get @v : memref<16xf32>
    // expected-error @below {{reads what @w held before @reads_another_parameter, which does not state that it does (exec.reads)}}
    exec.copy on compute (%w : memref<16xf32>) outs(%v : memref<16xf32>)
  }
}

// -----

// What it has written itself, a program may read without a word.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 128 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @v : memref<16xf32> role parameter at 64
  // expected-error @below {{does not read @v, as it states (exec.reads)}}
  exec.program @reads_less arena 128 attributes {exec.reads = ["w", "v"], exec.writes = ["v", "w"]} {
    %w = exec.get @w : memref<16xf32>
    %v = exec.get @v : memref<16xf32>
    exec.copy on compute (%w : memref<16xf32>) outs(%v : memref<16xf32>)
    exec.copy on compute (%v : memref<16xf32>) outs(%w : memref<16xf32>)
  }
}

// -----

// A gradient of which another program writes one byte is not whole.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 128 : i64} {
  exec.range @w : memref<64xi8> role parameter at 0
  exec.range @g : memref<64xi8> role gradient at 64
  exec.program @accumulate arena 128 attributes {exec.reads = ["w"], exec.writes = []} {
    %w = exec.get @w : memref<64xi8>
    %g = exec.get @g : memref<64xi8>
    %from = exec.view %w[0] : memref<64xi8> to memref<1xi8>
    %to = exec.view %g[0] : memref<64xi8> to memref<1xi8>
    exec.copy on compute (%from : memref<1xi8>) outs(%to : memref<1xi8>)
  }
  exec.program @update arena 128 attributes {exec.reads = ["g"], exec.writes = ["w"]} {
    %w = exec.get @w : memref<64xi8>
    %g = exec.get @g : memref<64xi8>
    // expected-error @below {{reads bytes [64, 128) of "g" before the program writes them: what a range of role gradient holds is left from the last run}}
    exec.copy on compute (%g : memref<64xi8>) outs(%w : memref<64xi8>)
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 128 : i64} {
  exec.range @w : memref<64xi8> role parameter at 0
  exec.range @g : memref<64xi8> role gradient at 64
  // expected-error @below {{does not write bytes [65, 128) of @g, which it states to write whole}}
  exec.program @accumulate arena 128 attributes {exec.reads = ["w"], exec.writes = ["g"]} {
    %w = exec.get @w : memref<64xi8>
    %g = exec.get @g : memref<64xi8>
    %from = exec.view %w[0] : memref<64xi8> to memref<1xi8>
    %to = exec.view %g[0] : memref<64xi8> to memref<1xi8>
    exec.copy on compute (%from : memref<1xi8>) outs(%to : memref<1xi8>)
  }
  exec.program @update arena 128 attributes {exec.reads = ["g"], exec.writes = ["w"]} {
    %w = exec.get @w : memref<64xi8>
    %g = exec.get @g : memref<64xi8>
    exec.copy on compute (%g : memref<64xi8>) outs(%w : memref<64xi8>)
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  // expected-error @below {{does not state what it reads and writes: it has no exec.reads}}
  exec.program @silent arena 0 {
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  // expected-error @below {{does not state what it reads and writes: it has no exec.writes}}
  exec.program @half_silent arena 0 attributes {exec.reads = []} {
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  // expected-error @below {{names "x" in exec.inputs, but no range is called so}}
  exec.program @a_wrong_name arena 0 attributes {exec.inputs = ["x"], exec.reads = [], exec.writes = []} {
  }
}

// -----

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 64 : i64} {
  exec.range @y : memref<16xf32> role output at 0
  // expected-error @below {{'silent' gives 'y', but does not state that it writes it}}
  exec.program @silent arena 64 attributes {exec.outputs = ["y"], exec.reads = [], exec.writes = []} {
  }
}

// -----

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 64 : i64} {
  exec.range @y : memref<16xf32> role state at 0
  // expected-error @below {{'update' adds to 'y', but does not state that it reads and writes it}}
  exec.program @update arena 64 attributes {exec.reads = [], exec.writes = [], exec.adds = ["y"]} {
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 128 : i64} {
  exec.range @x : memref<16xf32> role input at 0
  exec.range @y : memref<16xf32> role output at 64
  // expected-error @below {{reads the input @x, which is not among its exec.inputs}}
  exec.program @an_input_that_nobody_fills arena 128 attributes {exec.outputs = ["y"], exec.reads = ["x"], exec.writes = ["y"]} {
    %x = exec.get @x : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    exec.copy on compute (%x : memref<16xf32>) outs(%y : memref<16xf32>)
  }
}

// -----

// expected-error @below {{step 'train' runs 'train', which does not exist, 0 times, but states once; let the list (nn.steps) and the statement (exec.steps) agree}}
module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64, exec.steps = {train = {train = 1 : i64}}} {
}

// -----

// expected-error @below {{has nn.steps, but does not state how often its steps run each program (exec.steps), as exec-lower does}}
module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64, nn.steps = {train = [#nn.action<@p times 1>]}} {
  exec.program @p arena 0 attributes {exec.reads = [], exec.writes = []} {
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64,
    nn.steps = {train = [#nn.action<@p times 1>, #nn.action<@p times 2>]}, exec.steps = {train = {p = 2 : i64}}} {
  // expected-error @below {{step 'train' runs 'p' 3 times, but states 2 times; let the list (nn.steps) and the statement (exec.steps) agree}}
  exec.program @p arena 0 attributes {exec.reads = [], exec.writes = []} {
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64,
    nn.steps = {train = [#nn.action<@k times 1>]}, exec.steps = {train = {k = 1 : i64}}} {
  // expected-error @below {{@k is run by step 'train', but is no exec.program; list programs alone in nn.steps}}
  exec.func @k {
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 128 : i64,
    nn.steps = {train = [#nn.action<@take times 1>, #nn.action<@give times 1>]}, exec.steps = {train = {give = 1 : i64, take = 1 : i64}}} {
  exec.range @x : memref<16xf32> role input at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.program @give arena 128 attributes {exec.outputs = ["x"], exec.reads = [], exec.writes = ["x"]} {
    %x = exec.get @x : memref<16xf32>
    exec.fill_zero on compute () outs(%x : memref<16xf32>)
  }
  // expected-error @below {{step 'train': 'take' reads 'x', which 'give' writes, before that has run; list 'give' before 'take' in nn.steps}}
  exec.program @take arena 128 attributes {exec.inputs = ["x"], exec.outputs = ["y"], exec.reads = ["x"], exec.writes = ["y"]} {
    %x = exec.get @x : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    exec.copy on compute (%x : memref<16xf32>) outs(%y : memref<16xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  // expected-error @below {{stands inside another module: put programs and what they use into one}}
  module {
    exec.program @inside arena 0 attributes {exec.reads = [], exec.writes = []} {
    }
  }
}

// -----

// Work that reads two ranges as one reads both, in a function too: one that is not
// stated is found.

module attributes {exec.persistent_bytes = 192 : i64, exec.arena_bytes = 320 : i64} {
  exec.range @a : memref<16xf32> role parameter at 0
  exec.range @b : memref<16xf32> role parameter at 64
  exec.range @y : memref<16xf32> role output at 128
  exec.func @f {
  ^bb0(%all: memref<32xf32>, %out: memref<32xf32>):
    exec.copy on compute (%all : memref<32xf32>) outs(%out : memref<32xf32>)
  }
  exec.program @reads_both arena 320 attributes {exec.outputs = ["y"], exec.reads = ["a", "b"], exec.writes = ["y"]} {
    %all = exec.get @a adjacent [@b] : memref<32xf32>
    %y = exec.get @y : memref<16xf32>
    %t = exec.alloc at 192 : memref<32xf32>
    exec.call @f(%all, %t) events [] : memref<32xf32>, memref<32xf32>
    %half = exec.view %t[16] : memref<32xf32> to memref<16xf32>
    exec.copy on compute (%half : memref<16xf32>) outs(%y : memref<16xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 192 : i64, exec.arena_bytes = 320 : i64} {
  exec.range @a : memref<16xf32> role parameter at 0
  exec.range @b : memref<16xf32> role parameter at 64
  exec.range @y : memref<16xf32> role output at 128
  exec.program @hides_the_second arena 320 attributes {exec.outputs = ["y"], exec.reads = ["a"], exec.writes = ["y"]} {
    %all = exec.get @a adjacent [@b] : memref<32xf32>
    %y = exec.get @y : memref<16xf32>
    %t = exec.alloc at 192 : memref<32xf32>
    // expected-error @below {{reads what @b held before @hides_the_second, which does not state that it does (exec.reads)}}
    exec.copy on compute (%all : memref<32xf32>) outs(%t : memref<32xf32>)
    %half = exec.view %t[16] : memref<32xf32> to memref<16xf32>
    exec.copy on compute (%half : memref<16xf32>) outs(%y : memref<16xf32>)
  }
}
