// RUN: fsdp-opt --exec-verify --split-input-file --verify-diagnostics %s

// What is read must be there: written last into the same buffer, in a program
// without and with calls; and what an operation may do to its own operands.

// No operation writes %a.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.program @nothing_is_written arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %a = exec.alloc at 128 : memref<16xf32>
    // expected-error @below {{reads bytes [128, 192) that nothing has written into this buffer yet}}
    exec.copy on compute (%a : memref<16xf32>) outs(%y : memref<16xf32>)
  }
}

// -----

// The producer comes too late.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.program @the_producer_is_behind_its_consumer arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %a = exec.alloc at 128 : memref<16xf32>
    // expected-error @below {{reads bytes [128, 192) that nothing has written into this buffer yet}}
    exec.copy on compute (%a : memref<16xf32>) outs(%y : memref<16xf32>)
    exec.copy on compute (%w : memref<16xf32>) outs(%a : memref<16xf32>)
  }
}

// -----

// Only the lower half of %a is written, through a view.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.program @half_is_written arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %a = exec.alloc at 128 : memref<32xf32>
    %b = exec.alloc at 256 : memref<32xf32>
    %low = exec.view %a[0] : memref<32xf32> to memref<16xf32>
    exec.copy on compute (%w : memref<16xf32>) outs(%low : memref<16xf32>)
    // expected-error @below {{reads bytes [128, 256) that nothing has written into this buffer yet}}
    exec.copy on compute (%a : memref<32xf32>) outs(%b : memref<32xf32>)
  }
}

// -----

// What lies at %b's place is %a's: %b itself has never been written.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.program @the_bytes_hold_another_buffer arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %a = exec.alloc at 128 : memref<16xf32>
    %b = exec.alloc at 128 : memref<16xf32>
    // expected-note @below {{the bytes there belong to: exec.copy}}
    exec.copy on compute (%w : memref<16xf32>) outs(%a : memref<16xf32>)
    // expected-error @below {{reads bytes [128, 192) that nothing has written into this buffer yet}}
    exec.copy on compute (%b : memref<16xf32>) outs(%y : memref<16xf32>)
  }
}

// -----

// Two intervals with equal bytes are two: %b has taken the place of %a, which
// lives.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.program @an_equal_interval_is_overwritten arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %a = exec.alloc at 128 : memref<16xf32>
    %b = exec.alloc at 128 : memref<16xf32>
    exec.copy on compute (%w : memref<16xf32>) outs(%a : memref<16xf32>)
    // expected-note @below {{overwritten by: exec.copy}}
    exec.copy on compute (%w : memref<16xf32>) outs(%b : memref<16xf32>)
    // expected-error @below {{reads bytes [128, 192) that another buffer has overwritten}}
    exec.copy on compute (%a : memref<16xf32>) outs(%y : memref<16xf32>)
  }
}

// -----

// A workspace holds nothing when the operation is over.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @m : memref<4x4xf32> role parameter at 0
  exec.range @i : memref<64xi8> role buffer at 64
  exec.program @a_workspace_is_read arena 512 {
    %m = exec.get @m : memref<4x4xf32>
    %i = exec.get @i : memref<64xi8>
    %s = exec.alloc at 128 : memref<64xi8>
    %o = exec.alloc at 192 : memref<4x4xf32>
    // expected-note @below {{the bytes there belong to: exec.gemm}}
    exec.gemm on compute (%m, %m : memref<4x4xf32>, memref<4x4xf32>) outs(%o : memref<4x4xf32>) workspace(%s : memref<64xi8>)
    // expected-error @below {{reads bytes [128, 192) of a workspace, which is invalid after its operation}}
    exec.copy on compute (%s : memref<64xi8>) outs(%i : memref<64xi8>)
  }
}

// -----

// It does not hold what was there before either.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @m : memref<4x4xf32> role parameter at 0
  exec.range @i : memref<64xi8> role buffer at 64
  exec.program @a_workspace_loses_its_content arena 512 {
    %m = exec.get @m : memref<4x4xf32>
    %i = exec.get @i : memref<64xi8>
    %s = exec.alloc at 128 : memref<64xi8>
    %o = exec.alloc at 192 : memref<4x4xf32>
    exec.copy on compute (%i : memref<64xi8>) outs(%s : memref<64xi8>)
    // expected-note @below {{overwritten by: exec.gemm}}
    exec.gemm on compute (%m, %m : memref<4x4xf32>, memref<4x4xf32>) outs(%o : memref<4x4xf32>) workspace(%s : memref<64xi8>)
    // expected-error @below {{reads bytes [128, 192) of a workspace, which is invalid after its operation}}
    exec.copy on compute (%s : memref<64xi8>) outs(%i : memref<64xi8>)
  }
}

// -----

// A persistent range would lose what the runtime keeps in it.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @m : memref<4x4xf32> role parameter at 0
  exec.range @i : memref<64xi8> role buffer at 64
  exec.program @a_range_as_workspace arena 512 {
    %m = exec.get @m : memref<4x4xf32>
    %i = exec.get @i : memref<64xi8>
    %o = exec.alloc at 192 : memref<4x4xf32>
    // expected-error @below {{uses range "i" as workspace, which would lose its content}}
    exec.gemm on compute (%m, %m : memref<4x4xf32>, memref<4x4xf32>) outs(%o : memref<4x4xf32>) workspace(%i : memref<64xi8>)
  }
}

// -----

// An output range holds what the last run left until this one writes it.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.program @an_output_is_read_first arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    // expected-error @below {{reads bytes [64, 128) of "y" before the program writes them: what a range of role output holds is left from the last run}}
    exec.copy on compute (%y : memref<16xf32>) outs(%w : memref<16xf32>)
    exec.copy on compute (%w : memref<16xf32>) outs(%y : memref<16xf32>)
  }
}

// -----

// So does a gradient that no other program writes.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @g : memref<16xf32> role gradient at 64
  exec.program @a_gradient_is_read_first arena 512 {
    %w = exec.get @w : memref<16xf32>
    %g = exec.get @g : memref<16xf32>
    // expected-error @below {{reads bytes [64, 128) of "g" before the program writes them: what a range of role gradient holds is left from the last run}}
    exec.copy on compute (%g : memref<16xf32>) outs(%w : memref<16xf32>)
    exec.copy on compute (%w : memref<16xf32>) outs(%g : memref<16xf32>)
  }
}

// -----

// A gradient may come from another program.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @g : memref<16xf32> role gradient at 64
  exec.program @accumulate arena 128 attributes {exec.reads = ["w"], exec.writes = ["g"]} {
    %w = exec.get @w : memref<16xf32>
    %g = exec.get @g : memref<16xf32>
    exec.copy on compute (%w : memref<16xf32>) outs(%g : memref<16xf32>)
  }
  exec.program @update arena 128 attributes {exec.reads = ["g"], exec.writes = ["w"]} {
    %w = exec.get @w : memref<16xf32>
    %g = exec.get @g : memref<16xf32>
    exec.copy on compute (%g : memref<16xf32>) outs(%w : memref<16xf32>)
  }
}

// -----

// A box in more pieces than anybody counts.

module attributes {exec.persistent_bytes = 67108864 : i64, exec.arena_bytes = 134217728 : i64} {
  exec.range @x : memref<2097152x1xf32> role input at 0
  exec.program @a_box_in_too_many_pieces arena 134217728 {
    %x = exec.get @x : memref<2097152x1xf32>
    %a = exec.alloc at 67108864 : memref<2097152x4xf32>
    // expected-error @below {{'exec.copy_box' op writes its box in more than 2^20 pieces}}
    exec.copy_box on compute (%x : memref<2097152x1xf32>) outs(%a : memref<2097152x4xf32>) {shape = array<i64: 2097152, 1>, in_offsets = array<i64: 0, 0>, out_offsets = array<i64: 0, 0>}
  }
}

// -----

// copy_box writes its box alone: the left half of each row.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @x : memref<4x2xf32> role input at 0
  exec.range @y : memref<4x4xf32> role output at 64
  exec.program @a_box_is_a_part arena 512 {
    %x = exec.get @x : memref<4x2xf32>
    %y = exec.get @y : memref<4x4xf32>
    %a = exec.alloc at 128 : memref<4x4xf32>
    exec.copy_box on compute (%x : memref<4x2xf32>) outs(%a : memref<4x4xf32>) {shape = array<i64: 4, 2>, in_offsets = array<i64: 0, 0>, out_offsets = array<i64: 0, 0>}
    // expected-error @below {{reads bytes [128, 192) that nothing has written into this buffer yet}}
    exec.copy on compute (%a : memref<4x4xf32>) outs(%y : memref<4x4xf32>)
  }
}

// -----

// shard_of may take any part: it reads the whole, and writes all of its output.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  fsdp.mesh @mesh ["tp" = 2]
  exec.range @x : memref<4x2xf32> role input at 0
  exec.range @y : memref<2x4xf32> role output at 64
  exec.program @a_part_of_a_whole arena 512 {
    %x = exec.get @x : memref<4x2xf32>
    %y = exec.get @y : memref<2x4xf32>
    %a = exec.alloc at 128 : memref<4x4xf32>
    %top = exec.view %a[0] : memref<4x4xf32> to memref<4x2xf32>
    exec.copy on compute (%x : memref<4x2xf32>) outs(%top : memref<4x2xf32>)
    // expected-error @below {{reads bytes [128, 192) that nothing has written into this buffer yet}}
    exec.shard_of on compute (%a : memref<4x4xf32>) outs(%y : memref<2x4xf32>) over @mesh["tp"]
  }
}

// -----

module attributes {exec.persistent_bytes = 192 : i64, exec.arena_bytes = 512 : i64} {
  fsdp.mesh @mesh ["tp" = 2]
  exec.range @x : memref<4x4xf32> role input at 0
  exec.range @y : memref<2x4xf32> role output at 64
  exec.range @z : memref<2x4xf32> role output at 128
  exec.program @a_part_is_whole arena 512 attributes {exec.inputs = ["x"], exec.reads = ["x"], exec.writes = ["y", "z"]} {
    %x = exec.get @x : memref<4x4xf32>
    %y = exec.get @y : memref<2x4xf32>
    %z = exec.get @z : memref<2x4xf32>
    exec.shard_of on compute (%x : memref<4x4xf32>) outs(%y : memref<2x4xf32>) over @mesh["tp"]
    exec.copy on compute (%y : memref<2x4xf32>) outs(%z : memref<2x4xf32>)
  }
}

// -----

// Two boxes make a whole, and a box keeps what was around it.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @x : memref<4x2xf32> role input at 0
  exec.range @y : memref<4x4xf32> role output at 64
  exec.program @boxes_make_a_whole arena 512 attributes {exec.inputs = ["x"], exec.reads = ["x"], exec.writes = ["y"]} {
    %x = exec.get @x : memref<4x2xf32>
    %y = exec.get @y : memref<4x4xf32>
    %a = exec.alloc at 128 : memref<4x4xf32>
    exec.copy_box on compute (%x : memref<4x2xf32>) outs(%a : memref<4x4xf32>) {shape = array<i64: 4, 2>, in_offsets = array<i64: 0, 0>, out_offsets = array<i64: 0, 0>}
    exec.copy_box on compute (%x : memref<4x2xf32>) outs(%a : memref<4x4xf32>) {shape = array<i64: 4, 2>, in_offsets = array<i64: 0, 0>, out_offsets = array<i64: 0, 2>}
    exec.copy on compute (%a : memref<4x4xf32>) outs(%y : memref<4x4xf32>)
    %b = exec.alloc at 128 : memref<4x4xf32>
    exec.fill_zero on compute () outs(%b : memref<4x4xf32>)
    exec.copy_box on compute (%x : memref<4x2xf32>) outs(%b : memref<4x4xf32>) {shape = array<i64: 2, 1>, in_offsets = array<i64: 1, 0>, out_offsets = array<i64: 2, 1>}
    exec.copy on compute (%b : memref<4x4xf32>) outs(%y : memref<4x4xf32>)
  }
}

// -----

// A matmul reads its inputs again after it has begun to write.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @m : memref<4x4xf32> role parameter at 0
  exec.range @i : memref<64xi8> role buffer at 64
  exec.program @a_matmul_writes_its_input arena 512 {
    %m = exec.get @m : memref<4x4xf32>
    %i = exec.get @i : memref<64xi8>
    %a = exec.alloc at 128 : memref<4x4xf32>
    exec.copy on compute (%m : memref<4x4xf32>) outs(%a : memref<4x4xf32>)
    // expected-error @below {{output 0 overlaps input 1 in the arena}}
    exec.gemm on compute (%m, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%a : memref<4x4xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @m : memref<4x4xf32> role parameter at 0
  exec.range @i : memref<64xi8> role buffer at 64
  exec.program @a_matmul_updates_in_place arena 512 {
    %m = exec.get @m : memref<4x4xf32>
    %i = exec.get @i : memref<64xi8>
    %a = exec.alloc at 128 : memref<4x4xf32>
    exec.copy on compute (%m : memref<4x4xf32>) outs(%a : memref<4x4xf32>)
    // expected-error @below {{output 0 is input 0, but this operation does not update in place}}
    exec.gemm on compute (%a, %m : memref<4x4xf32>, memref<4x4xf32>) outs(%a : memref<4x4xf32>)
  }
}

// -----

// Kernels are compiled in the belief that what they read is not written.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.kernel @negate over(1, 16) access [element, element] outputs 1 {
  ^bb0(%in: memref<16xf32>, %out: memref<16xf32>):
    exec.map {
      %0 = exec.load %in : memref<16xf32> -> f32
      %1 = arith.negf %0 : f32
      exec.store %1, %out : f32, memref<16xf32>
    }
  }
  exec.program @a_kernel_updates_in_place arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    // expected-error @below {{output 0 is input 0, but this operation does not update in place}}
    exec.launch @negate on compute (%w : memref<16xf32>) outs(%w : memref<16xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.program @a_copy_onto_itself arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    // expected-error @below {{output 0 is input 0, but this operation does not update in place}}
    exec.copy on compute (%w : memref<16xf32>) outs(%w : memref<16xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.program @a_copy_onto_a_part_of_itself arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %low = exec.view %w[0] : memref<16xf32> to memref<8xf32>
    %high = exec.view %w[4] : memref<16xf32> to memref<8xf32>
    // expected-error @below {{output 0 overlaps input 0 in the arena}}
    exec.copy on compute (%low : memref<8xf32>) outs(%high : memref<8xf32>)
  }
}

// -----

// Of the collectives, an all_reduce may update in place and no other.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 1]
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.program @collectives_in_place arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %s = exec.alloc at 128 : memref<64xi8>
    exec.collective all_reduce on compute (%w : memref<16xf32>) outs(%w : memref<16xf32>) workspace(%s : memref<64xi8>) over @mesh["dp_shard"]
    // expected-error @below {{output 0 is input 0, but this operation does not update in place}}
    exec.collective all_gather on compute (%w : memref<16xf32>) outs(%w : memref<16xf32>) over @mesh["dp_shard"]
  }
}

// -----

// Not across its tensors, though.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 1]
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.program @a_crossed_all_reduce arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %s = exec.alloc at 128 : memref<64xi8>
    %t = exec.alloc at 192 : memref<64xi8>
    %a = exec.alloc at 256 : memref<16xf32>
    exec.copy on compute (%w : memref<16xf32>) outs(%a : memref<16xf32>)
    // expected-error @below {{output 0 overlaps input 1 in the arena}}
    exec.collective all_reduce on compute (%w, %a : memref<16xf32>, memref<16xf32>) outs(%a, %w : memref<16xf32>, memref<16xf32>)
        workspace(%s, %t : memref<64xi8>, memref<64xi8>) over @mesh["dp_shard"]
  }
}

// -----

// A launch counts as a write of all outputs, so that its kernel must write them.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  // expected-error @below {{does not write all of its output 2}}
  exec.kernel @forgets over(1, 16) access [element, element, element] outputs 2 {
  ^bb0(%in: memref<16xf32>, %out0: memref<16xf32>, %out1: memref<16xf32>):
    exec.map {
      %0 = exec.load %in : memref<16xf32> -> f32
      exec.store %0, %out0 : f32, memref<16xf32>
    }
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.kernel @reads_its_output over(1, 16) access [element] outputs 1 {
  ^bb0(%out: memref<16xf32>):
    exec.map {
      // expected-error @below {{reads an output that the kernel has not written yet}}
      %0 = exec.load %out : memref<16xf32> -> f32
      exec.store %0, %out : f32, memref<16xf32>
    }
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.program @a_negative_event arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    // expected-error @below {{event -1 does not exist: events count from 0}}
    exec.record -1 on compute
  }
}

// -----

// Calls: an argument is the buffer that the call gives.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.func @move {
  ^bb0(%from: memref<16xf32>, %to: memref<16xf32>):
    exec.copy on compute (%from : memref<16xf32>) outs(%to : memref<16xf32>)
  }
  exec.program @calls_pass_buffers_on arena 512 attributes {exec.reads = ["w"], exec.writes = ["y"]} {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %a = exec.alloc at 128 : memref<16xf32>
    %b = exec.alloc at 192 : memref<16xf32>
    exec.call @move(%w, %a) events [] : memref<16xf32>, memref<16xf32>
    exec.call @move(%a, %b) events [] : memref<16xf32>, memref<16xf32>
    exec.call @move(%b, %y) events [] : memref<16xf32>, memref<16xf32>
  }
}

// -----

// The first call is missing.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.func @move {
  ^bb0(%from: memref<16xf32>, %to: memref<16xf32>):
    // expected-error @below {{reads bytes [128, 192) that nothing has written into this buffer yet}}
    exec.copy on compute (%from : memref<16xf32>) outs(%to : memref<16xf32>)
  }
  exec.program @a_call_is_dropped arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %a = exec.alloc at 128 : memref<16xf32>
    exec.call @move(%a, %y) events [] : memref<16xf32>, memref<16xf32>
  }
}

// -----

// The arguments of the second call are exchanged.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.func @move {
  ^bb0(%from: memref<16xf32>, %to: memref<16xf32>):
    // expected-error @below {{reads bytes [192, 256) that nothing has written into this buffer yet}}
    exec.copy on compute (%from : memref<16xf32>) outs(%to : memref<16xf32>)
  }
  exec.program @arguments_are_exchanged arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %a = exec.alloc at 128 : memref<16xf32>
    %b = exec.alloc at 192 : memref<16xf32>
    exec.call @move(%w, %a) events [] : memref<16xf32>, memref<16xf32>
    exec.call @move(%b, %a) events [] : memref<16xf32>, memref<16xf32>
  }
}

// -----

// %a and %b are two buffers in a program with calls too.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.func @move {
  ^bb0(%from: memref<16xf32>, %to: memref<16xf32>):
    // expected-note @below {{overwritten by: exec.copy}}
    // expected-error @below {{reads bytes [128, 192) that another buffer has overwritten}}
    exec.copy on compute (%from : memref<16xf32>) outs(%to : memref<16xf32>)
  }
  exec.program @equal_intervals_are_given_to_calls arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %a = exec.alloc at 128 : memref<16xf32>
    %b = exec.alloc at 128 : memref<16xf32>
    exec.call @move(%w, %a) events [] : memref<16xf32>, memref<16xf32>
    exec.call @move(%w, %b) events [] : memref<16xf32>, memref<16xf32>
    exec.call @move(%a, %y) events [] : memref<16xf32>, memref<16xf32>
  }
}

// -----

// One buffer for both arguments.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.func @move {
  ^bb0(%from: memref<16xf32>, %to: memref<16xf32>):
    // expected-error @below {{output 0 is input 0, but this operation does not update in place}}
    exec.copy on compute (%from : memref<16xf32>) outs(%to : memref<16xf32>)
  }
  exec.program @one_buffer_for_two_arguments arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    exec.call @move(%w, %w) events [] : memref<16xf32>, memref<16xf32>
  }
}

// -----

// An operation that does not say so updates nothing in place, by whatever names
// its buffers go: here two intervals at one place, before exec-outline …

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @t : memref<1x8x2xf32> role buffer at 0
  exec.program @a_rotation_in_place arena 512 {
    %t = exec.get @t : memref<1x8x2xf32>
    %x = exec.alloc at 64 : memref<1x1x1x16xf32>
    %y = exec.alloc at 64 : memref<1x1x1x16xf32>
    exec.fill_zero on compute () outs(%x : memref<1x1x1x16xf32>)
    // expected-error @below {{'exec.rotary' op output 0 overlaps input 0 in the arena}}
    exec.rotary on compute (%x, %t : memref<1x1x1x16xf32>, memref<1x8x2xf32>) outs(%y : memref<1x1x1x16xf32>) pairs halves
  }
}

// -----

// … and here two arguments, after it.

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @t : memref<1x8x2xf32> role buffer at 0
  exec.func @rotate {
  ^bb0(%x: memref<1x1x1x16xf32>, %y: memref<1x1x1x16xf32>):
    %t = exec.get @t : memref<1x8x2xf32>
    // expected-error @below {{'exec.rotary' op output 0 overlaps input 0 in the arena}}
    exec.rotary on compute (%x, %t : memref<1x1x1x16xf32>, memref<1x8x2xf32>) outs(%y : memref<1x1x1x16xf32>) pairs halves
  }
  exec.program @a_rotation_in_place_by_a_call arena 512 {
    %x = exec.alloc at 64 : memref<1x1x1x16xf32>
    %y = exec.alloc at 64 : memref<1x1x1x16xf32>
    exec.fill_zero on compute () outs(%x : memref<1x1x1x16xf32>)
    exec.call @rotate(%x, %y) events [] : memref<1x1x1x16xf32>, memref<1x1x1x16xf32>
  }
}

// -----

// An interval of a function serves one call: written and read there, it needs
// no other.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.func @move {
  ^bb0(%from: memref<16xf32>, %to: memref<16xf32>):
    %t = exec.alloc at 128 : memref<16xf32>
    exec.copy on compute (%from : memref<16xf32>) outs(%t : memref<16xf32>)
    exec.copy on compute (%t : memref<16xf32>) outs(%to : memref<16xf32>)
  }
  exec.program @an_interval_of_a_function arena 512 attributes {exec.reads = ["w"], exec.writes = ["y"]} {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    exec.call @move(%w, %y) events [] : memref<16xf32>, memref<16xf32>
    exec.call @move(%w, %y) events [] : memref<16xf32>, memref<16xf32>
  }
}

// -----

// It carries nothing from one call to the next, though its bytes are the same.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.func @put {
  ^bb0(%from: memref<16xf32>):
    %t = exec.alloc at 128 : memref<16xf32>
    // expected-note @below {{the bytes there belong to: exec.copy}}
    exec.copy on compute (%from : memref<16xf32>) outs(%t : memref<16xf32>)
  }
  exec.func @take {
  ^bb0(%to: memref<16xf32>):
    %t = exec.alloc at 128 : memref<16xf32>
    // expected-error @below {{reads bytes [128, 192) that nothing has written into this buffer yet}}
    exec.copy on compute (%t : memref<16xf32>) outs(%to : memref<16xf32>)
  }
  exec.program @an_interval_of_two_functions arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    exec.call @put(%w) events [] : memref<16xf32>
    exec.call @take(%y) events [] : memref<16xf32>
  }
}

// -----

// Nor between two calls of the same function.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.func @move {
  ^bb0(%from: memref<16xf32>, %to: memref<16xf32>):
    %t = exec.alloc at 128 : memref<16xf32>
    // expected-error @below {{reads bytes [128, 192) that nothing has written into this buffer yet}}
    exec.copy on compute (%t : memref<16xf32>) outs(%to : memref<16xf32>)
    exec.copy on compute (%from : memref<16xf32>) outs(%t : memref<16xf32>)
  }
  exec.program @an_interval_of_two_calls arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    exec.call @move(%w, %y) events [] : memref<16xf32>, memref<16xf32>
    exec.call @move(%w, %y) events [] : memref<16xf32>, memref<16xf32>
  }
}

// -----

// An interval of a function takes the bytes of one that lives in the program.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.func @move {
  ^bb0(%from: memref<16xf32>, %to: memref<16xf32>):
    %t = exec.alloc at 128 : memref<16xf32>
    // expected-note @below {{overwritten by: exec.copy}}
    exec.copy on compute (%from : memref<16xf32>) outs(%t : memref<16xf32>)
    exec.copy on compute (%t : memref<16xf32>) outs(%to : memref<16xf32>)
  }
  exec.program @a_function_overwrites_what_lives arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %a = exec.alloc at 128 : memref<16xf32>
    exec.copy on compute (%w : memref<16xf32>) outs(%a : memref<16xf32>)
    exec.call @move(%w, %y) events [] : memref<16xf32>, memref<16xf32>
    // expected-error @below {{reads bytes [128, 192) that another buffer has overwritten}}
    exec.copy on compute (%a : memref<16xf32>) outs(%y : memref<16xf32>)
  }
}

// -----

// The arena has room for the interval, the calling program does not.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.func @move {
  ^bb0(%from: memref<16xf32>, %to: memref<16xf32>):
    %t = exec.alloc at 192 : memref<16xf32>
    // expected-error @below {{uses bytes up to 256, but "a_function_needs_more_than_its_caller" has 192}}
    exec.copy on compute (%from : memref<16xf32>) outs(%t : memref<16xf32>)
    exec.copy on compute (%t : memref<16xf32>) outs(%to : memref<16xf32>)
  }
  exec.program @a_function_needs_more_than_its_caller arena 192 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    exec.call @move(%w, %y) events [] : memref<16xf32>, memref<16xf32>
  }
}

// -----

// The call waits for the wrong event: the copy stream may still write %a.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.func @move {
  ^bb0(%from: memref<16xf32>, %to: memref<16xf32>):
    exec.wait 0 on compute
    // expected-error @below {{reads bytes [128, 192) on stream compute without waiting for the write on stream copy}}
    exec.copy on compute (%from : memref<16xf32>) outs(%to : memref<16xf32>)
  }
  exec.program @a_call_waits_for_the_wrong_event arena 512 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %a = exec.alloc at 128 : memref<16xf32>
    exec.record 0 on compute
    exec.wait 0 on copy
    // expected-note @below {{the other operation: exec.copy}}
    exec.copy on copy (%w : memref<16xf32>) outs(%a : memref<16xf32>)
    exec.record 1 on copy
    exec.call @move(%a, %y) events [0] : memref<16xf32>, memref<16xf32>
    exec.wait 1 on compute
  }
}
