// RUN: fsdp-opt --exec-verify --split-input-file --verify-diagnostics %s

// The list of a step, by what its programs state. Programs here do no work but
// to copy and to clear.

// A program that no step runs may set what a step reads, of the model or of the
// step itself; and a step may end with what clears a sum, or begin with it.

module attributes {exec.persistent_bytes = 320 : i64, exec.arena_bytes = 384 : i64,
    nn.steps = {first = [#nn.action<@clear times 1>, #nn.action<@add times 2>, #nn.action<@use times 1>, #nn.action<@clear times 1>],
                train = [#nn.action<@add times 2>, #nn.action<@use times 1>, #nn.action<@clear times 1>]},
    exec.steps = {first = {add = 2 : i64, clear = 2 : i64, use = 1 : i64}, train = {add = 2 : i64, clear = 1 : i64, use = 1 : i64}}} {
  exec.range @w : memref<16xf32> role parameter at 0 {init = #nn.ones}
  exec.range @sum : memref<16xf32> role state at 64 {init = #nn.zeros}
  exec.range @m : memref<16xf32> role state at 128
  exec.range @x : memref<16xf32> role input at 192
  exec.range @y : memref<16xf32> role output at 256
  exec.kernel @add_kernel over(1, 16) access [element, element, element] outputs 1 {
  ^bb0(%a: memref<16xf32>, %b: memref<16xf32>, %out: memref<16xf32>):
    exec.map {
      %0 = exec.load %a : memref<16xf32> -> f32
      %1 = exec.load %b : memref<16xf32> -> f32
      %2 = arith.addf %0, %1 : f32
      exec.store %2, %out : f32, memref<16xf32>
    }
  }
  exec.program @add arena 384 attributes {exec.reads = ["w", "sum"], exec.writes = ["sum"], exec.adds = ["sum"]} {
    %w = exec.get @w : memref<16xf32>
    %sum = exec.get @sum : memref<16xf32>
    %a = exec.alloc at 320 : memref<16xf32>
    exec.launch @add_kernel on compute (%sum, %w : memref<16xf32>, memref<16xf32>) outs(%a : memref<16xf32>)
    exec.copy on compute (%a : memref<16xf32>) outs(%sum : memref<16xf32>)
  }
  exec.program @use arena 384 attributes {exec.outputs = ["y"], exec.reads = ["sum", "m"], exec.writes = ["y", "m"]} {
    %m = exec.get @m : memref<16xf32>
    %sum = exec.get @sum : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    exec.copy on compute (%m : memref<16xf32>) outs(%y : memref<16xf32>)
    exec.copy on compute (%sum : memref<16xf32>) outs(%m : memref<16xf32>)
  }
  exec.program @clear arena 384 attributes {exec.reads = [], exec.writes = ["sum"], exec.clears = ["sum"]} {
    %sum = exec.get @sum : memref<16xf32>
    exec.fill_zero on compute () outs(%sum : memref<16xf32>)
  }
  exec.program @set arena 384 attributes {exec.inputs = ["x"], exec.reads = ["x"], exec.writes = ["w", "m"]} {
    %x = exec.get @x : memref<16xf32>
    %w = exec.get @w : memref<16xf32>
    %m = exec.get @m : memref<16xf32>
    exec.copy on compute (%x : memref<16xf32>) outs(%w : memref<16xf32>)
    exec.copy on compute (%x : memref<16xf32>) outs(%m : memref<16xf32>)
  }
}

// -----

// What hands on is not the model's: somebody in the step has to make it.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 128 : i64,
    nn.steps = {train = [#nn.action<@take times 1>]}, exec.steps = {train = {take = 1 : i64}}} {
  exec.range @kept : memref<16xf32> role state at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.program @give arena 128 attributes {exec.reads = [], exec.writes = ["kept"]} {
    %kept = exec.get @kept : memref<16xf32>
    exec.fill_zero on compute () outs(%kept : memref<16xf32>)
  }
  // expected-error @below {{step 'train': 'take' reads 'kept', which 'give' writes, but the step does not run that; list 'give' before 'take' in nn.steps}}
  exec.program @take arena 128 attributes {exec.outputs = ["y"], exec.reads = ["kept"], exec.writes = ["y"]} {
    %kept = exec.get @kept : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    exec.copy on compute (%kept : memref<16xf32>) outs(%y : memref<16xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 192 : i64,
    nn.steps = {train = [#nn.action<@add times 2>]},
    exec.steps = {train = {add = 2 : i64}}} {
  exec.range @sum : memref<16xf32> role state at 0 {init = #nn.zeros}
  exec.range @x : memref<16xf32> role input at 64
  exec.kernel @add_kernel over(1, 16) access [element, element, element] outputs 1 {
  ^bb0(%a: memref<16xf32>, %b: memref<16xf32>, %out: memref<16xf32>):
    exec.map {
      %0 = exec.load %a : memref<16xf32> -> f32
      %1 = exec.load %b : memref<16xf32> -> f32
      %2 = arith.addf %0, %1 : f32
      exec.store %2, %out : f32, memref<16xf32>
    }
  }
  // expected-error @below {{step 'train': it ends with what 'add' has added to 'sum', with which the next step would begin; clear it (nn.clear) after the last program that reads it}}
  exec.program @add arena 192 attributes {exec.inputs = ["x"], exec.reads = ["x", "sum"], exec.writes = ["sum"], exec.adds = ["sum"]} {
    %x = exec.get @x : memref<16xf32>
    %sum = exec.get @sum : memref<16xf32>
    %a = exec.alloc at 128 : memref<16xf32>
    exec.launch @add_kernel on compute (%sum, %x : memref<16xf32>, memref<16xf32>) outs(%a : memref<16xf32>)
    exec.copy on compute (%a : memref<16xf32>) outs(%sum : memref<16xf32>)
  }
  exec.program @clear arena 192 attributes {exec.reads = [], exec.writes = ["sum"], exec.clears = ["sum"]} {
    %sum = exec.get @sum : memref<16xf32>
    exec.fill_zero on compute () outs(%sum : memref<16xf32>)
  }
}

// -----

// A sum of one step is no garbage of the other one.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 192 : i64,
    nn.steps = {train = [#nn.action<@add times 1>, #nn.action<@clear times 1>], warm = [#nn.action<@clear times 1>, #nn.action<@add times 1>]},
    exec.steps = {train = {add = 1 : i64, clear = 1 : i64}, warm = {add = 1 : i64, clear = 1 : i64}}} {
  exec.range @sum : memref<16xf32> role state at 0 {init = #nn.zeros}
  exec.range @x : memref<16xf32> role input at 64
  exec.kernel @add_kernel over(1, 16) access [element, element, element] outputs 1 {
  ^bb0(%a: memref<16xf32>, %b: memref<16xf32>, %out: memref<16xf32>):
    exec.map {
      %0 = exec.load %a : memref<16xf32> -> f32
      %1 = exec.load %b : memref<16xf32> -> f32
      %2 = arith.addf %0, %1 : f32
      exec.store %2, %out : f32, memref<16xf32>
    }
  }
  // expected-error @below {{step 'warm' ends with what 'add' leaves in 'sum', with which step 'train' would begin; clear it (nn.clear) in step 'warm'}}
  exec.program @add arena 192 attributes {exec.inputs = ["x"], exec.reads = ["x", "sum"], exec.writes = ["sum"], exec.adds = ["sum"]} {
    %x = exec.get @x : memref<16xf32>
    %sum = exec.get @sum : memref<16xf32>
    %a = exec.alloc at 128 : memref<16xf32>
    exec.launch @add_kernel on compute (%sum, %x : memref<16xf32>, memref<16xf32>) outs(%a : memref<16xf32>)
    exec.copy on compute (%a : memref<16xf32>) outs(%sum : memref<16xf32>)
  }
  exec.program @clear arena 192 attributes {exec.reads = [], exec.writes = ["sum"], exec.clears = ["sum"]} {
    %sum = exec.get @sum : memref<16xf32>
    exec.fill_zero on compute () outs(%sum : memref<16xf32>)
  }
}

// -----

// Nothing but zeros is nothing.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 192 : i64,
    nn.steps = {train = [#nn.action<@add times 1>, #nn.action<@clear times 1>]},
    exec.steps = {train = {add = 1 : i64, clear = 1 : i64}}} {
  exec.range @sum : memref<16xf32> role state at 0 {init = #nn.ones}
  exec.range @x : memref<16xf32> role input at 64
  exec.kernel @add_kernel over(1, 16) access [element, element, element] outputs 1 {
  ^bb0(%a: memref<16xf32>, %b: memref<16xf32>, %out: memref<16xf32>):
    exec.map {
      %0 = exec.load %a : memref<16xf32> -> f32
      %1 = exec.load %b : memref<16xf32> -> f32
      %2 = arith.addf %0, %1 : f32
      exec.store %2, %out : f32, memref<16xf32>
    }
  }
  // expected-error @below {{step 'train': 'add' adds to 'sum', which does not begin with zeros; declare it with #nn.zeros, or clear it in the step before}}
  exec.program @add arena 192 attributes {exec.inputs = ["x"], exec.reads = ["x", "sum"], exec.writes = ["sum"], exec.adds = ["sum"]} {
    %x = exec.get @x : memref<16xf32>
    %sum = exec.get @sum : memref<16xf32>
    %a = exec.alloc at 128 : memref<16xf32>
    exec.launch @add_kernel on compute (%sum, %x : memref<16xf32>, memref<16xf32>) outs(%a : memref<16xf32>)
    exec.copy on compute (%a : memref<16xf32>) outs(%sum : memref<16xf32>)
  }
  exec.program @clear arena 192 attributes {exec.reads = [], exec.writes = ["sum"], exec.clears = ["sum"]} {
    %sum = exec.get @sum : memref<16xf32>
    exec.fill_zero on compute () outs(%sum : memref<16xf32>)
  }
}

// -----

// How many microbatches a step has, its inputs say: four rows of a step are two
// of two, whatever the list and the statement agree on.

module attributes {exec.persistent_bytes = 192 : i64, exec.arena_bytes = 192 : i64,
    nn.steps = {train = [#nn.action<@label times 1>, #nn.action<@slice times 3>]},
    exec.steps = {train = {label = 1 : i64, slice = 3 : i64}}} {
  exec.range @x : memref<2x4xf32> role input at 0
  exec.range @x.of_step : memref<4x4xf32> role input at 64
  exec.range @y : memref<2x4xf32> role output at 128
  exec.program @label arena 192 attributes {exec.inputs = ["x.of_step"], exec.reads = [], exec.writes = []} {
  }
  // expected-error @below {{step 'train' runs 'slice', which takes 'x', 3 times, but 'x.of_step' of 'label' holds 2 of it; run it 2 times (nn.steps, exec.steps)}}
  exec.program @slice arena 192 attributes {exec.inputs = ["x"], exec.outputs = ["y"], exec.reads = ["x"], exec.writes = ["y"]} {
    %x = exec.get @x : memref<2x4xf32>
    %y = exec.get @y : memref<2x4xf32>
    exec.copy on compute (%x : memref<2x4xf32>) outs(%y : memref<2x4xf32>)
  }
}

// -----

// A rank holds one row of two and three of six: the whole tensors count.

module attributes {exec.persistent_bytes = 192 : i64, exec.arena_bytes = 192 : i64,
    nn.steps = {train = [#nn.action<@label times 1>, #nn.action<@slice times 1>, #nn.action<@slice times 2>]},
    exec.steps = {train = {label = 1 : i64, slice = 3 : i64}}} {
  exec.range @x : memref<1x4xf32> role input at 0 {full = tensor<2x4xf32>}
  exec.range @x.of_step : memref<3x4xf32> role input at 64 {full = tensor<6x4xf32>}
  exec.program @label arena 192 attributes {exec.inputs = ["x.of_step"], exec.reads = [], exec.writes = []} {
  }
  exec.program @slice arena 192 attributes {exec.inputs = ["x"], exec.reads = [], exec.writes = []} {
  }
}

// -----

module attributes {exec.persistent_bytes = 192 : i64, exec.arena_bytes = 192 : i64,
    nn.steps = {train = [#nn.action<@label times 1>, #nn.action<@slice times 2>]},
    exec.steps = {train = {label = 1 : i64, slice = 2 : i64}}} {
  exec.range @x : memref<2x4xf32> role input at 0
  exec.range @x.of_step : memref<4x3xf32> role input at 64
  exec.program @label arena 192 attributes {exec.inputs = ["x.of_step"], exec.reads = [], exec.writes = []} {
  }
  // expected-error @below {{step 'train' runs 'slice', which takes 'x', but 'x.of_step' of 'label' holds no whole number of it; give the inputs of a step the shape of its slices, one after the other along dimension 0}}
  exec.program @slice arena 192 attributes {exec.inputs = ["x"], exec.reads = [], exec.writes = []} {
  }
}

// -----

// Every microbatch makes it anew, and the last one's is there.

module attributes {exec.persistent_bytes = 192 : i64, exec.arena_bytes = 192 : i64,
    nn.steps = {train = [#nn.action<@accumulate times 2>, #nn.action<@update times 1>]},
    exec.steps = {train = {accumulate = 2 : i64, update = 1 : i64}}} {
  exec.range @tokens : memref<16xf32> role input at 0
  exec.range @sum : memref<16xf32> role state at 64
  exec.range @y : memref<16xf32> role output at 128
  exec.program @accumulate arena 192 attributes {exec.inputs = ["tokens"], exec.reads = ["tokens"], exec.writes = ["sum"]} {
    %tokens = exec.get @tokens : memref<16xf32>
    %sum = exec.get @sum : memref<16xf32>
    exec.copy on compute (%tokens : memref<16xf32>) outs(%sum : memref<16xf32>)
  }
  // expected-error @below {{step 'train': 'update' reads 'sum', which 'accumulate' produces anew for every microbatch: all but the last one are lost; let 'accumulate' add to it (nn.accumulate)}}
  exec.program @update arena 192 attributes {exec.outputs = ["y"], exec.reads = ["sum"], exec.writes = ["y"]} {
    %sum = exec.get @sum : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    exec.copy on compute (%sum : memref<16xf32>) outs(%y : memref<16xf32>)
  }
}

// -----

// Read in between, it is not.

module attributes {exec.persistent_bytes = 192 : i64, exec.arena_bytes = 192 : i64,
    nn.steps = {train = [#nn.action<@accumulate times 1>, #nn.action<@update times 1>, #nn.action<@accumulate times 1>, #nn.action<@update times 1>]},
    exec.steps = {train = {accumulate = 2 : i64, update = 2 : i64}}} {
  exec.range @tokens : memref<16xf32> role input at 0
  exec.range @sum : memref<16xf32> role state at 64
  exec.range @y : memref<16xf32> role output at 128
  exec.program @accumulate arena 192 attributes {exec.inputs = ["tokens"], exec.reads = ["tokens"], exec.writes = ["sum"]} {
    %tokens = exec.get @tokens : memref<16xf32>
    %sum = exec.get @sum : memref<16xf32>
    exec.copy on compute (%tokens : memref<16xf32>) outs(%sum : memref<16xf32>)
  }
  exec.program @update arena 192 attributes {exec.outputs = ["y"], exec.reads = ["sum"], exec.writes = ["y"]} {
    %sum = exec.get @sum : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    exec.copy on compute (%sum : memref<16xf32>) outs(%y : memref<16xf32>)
  }
}
