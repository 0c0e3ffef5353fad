// RUN: fsdp-opt --exec-verify --split-input-file --verify-diagnostics %s

// What exec-synchronize makes of a gather that is read by compute and then
// overwritten: every conflict is ordered. The cases below drop one event each.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 256 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 1]
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.program @every_conflict_is_ordered arena 192 attributes {exec.reads = ["w"], exec.writes = ["y", "w"]} {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %f = exec.alloc at 128 : memref<16xf32>
    exec.record 0 on compute
    exec.wait 0 on gather
    exec.collective all_gather on gather (%w : memref<16xf32>) outs(%f : memref<16xf32>) over @mesh["dp_shard"]
    exec.record 1 on gather
    exec.wait 1 on compute
    exec.copy on compute (%f : memref<16xf32>) outs(%y : memref<16xf32>)
    exec.record 2 on compute
    exec.wait 2 on gather
    exec.collective all_gather on gather (%w : memref<16xf32>) outs(%f : memref<16xf32>) over @mesh["dp_shard"]
    exec.record 3 on gather
    exec.wait 3 on compute
    exec.copy on compute (%f : memref<16xf32>) outs(%w : memref<16xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 256 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 1]
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.program @read_after_write_without_wait arena 192 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %f = exec.alloc at 128 : memref<16xf32>
    exec.record 0 on compute
    exec.wait 0 on gather
    // expected-note @below {{the other operation: all_gather for fwd layers.0}}
    exec.collective all_gather on gather (%w : memref<16xf32>) outs(%f : memref<16xf32>) over @mesh["dp_shard"] {serves = #fsdp.origin<all "fwd layers.0">}
    exec.record 1 on gather
    // expected-error @below {{reads bytes [128, 192) on stream compute without waiting for the write on stream gather}}
    exec.copy on compute (%f : memref<16xf32>) outs(%y : memref<16xf32>)
    exec.wait 1 on compute
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 256 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 1]
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.program @write_after_read_without_wait arena 192 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %f = exec.alloc at 128 : memref<16xf32>
    exec.record 0 on compute
    exec.wait 0 on gather
    exec.collective all_gather on gather (%w : memref<16xf32>) outs(%f : memref<16xf32>) over @mesh["dp_shard"]
    exec.record 1 on gather
    exec.wait 1 on compute
    // expected-note @below {{the other operation: exec.copy}}
    exec.copy on compute (%f : memref<16xf32>) outs(%y : memref<16xf32>)
    // expected-error @below {{writes bytes [128, 192) on stream gather without waiting for the read on stream compute}}
    exec.collective all_gather on gather (%w : memref<16xf32>) outs(%f : memref<16xf32>) over @mesh["dp_shard"]
    exec.record 2 on gather
    exec.wait 2 on compute
  }
}

// -----

// The order must hold for the bytes, not for the values: %high is part of an
// interval that the copy stream writes as a whole.

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 256 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.program @write_after_write_of_overlapping_bytes arena 256 {
    %w = exec.get @w : memref<16xf32>
    %a = exec.alloc at 64 : memref<32xf32>
    %b = exec.alloc at 128 : memref<32xf32>
    %high = exec.view %a[16] : memref<32xf32> to memref<16xf32>
    %low = exec.view %b[0] : memref<32xf32> to memref<16xf32>
    exec.record 0 on compute
    // expected-note @below {{the other operation}}
    exec.copy on compute (%w : memref<16xf32>) outs(%high : memref<16xf32>)
    exec.wait 0 on copy
    // expected-error @below {{writes bytes [128, 192) on stream copy without waiting for the write on stream compute}}
    exec.copy on copy (%w : memref<16xf32>) outs(%low : memref<16xf32>)
    exec.record 1 on copy
    exec.wait 1 on compute
  }
}

// -----

// The step before wrote the parameter that this step's first gather reads:
// the gather must not start before this program does.

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 256 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 1]
  exec.range @w : memref<16xf32> role parameter at 0
  exec.program @write_after_read_across_steps arena 192 {
    %w = exec.get @w : memref<16xf32>
    %f = exec.alloc at 64 : memref<16xf32>
    // expected-error @below {{on stream gather does not wait for the start of the program: it may run while the step before still uses its buffers}}
    exec.collective all_gather on gather (%w : memref<16xf32>) outs(%f : memref<16xf32>) over @mesh["dp_shard"]
    exec.record 0 on gather
    exec.wait 0 on compute
    // expected-note @below {{for example this operation: exec.copy}}
    exec.copy on compute (%f : memref<16xf32>) outs(%w : memref<16xf32>)
  }
}

// -----

// A reduction still runs when the program ends: the next step would read its
// result too early.

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 256 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  // expected-error @below {{ends before stream copy does}}
  exec.program @a_stream_is_left_running arena 192 {
    %w = exec.get @w : memref<16xf32>
    %f = exec.alloc at 64 : memref<16xf32>
    exec.record 0 on compute
    exec.wait 0 on copy
    // expected-note @below {{the last operation there: exec.copy}}
    exec.copy on copy (%w : memref<16xf32>) outs(%f : memref<16xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 256 : i64} {
  exec.program @wait_before_its_record arena 64 {
    // expected-error @below {{waits for event 0, which is not recorded before}}
    exec.wait 0 on gather
    exec.record 0 on compute
  }
}

// -----

// In order, but %b has taken %a's bytes while %a was still to be read.

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 256 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.program @an_interval_is_overwritten_while_it_lives arena 192 {
    %w = exec.get @w : memref<16xf32>
    %a = exec.alloc at 64 : memref<16xf32>
    %b = exec.alloc at 64 : memref<32xf32>
    %low = exec.view %b[0] : memref<32xf32> to memref<16xf32>
    exec.copy on compute (%w : memref<16xf32>) outs(%a : memref<16xf32>)
    // expected-note @below {{overwritten by: exec.copy}}
    exec.copy on compute (%w : memref<16xf32>) outs(%low : memref<16xf32>)
    // expected-error @below {{reads bytes [64, 128) that another buffer has overwritten}}
    exec.copy on compute (%a : memref<16xf32>) outs(%w : memref<16xf32>)
  }
}

// -----

// An interval may be used again after another one had its bytes, if it is
// written again first.

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 256 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.program @an_interval_is_written_again_before_it_is_read arena 192 attributes {exec.reads = ["w"], exec.writes = ["w"]} {
    %w = exec.get @w : memref<16xf32>
    %a = exec.alloc at 64 : memref<16xf32>
    %b = exec.alloc at 64 : memref<16xf32>
    exec.copy on compute (%w : memref<16xf32>) outs(%a : memref<16xf32>)
    exec.copy on compute (%w : memref<16xf32>) outs(%b : memref<16xf32>)
    exec.copy on compute (%w : memref<16xf32>) outs(%a : memref<16xf32>)
    exec.copy on compute (%a : memref<16xf32>) outs(%w : memref<16xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 256 : i64} {
  exec.program @output_meets_input arena 256 {
    %a = exec.alloc at 64 : memref<16xf32>
    %b = exec.alloc at 64 : memref<16xf32>
    // expected-error @below {{output 0 overlaps input 0 in the arena}}
    exec.copy on compute (%a : memref<16xf32>) outs(%b : memref<16xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 256 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 1]
  exec.range @w : memref<16xf32> role parameter at 0
  exec.program @outputs_meet arena 256 {
    %w = exec.get @w : memref<16xf32>
    %a = exec.alloc at 64 : memref<16xf32>
    %b = exec.alloc at 64 : memref<16xf32>
    // expected-error @below {{outputs 0 and 1 overlap in the arena}}
    exec.collective all_gather on compute (%w, %w : memref<16xf32>, memref<16xf32>)
        outs(%a, %b : memref<16xf32>, memref<16xf32>) over @mesh["dp_shard"]
  }
}

// -----

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 256 : i64} {
  exec.program @interval_ends_above_the_program_s_peak arena 128 {
    // expected-error @below {{has bytes [64, 192), but buffers live in [64, 128)}}
    %a = exec.alloc at 64 : memref<32xf32>
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 256 : i64} {
  exec.program @interval_in_the_persistent_part arena 256 {
    // expected-error @below {{has bytes [64, 128), but buffers live in [128, 256)}}
    %a = exec.alloc at 64 : memref<16xf32>
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 256 : i64} {
  // expected-error @below {{needs 320 bytes, but the arena has 256}}
  exec.program @program_larger_than_the_arena arena 320 {
  }
}

// -----

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 256 : i64} {
  // expected-note @below {{this one}}
  exec.range @w : memref<32xf32> role parameter at 0
  // expected-error @below {{overlaps another range}}
  exec.range @v : memref<16xf32> role parameter at 64
}

// -----

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 256 : i64} {
  // expected-error @below {{ends at byte 128, but the persistent part has 64}}
  exec.range @w : memref<32xf32> role parameter at 0
}

// -----

// expected-error @below {{has no exec.persistent_bytes; run exec-plan-memory first}}
module {
}

// -----

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 256 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 1]
  exec.range @w : memref<16xf32> role parameter at 0
  exec.program @a_token_is_left arena 256 {
    %w = exec.get @w : memref<16xf32>
    %a = exec.alloc at 64 : memref<16xf32>
    // expected-error @below {{still has a token; run exec-synchronize first}}
    %t = exec.collective all_gather on gather (%w : memref<16xf32>) outs(%a : memref<16xf32>) over @mesh["dp_shard"] -> !exec.token
    exec.await %t
  }
}

// -----

// An output after the persistent part shares bytes with the intervals of
// another program, which is no conflict.
module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 192 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.program @gives arena 128 attributes {exec.outputs = ["y"], exec.reads = ["w"], exec.writes = ["y"]} {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    exec.copy on compute (%w : memref<16xf32>) outs(%y : memref<16xf32>)
  }
  exec.program @overwrites arena 128 attributes {exec.reads = ["w"], exec.writes = []} {
    %w = exec.get @w : memref<16xf32>
    %a = exec.alloc at 64 : memref<16xf32>
    exec.copy on compute (%w : memref<16xf32>) outs(%a : memref<16xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 192 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.program @overwrites_its_own_output arena 128 attributes {exec.outputs = ["y"]} {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %a = exec.alloc at 64 : memref<16xf32>
    exec.copy on compute (%w : memref<16xf32>) outs(%y : memref<16xf32>)
    // expected-error @below {{writes a buffer over the output @y, which the program returns}}
    exec.copy on compute (%w : memref<16xf32>) outs(%a : memref<16xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 192 : i64} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 64
  exec.program @reads_the_output_of_another_program arena 128 {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    // expected-error @below {{uses the output @y of another program, whose bytes this program may have written}}
    exec.copy on compute (%y : memref<16xf32>) outs(%w : memref<16xf32>)
  }
}

// -----

module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 128 : i64} {
  // expected-error @below {{ends at byte 192, but the arena has 128}}
  exec.range @output_outside_the_arena : memref<16xf32> role output at 128
}

// -----

// Several ranges are read as one, and written each by itself.

module attributes {exec.persistent_bytes = 192 : i64, exec.arena_bytes = 192 : i64} {
  exec.range @a : memref<16xf32> role parameter at 0
  exec.range @b : memref<16xf32> role parameter at 64
  exec.range @c : memref<16xf32> role buffer at 128
  exec.program @writes_ranges_as_one arena 192 {
    %c = exec.get @c : memref<16xf32>
    %all = exec.get @a adjacent [@b] : memref<32xf32>
    %b = exec.view %all[16] : memref<32xf32> to memref<16xf32>
    %middle = exec.view %all[8] : memref<32xf32> to memref<16xf32>
    exec.copy on compute (%c : memref<16xf32>) outs(%b : memref<16xf32>)
    // expected-error @below {{writes @a and @b as one; several ranges are only read so}}
    exec.copy on compute (%c : memref<16xf32>) outs(%middle : memref<16xf32>)
  }
}

// -----

// A view without elements reads nothing, of one range or of several.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 256 : i64} {
  exec.range @a : memref<64xi8> role buffer at 0
  exec.range @b : memref<64xi8> role buffer at 64
  exec.program @no_elements arena 256 attributes {exec.reads = [], exec.writes = []} {
    %a = exec.get @a : memref<64xi8>
    %all = exec.get @a adjacent [@b] : memref<128xi8>
    %v = exec.view %a[0] : memref<64xi8> to memref<0xi8>
    %w = exec.view %all[128] : memref<128xi8> to memref<0xi8>
    %t = exec.alloc at 128 : memref<64xi8>
    %u = exec.view %t[0] : memref<64xi8> to memref<0xi8>
    exec.copy on compute (%v : memref<0xi8>) outs(%u : memref<0xi8>)
    exec.copy on compute (%w : memref<0xi8>) outs(%u : memref<0xi8>)
  }
}

// -----

// An input is called by its number, whatever ranges come before.

module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 256 : i64} {
  exec.range @a : memref<16xf32> role buffer at 0
  exec.range @b : memref<16xf32> role buffer at 64
  exec.program @second_range_of_the_first_input arena 256 attributes {exec.reads = ["a", "b"], exec.writes = ["b"]} {
    %all = exec.get @a adjacent [@b] : memref<32xf32>
    %middle = exec.view %all[8] : memref<32xf32> to memref<16xf32>
    %b = exec.view %all[16] : memref<32xf32> to memref<16xf32>
    // expected-error @below {{output 0 overlaps input 0 in the arena}}
    exec.copy on compute (%middle : memref<16xf32>) outs(%b : memref<16xf32>)
  }
}
