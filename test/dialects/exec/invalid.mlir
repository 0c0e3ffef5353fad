// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// range 1
// expected-error @below {{must have as type a memref of static shape and identity layout, got 'memref<?x8xf32>'}}
exec.range @w : memref<?x8xf32> role parameter

// -----

// range 2
// expected-error @below {{has offset 8, which is not a multiple of 64 bytes from the arena's start}}
exec.range @w : memref<4x8xf32> role parameter at 8

// -----

// range 6
// expected-error @below {{attribute 'placement' failed to satisfy constraint: Placement of a logical tensor on a mesh}}
exec.range @w : memref<4x8xf32> role parameter {placement = "everywhere"}

// -----

// range 6
// expected-error @below {{has a placement of 1 dimensions, but is a part of 'tensor<8x8xf32>'}}
exec.range @w : memref<4x8xf32> role parameter {full = tensor<8x8xf32>, placement = #fsdp.placement<[{"dp_shard"}]>}

// -----

// alloc: offset
exec.program @p {
  // expected-error @below {{has offset -64, which is not a multiple of 64 bytes from the arena's start}}
  %a = exec.alloc at -64 : memref<4xf32>
}

// -----

// get 1: no range
exec.program @p {
  // expected-error @below {{refers to @w, but no exec.range is named so}}
  %w = exec.get @w : memref<4xf32>
}

// -----

// get 1: another type
exec.range @w : memref<8xf32> role parameter
exec.program @p {
  // expected-error @below {{gives 'memref<4xf32>', but @w has type 'memref<8xf32>'}}
  %w = exec.get @w : memref<4xf32>
}

// -----

// get 1: no range after it
exec.range @w : memref<4xf32> role parameter
exec.program @p {
  // expected-error @below {{refers to @v, but no exec.range is named so}}
  %w = exec.get @w adjacent [@v] : memref<8xf32>
}

// -----

// get 2: an empty list
exec.range @w : memref<8xf32> role parameter
exec.program @p {
  // expected-error @below {{lists no range beside @w}}
  %w = exec.get @w adjacent [] : memref<8xf32>
}

// -----

// get 2: twice
exec.range @w : memref<4xf32> role parameter
exec.program @p {
  // expected-error @below {{reads @w beside others, but lists it twice}}
  %w = exec.get @w adjacent [@w] : memref<8xf32>
}

// -----

// get 2: an output
exec.range @w : memref<4xf32> role output
exec.range @v : memref<4xf32> role output
exec.program @p {
  // expected-error @below {{reads @w beside others, but it is an output, which may lie where buffers are}}
  %w = exec.get @w adjacent [@v] : memref<8xf32>
}

// -----

// get 2: another role
exec.range @w : memref<4xf32> role parameter
exec.range @v : memref<4xf32> role state
exec.program @p {
  // expected-error @below {{reads @v beside others, but its role is state, and that of @w parameter}}
  %w = exec.get @w adjacent [@v] : memref<8xf32>
}

// -----

// get 2: another element type
exec.range @w : memref<4xf32> role parameter
exec.range @v : memref<4xbf16> role parameter
exec.program @p {
  // expected-error @below {{reads @v beside others, but it has type 'memref<4xbf16>', the result 'memref<8xf32>'}}
  %w = exec.get @w adjacent [@v] : memref<8xf32>
}

// -----

// get 2: another number of elements
exec.range @w : memref<4xf32> role parameter
exec.range @v : memref<4xf32> role parameter
exec.program @p {
  // expected-error @below {{gives 'memref<9xf32>', but its 2 ranges have 8 elements, in one dimension}}
  %w = exec.get @w adjacent [@v] : memref<9xf32>
}

// -----

// get 2: two dimensions
exec.range @w : memref<4xf32> role parameter
exec.range @v : memref<4xf32> role parameter
exec.program @p {
  // expected-error @below {{gives 'memref<2x4xf32>', but its 2 ranges have 8 elements, in one dimension}}
  %w = exec.get @w adjacent [@v] : memref<2x4xf32>
}

// -----

// get 3: one offset
exec.range @w : memref<16xf32> role parameter at 0
exec.range @v : memref<4xf32> role parameter
exec.program @p {
  // expected-error @below {{reads @v beside others, but only one of it and @w has an offset}}
  %w = exec.get @w adjacent [@v] : memref<20xf32>
}

// -----

// get 3: a gap
exec.range @w : memref<16xf32> role parameter at 0
exec.range @v : memref<4xf32> role parameter at 128
exec.program @p {
  // expected-error @below {{reads @v beside others, but it begins at byte 128, and @w ends at byte 64}}
  %w = exec.get @w adjacent [@v] : memref<20xf32>
}

// -----

// view 1
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{changes the element type}}
  %b = exec.view %a[0] : memref<4xf32> to memref<4xi32>
}

// -----

// view 2
exec.program @p {
  %a = exec.alloc : memref<4x8xf32>
  // expected-error @below {{takes elements [32, 48), which are not inside the source's 32}}
  %b = exec.view %a[32] : memref<4x8xf32> to memref<16xf32>
}

// -----

// call 1
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{refers to @f, but no exec.func is named so}}
  exec.call @f(%a) events [] : memref<4xf32>
}

// -----

// call 2
exec.func @f {
^bb0(%a: memref<8xf32>):
}
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{gives buffer 0 of type 'memref<4xf32>', but @f takes 'memref<8xf32>'}}
  exec.call @f(%a) events [] : memref<4xf32>
}

// -----

// exec.makes: text for every output of work
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{needs 'exec.makes' to be a string, or an array of one per output, on work}}
  exec.fill_zero on compute () outs(%a : memref<4xf32>) {exec.makes = ["a", "b"]}
}

// -----

// exec.makes: only work makes something
// expected-error @below {{needs 'exec.makes' to be a string, or an array of one per output, on work}}
exec.program @p attributes {exec.makes = "a"} {
}

// -----

// exec.makes: a call has a list
exec.func @f {
}
exec.program @p {
  // expected-error @below {{needs 'exec.makes' to be an array with an entry per work of the function}}
  exec.call @f() events [] {exec.makes = "a"}
}

// -----

// launch 1
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{refers to @k, but no exec.kernel is named so}}
  exec.launch @k on compute () outs(%a : memref<4xf32>)
}

// -----

// launch 2: number
exec.kernel @k over(1, 4) access [element, element] outputs 1 {
^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
}
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{gives 1 buffers, but @k takes 2}}
  exec.launch @k on compute () outs(%a : memref<4xf32>)
}

// -----

// launch 2: outputs
exec.kernel @k over(1, 4) access [element, element] outputs 1 {
^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
}
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{has 2 outputs, but @k writes 1}}
  exec.launch @k on compute () outs(%a, %a : memref<4xf32>, memref<4xf32>)
}

// -----

// kernel: the word
// expected-error @below {{expected element, row, column or scalar}}
exec.kernel @k over(1, 4) access [diagonal] outputs 1 {
^bb0(%x: memref<4xf32>):
}

// -----

// kernel 1
// expected-error @below {{has 1 accesses for 2 arguments}}
exec.kernel @k over(1, 4) access [element] outputs 1 {
^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
}

// -----

// kernel 2
// expected-error @below {{needs 2 elements in argument 0 ('memref<4xf32>'), which is addressed by row}}
exec.kernel @k over(2, 4) access [row] outputs 1 {
^bb0(%x: memref<4xf32>):
}

// -----

// kernel 3
// expected-error @below {{must have at least one row and one column}}
exec.kernel @k over(0, 4) access [element] outputs 1 {
^bb0(%x: memref<4xf32>):
}

// -----

// kernel 4
// expected-error @below {{must write at least one and at most all of its arguments}}
exec.kernel @k over(1, 4) access [element] outputs 2 {
^bb0(%x: memref<4xf32>):
}

// -----

// kernel 5
// expected-error @below {{must hold exec.reduce_rows alone as a column_reduction}}
exec.kernel @k over(1, 4) access [element] outputs 1 column_reduction {
^bb0(%x: memref<4xf32>):
  exec.map {
  }
}

// -----

// load 1
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{must read an argument of the kernel that is no block}}
  %v = exec.load %a : memref<4xf32> -> f32
}

// -----

// load 1: what blocks combine to is no element.
exec.kernel @k over(32, 4) access [block, element] outputs 1 {
^bb0(%b: memref<1x4xf32>, %y: memref<32x4xf32>):
  exec.map {
    // expected-error @below {{must read an argument of the kernel that is no block}}
    %v = exec.load %b : memref<1x4xf32> -> f32
  }
}

// -----

// load 2
exec.kernel @k over(1, 4) access [element] outputs 1 {
^bb0(%x: memref<4xf32>):
  exec.map {
    // expected-error @below {{must load floats as f32, i64 as i64 and other integers as i32}}
    %v = exec.load %x : memref<4xf32> -> i32
  }
}

// -----

// load 2: a count is not cut to 32 bits.
exec.kernel @k over(1, 4) access [element] outputs 1 {
^bb0(%x: memref<4xi64>):
  exec.map {
    // expected-error @below {{must load floats as f32, i64 as i64 and other integers as i32}}
    %v = exec.load %x : memref<4xi64> -> i32
  }
}

// -----

// load 3
exec.kernel @k over(2, 4) access [column, element] outputs 1 {
^bb0(%w: memref<4xf32>, %x: memref<2x4xf32>):
  exec.map {
    %j = exec.column
    // expected-error @below {{names a column, which only an element argument has}}
    %v = exec.load %w at %j : memref<4xf32> -> f32
  }
}

// -----

// store 1
exec.kernel @k over(1, 4) access [element, element] outputs 1 {
^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
  exec.map {
    %v = exec.load %x : memref<4xf32> -> f32
    // expected-error @below {{must write an output of the kernel that is no block}}
    exec.store %v, %x : f32, memref<4xf32>
  }
}

// -----

// store 1: nobody but exec.reduce_rows writes a block.
exec.kernel @k over(32, 4) access [block] outputs 1 {
^bb0(%b: memref<1x4xf32>):
  exec.map {
    %v = arith.constant 1.0 : f32
    // expected-error @below {{must write an output of the kernel that is no block}}
    exec.store %v, %b : f32, memref<1x4xf32>
  }
}

// -----

// store 2
exec.kernel @k over(1, 4) access [element] outputs 1 {
^bb0(%y: memref<4xi32>):
  exec.map {
    %v = arith.constant 1.0 : f32
    // expected-error @below {{must store floats from f32, i64 from i64 and other integers from i32}}
    exec.store %v, %y : f32, memref<4xi32>
  }
}

// -----

// reduce 1
exec.kernel @k over(1, 4) access [element] outputs 1 {
^bb0(%y: memref<4xf32>):
  exec.map {
    // expected-error @below {{must stand at the top level of a kernel}}
    %s = exec.reduce sum {
      %v = arith.constant 1.0 : f32
      exec.yield %v
    }
  }
}

// -----

// reduce 2
exec.kernel @k over(1, 4) access [element] outputs 1 {
^bb0(%y: memref<4xf32>):
  %s = exec.reduce sum {
    // expected-error @below {{block with no terminator}}
    %v = arith.constant 1.0 : f32
  }
}

// -----

// map 1
exec.kernel @k over(1, 4) access [element] outputs 1 {
^bb0(%y: memref<4xf32>):
  exec.map {
    // expected-error @below {{must stand at the top level of a kernel}}
    exec.map {
    }
  }
}

// -----

// reduce_rows 2
exec.kernel @k over(2, 4) access [element] outputs 1 column_reduction {
^bb0(%y: memref<2x4xf32>):
  // expected-error @below {{must write a column output of the kernel}}
  exec.reduce_rows sum %y : memref<2x4xf32> {
    %v = arith.constant 1.0 : f32
    exec.yield %v
  }
}

// -----

// reduce_rows 2: a kernel of rows gives its blocks.
exec.kernel @k over(32, 4) access [column] outputs 1 {
^bb0(%y: memref<4xf32>):
  // expected-error @below {{must write a block output of the kernel}}
  exec.reduce_rows sum %y : memref<4xf32> {
    %v = arith.constant 1.0 : f32
    exec.yield %v
  }
}

// -----

// reduce_rows 2: blocks are not rounded before they are added.
exec.kernel @k over(32, 4) access [block] outputs 1 {
^bb0(%y: memref<1x4xbf16>):
  // expected-error @below {{must write f32, not 'bf16'}}
  exec.reduce_rows sum %y : memref<1x4xbf16> {
    %v = arith.constant 1.0 : f32
    exec.yield %v
  }
}

// -----

// reduce_rows 2: sums are f32, rounded or not.
exec.kernel @k over(2, 4) access [column] outputs 1 column_reduction {
^bb0(%y: memref<4xi32>):
  // expected-error @below {{must write f32 or bf16, not 'i32'}}
  exec.reduce_rows sum %y : memref<4xi32> {
    %v = arith.constant 1.0 : f32
    exec.yield %v
  }
}

// -----

// reduce_rows 4
exec.kernel @k over(32, 4) access [block] outputs 1 {
^bb0(%y: memref<1x4xf32>):
  // expected-error @below {{combines blocks in_order, which only a column_reduction with one output does}}
  exec.reduce_rows sum %y in_order : memref<1x4xf32> {
    %v = arith.constant 1.0 : f32
    exec.yield %v
  }
}

// -----

// kernel 7
// expected-error @below {{has 33 rows, which are no whole blocks of 32}}
exec.kernel @k over(33, 4) access [block] outputs 1 {
^bb0(%y: memref<1x4xf32>):
  exec.reduce_rows sum %y : memref<1x4xf32> {
    %v = arith.constant 1.0 : f32
    exec.yield %v
  }
}

// -----

// range 3: a size that no arena holds.
// expected-error @below {{@w must hold f32, bf16, f64, i8, i32 or i64, not be empty and have at most 2^56 bytes, but is 'memref<12x9223372036854775807xf32>'}}
exec.range @w : memref<12x9223372036854775807xf32> role parameter

// -----

// range 3: elements without bytes.
// expected-error @below {{@w must hold f32, bf16, f64, i8, i32 or i64}}
exec.range @w : memref<4xi1> role parameter

// -----

// range 4
// expected-error @below {{offset 9223372036854775744 and 64 bytes lie beyond the 2^62 bytes of an arena}}
exec.range @w : memref<16xf32> role parameter at 9223372036854775744

// -----

// range 5
// expected-error @below {{full must be a tensor of static shape, not empty and of at most 2^56 bytes, but is 'tensor<36028797018963968xf32>'}}
exec.range @w : memref<16xf32> role parameter {full = tensor<36028797018963968xf32>}

// -----

// alloc 2
exec.program @p {
  // expected-error @below {{offset 4611686018427387904 and 16 bytes lie beyond the 2^62 bytes of an arena}}
  %a = exec.alloc at 4611686018427387904 : memref<4xf32>
}

// -----

// Values: at most 2^56 bytes.
exec.program @p {
  // expected-error @below {{with identity layout, not empty (but an i8 workspace may be) and of at most 2^56 bytes, but got 'memref<72057594037927937xi8>'}}
  %a = exec.alloc : memref<72057594037927937xi8>
}

// -----

// Values: not empty.
exec.program @p {
  // expected-error @below {{not empty (but an i8 workspace may be)}}
  %a = exec.alloc : memref<4x0xf32>
}

// -----

// Values: one element after another.
exec.program @p {
  // expected-error @below {{with identity layout}}
  %a = exec.alloc : memref<4x8xf32, strided<[4611686018427387904, 1]>>
}

// -----

// view 2: an offset whose end leaves 64 bits.
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{takes elements [9223372036854775806, 9223372036854775807), which are not inside the source's 4}}
  %b = exec.view %a[9223372036854775806] : memref<4xf32> to memref<4xf32>
}

// -----

// kernel 6: a space that nothing counts.
// expected-error @below {{has 4294967296 rows of 4294967296 columns, which are more than 2^56 elements}}
exec.kernel @k over(4294967296, 4294967296) access [scalar] outputs 1 {
^bb0(%y: memref<1xf32>):
}

// -----

// column 1
exec.kernel @k over(1, 2147483649) access [element] outputs 1 {
^bb0(%y: memref<2147483649xi32>):
  exec.map {
    // expected-error @below {{is an i32, but the kernel has 2147483649 columns}}
    %c = exec.column
    exec.store %c, %y : i32, memref<2147483649xi32>
  }
}


// -----

// exec.target, exec.threads of a module
// expected-error @below {{needs 'exec.target' to be a string on the module}}
module attributes {exec.target = 5 : i64} {
}

// -----

// expected-error @below {{needs 'exec.threads' to be an i64 from 1 to 4096 on the module}}
module attributes {exec.target = "cpu", exec.threads = "x"} {
}

// -----

// expected-error @below {{needs 'exec.threads' to be an i64 from 1 to 4096 on the module}}
module attributes {exec.target = "cpu", exec.threads = -5 : i64} {
}

// -----

// expected-error @below {{needs 'exec.threads' to be an i64 from 1 to 4096 on the module}}
module attributes {exec.target = "cpu", exec.threads = 4097 : i64} {
}

// -----

// expected-error @below {{needs 'exec.threads' to be an i64 from 1 to 4096 on the module}}
module attributes {exec.target = "cpu", exec.threads = 4 : i32} {
}

// -----

// expected-error @below {{needs 'exec.target' to be a string on the module}}
exec.program @p attributes {exec.target = "cpu"} {
}

// -----

// An event's number has a bound.
exec.program @p {
  // expected-error @+1 {{attribute 'event' failed to satisfy constraint: 64-bit signless integer attribute whose maximum value is 2147483647}}
  exec.record 9223372036854775807 on compute
}

// -----

// exec.call 3: so have those of a call.
exec.func @f {
  exec.wait 0 on gather
}
exec.program @p {
  // expected-error @+1 {{names event 9223372036854775806; they are numbered up to 2147483647}}
  exec.call @f() events [9223372036854775806]
}

// -----

// expected-error @below {{needs 'exec.inputs' to be an array of names of ranges, on a program}}
exec.program @p attributes {exec.inputs = [3]} {
}

// -----

// expected-error @below {{needs 'exec.outputs' to be an array of names of ranges, on a program}}
exec.program @p attributes {exec.outputs = [{}]} {
}

// -----

// expected-error @below {{needs 'exec.reads' to be an array of names of ranges, on a program}}
exec.program @p attributes {exec.reads = "x"} {
}

// -----

// expected-error @below {{needs 'exec.writes' to be an array of names of ranges, on a program}}
exec.program @p attributes {exec.writes = [@x]} {
}

// -----

// expected-error @below {{needs 'exec.adds' to be an array of names of ranges, on a program}}
exec.program @p attributes {exec.adds} {
}

// -----

// expected-error @below {{needs 'exec.clears' to be an array of names of ranges, on a program}}
exec.program @p attributes {exec.clears = [3]} {
}

// -----

// expected-error @below {{needs 'exec.flops' to be an i64 that is not negative, on a program}}
exec.program @p attributes {exec.flops = "many"} {
}

// -----

// expected-error @below {{needs 'exec.flops' to be an i64 that is not negative, on a program}}
exec.program @p attributes {exec.flops = -1 : i64} {
}

// -----

// expected-error @below {{needs 'exec.memory' to be what exec-plan-memory reports, on a program}}
exec.program @p attributes {exec.memory = {kinds = [3 : i64]}} {
}

// -----

// expected-error @below {{needs 'exec.memory' to be what exec-plan-memory reports, on a program}}
exec.program @p attributes {exec.memory = {tenants = [{bytes = [] }]}} {
}

// -----

// expected-error @below {{needs 'exec.inputs' to be an array of names of ranges, on a program}}
module attributes {exec.inputs = []} {
}

// -----

// expected-error @below {{needs 'exec.arena_bytes' to be an i64 that is not negative, on the module}}
module attributes {exec.arena_bytes = 64 : i32} {
}

// -----

// expected-error @below {{needs 'exec.persistent_bytes' to be an i64 that is not negative, on the module}}
module attributes {exec.persistent_bytes = -64 : i64} {
}

// -----

// expected-error @below {{needs 'exec.steps' to be the i64 of runs by program, by step, on the module}}
module attributes {exec.steps = []} {
}

// -----

// expected-error @below {{needs 'exec.steps' to be the i64 of runs by program, by step, on the module}}
module attributes {exec.steps = {train = 1 : i64}} {
}

// -----

// expected-error @below {{needs 'exec.steps' to be the i64 of runs by program, by step, on the module}}
module attributes {exec.steps = {train = {p = 0 : i64}}} {
}
