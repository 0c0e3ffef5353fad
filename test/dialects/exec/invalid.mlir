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
// expected-error @below {{attribute 'placement' failed to satisfy constraint: Where the pieces of a logical tensor lie on a mesh}}
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

// gemm 1
exec.program @p {
  %a = exec.alloc : memref<4x4xf32>
  // expected-error @below {{takes two inputs, or three with a bias}}
  exec.gemm on compute (%a : memref<4x4xf32>) outs(%a : memref<4x4xf32>)
}

// -----

// gemm 1: the bias
exec.program @p {
  %a = exec.alloc : memref<4x4xf32>
  %b = exec.alloc : memref<3xf32>
  // expected-error @below {{needs a bias of shape [4], got 'memref<3xf32>'}}
  exec.gemm on compute (%a, %a, %b : memref<4x4xf32>, memref<4x4xf32>, memref<3xf32>) outs(%a : memref<4x4xf32>)
}

// -----

// gemm 2
exec.program @p {
  %a = exec.alloc : memref<4x4xf32>
  // expected-error @below {{must have exactly one output}}
  exec.gemm on compute (%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%a, %a : memref<4x4xf32>, memref<4x4xf32>)
}

// -----

// gemm 3
exec.program @p {
  %a = exec.alloc : memref<4x4xf32>
  // expected-error @below {{takes at most one workspace, of i8}}
  exec.gemm on compute (%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%a : memref<4x4xf32>) workspace(%a : memref<4x4xf32>)
}

// -----

// gemm 4: ranks
exec.program @p {
  %a = exec.alloc : memref<4x4xf32>
  %b = exec.alloc : memref<1x4x4xf32>
  // expected-error @below {{needs operands of equal rank, at least 2}}
  exec.gemm on compute (%a, %b : memref<4x4xf32>, memref<1x4x4xf32>) outs(%a : memref<4x4xf32>)
}

// -----

// gemm 4: shapes. The right side is not transposed, so 4 columns meet 8 rows.
exec.program @p {
  %a = exec.alloc : memref<2x4xf32>
  %b = exec.alloc : memref<8x4xf32>
  %c = exec.alloc : memref<2x8xf32>
  // expected-error @below {{has shapes that do not agree: 'memref<2x4xf32>' times 'memref<8x4xf32>' gives 'memref<2x8xf32>'}}
  exec.gemm on compute (%a, %b : memref<2x4xf32>, memref<8x4xf32>) outs(%c : memref<2x8xf32>)
}

// -----

// invoke 1
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{names the operation "sort", which the runtime does not have}}
  exec.invoke "sort" on compute (%a : memref<4xf32>) outs(%a : memref<4xf32>)
}

// -----

// invoke 2: inputs
exec.program @p {
  %a = exec.alloc : memref<4x4xf32>
  // expected-error @below {{"embedding" does not take 1 inputs}}
  exec.invoke "embedding" on compute (%a : memref<4x4xf32>) outs(%a : memref<4x4xf32>)
}

// -----

// invoke 2: inputs of several tensors. adamw has 4 per tensor and 3 more.
exec.program @p {
  %a = exec.alloc : memref<4x4xf32>
  // expected-error @below {{"adamw" does not take 4 inputs}}
  exec.invoke "adamw" on compute (%a, %a, %a, %a : memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>)
      outs(%a : memref<4x4xf32>) {params = {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}}
}

// -----

// invoke 2: outputs
exec.program @p {
  // expected-error @below {{"fill_zero" does not have 0 outputs}}
  exec.invoke "fill_zero" on compute () outs()
}

// -----

// invoke 2: workspaces
exec.program @p {
  %a = exec.alloc : memref<4x4xf32>
  // expected-error @below {{"fill_zero" takes at most 0 workspaces}}
  exec.invoke "fill_zero" on compute () outs(%a : memref<4x4xf32>) workspace(%a : memref<4x4xf32>)
}

// -----

// invoke 3: missing
exec.program @p {
  %a = exec.alloc : memref<4x4xf32>
  // expected-error @below {{"transpose" needs the parameter 'permutation' of type i64s}}
  exec.invoke "transpose" on compute (%a : memref<4x4xf32>) outs(%a : memref<4x4xf32>)
}

// -----

// invoke 3: another type
exec.program @p {
  %a = exec.alloc : memref<f32>
  %b = exec.alloc : memref<2xi64>
  // expected-error @below {{"clip_coefficient" needs the parameter 'max_norm' of type f64}}
  exec.invoke "clip_coefficient" on compute (%a, %b : memref<f32>, memref<2xi64>)
      outs(%a, %a : memref<f32>, memref<f32>) {params = {max_norm = 1 : i64}}
}

// -----

// invoke 3: one too many
exec.program @p {
  %a = exec.alloc : memref<4x4xf32>
  // expected-error @below {{"fill_zero" takes 0 parameters, but has 1}}
  exec.invoke "fill_zero" on compute () outs(%a : memref<4x4xf32>) {params = {value = 1.0}}
}

// -----

// invoke 4
exec.program @p {
  %p = exec.alloc : memref<4xf32>
  %m = exec.alloc : memref<4xf32>
  %v = exec.alloc : memref<4xf32>
  %g = exec.alloc : memref<4xf32>
  %s = exec.alloc : memref<f32>
  %t = exec.alloc : memref<i32>
  // expected-error @below {{"adamw" updates in place: output 1 must be input 1}}
  exec.invoke "adamw" on compute (%p, %m, %v, %g, %s, %t, %s : memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<i32>, memref<f32>)
      outs(%p, %v, %m : memref<4xf32>, memref<4xf32>, memref<4xf32>) {params = {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}}
}

// -----

// invoke 5: beyond the output, and more dimensions than the input
exec.program @p {
  %a = exec.alloc : memref<4x4xf32>
  %b = exec.alloc : memref<8x4xf32>
  exec.invoke "copy_box" on compute (%a : memref<4x4xf32>) outs(%b : memref<8x4xf32>)
      {params = {shape = array<i64: 4, 4>, in_offsets = array<i64: 0, 0>, out_offsets = array<i64: 4, 0>}}
  // expected-error @below {{the box is not inside 'memref<4x4xf32>' and 'memref<8x4xf32>'}}
  exec.invoke "copy_box" on compute (%a : memref<4x4xf32>) outs(%b : memref<8x4xf32>)
      {params = {shape = array<i64: 4, 4>, in_offsets = array<i64: 0, 0>, out_offsets = array<i64: 5, 0>}}
}

// -----

exec.program @p {
  %a = exec.alloc : memref<4x4xf32>
  %b = exec.alloc : memref<8x4xf32>
  // expected-error @below {{the box is not inside 'memref<4x4xf32>' and 'memref<8x4xf32>'}}
  exec.invoke "copy_box" on compute (%a : memref<4x4xf32>) outs(%b : memref<8x4xf32>)
      {params = {shape = array<i64: 1, 4, 4>, in_offsets = array<i64: 0, 0, 0>, out_offsets = array<i64: 0, 0, 0>}}
}

// -----

// invoke 6
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %a = exec.alloc : memref<4x4xf32>
  %b = exec.alloc : memref<2x4xf32>
  // expected-error @below {{refers to #fsdp.axis_ref<"tp">, which mesh @mesh lacks}}
  exec.invoke "shard_of" on compute (%a : memref<4x4xf32>) outs(%b : memref<2x4xf32>) {params = {mesh = @mesh, axes = [#fsdp.axis_ref<"tp">]}}
}

// -----

// invoke 7: 5 rows in 2 parts are 3
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %a = exec.alloc : memref<5x4xf32>
  %b = exec.alloc : memref<2x4xf32>
  // expected-error @below {{of "shard_of" cannot make 'memref<2x4xf32>' of one of 2 parts of 'memref<5x4xf32>'}}
  exec.invoke "shard_of" on compute (%a : memref<5x4xf32>) outs(%b : memref<2x4xf32>) {params = {mesh = @mesh, axes = [#fsdp.axis_ref<"dp_shard">]}}
}

// -----

// invoke 7: no dimension
fsdp.mesh @mesh ["dp_shard" = 1]
exec.program @p {
  %a = exec.alloc : memref<f32>
  %b = exec.alloc : memref<f32>
  // expected-error @below {{of "shard_of" cannot make 'memref<f32>' of one of 1 parts of 'memref<f32>'}}
  exec.invoke "shard_of" on compute (%a : memref<f32>) outs(%b : memref<f32>) {params = {mesh = @mesh, axes = [#fsdp.axis_ref<"dp_shard">]}}
}

// -----

// invoke 3: no axes
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  %b = exec.alloc : memref<4xf32>
  // expected-error @below {{of "shard_of" needs the parameter 'axes' of type axes}}
  exec.invoke "shard_of" on compute (%a : memref<4xf32>) outs(%b : memref<4xf32>) {params = {mesh = @mesh, axes = ["dp_shard"]}}
}

// -----

// collective 1: the mesh
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{refers to @mesh, which is no fsdp.mesh}}
  exec.collective all_gather on gather (%a : memref<4xf32>) outs(%a : memref<4xf32>) over @mesh["dp_shard"]
}

// -----

// collective 1: an axis twice
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{names axis #fsdp.axis_ref<"dp_shard"> twice}}
  exec.collective all_gather on gather (%a : memref<4xf32>) outs(%a : memref<4xf32>) over @mesh["dp_shard", "dp_shard"]
}

// -----

// collective 1: an axis and a part of it
fsdp.mesh @mesh ["dp_shard" = 4]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{names #fsdp.axis_ref<"dp_shard"> and #fsdp.axis_ref<"dp_shard", 2, 2>, which share ranks of an axis}}
  exec.collective all_gather on gather (%a : memref<4xf32>) outs(%a : memref<4xf32>) over @mesh["dp_shard", "dp_shard":(2)2]
}

// -----

// collective 1: sub-axes that share ranks: 2 x 2 x 2 has the middle twice
fsdp.mesh @mesh ["dp_shard" = 8]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{names #fsdp.axis_ref<"dp_shard", 2, 4> and #fsdp.axis_ref<"dp_shard", 1, 4>, which share ranks of an axis}}
  exec.collective all_gather on gather (%a : memref<4xf32>) outs(%a : memref<4xf32>) over @mesh["dp_shard":(2)4, "dp_shard":(1)4]
}

// -----

// collective 1: no one cut of 12 ranks has both sub-axes
fsdp.mesh @mesh ["dp_shard" = 12]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{names #fsdp.axis_ref<"dp_shard", 1, 2> and #fsdp.axis_ref<"dp_shard", 3, 2>, which share ranks of an axis}}
  exec.collective all_gather on gather (%a : memref<4xf32>) outs(%a : memref<4xf32>) over @mesh["dp_shard":(1)2, "dp_shard":(3)2]
}

// -----

// collective 1: more axes than a reduction's tree has; those of one rank are none
fsdp.mesh @mesh ["a" = 2, "b" = 2, "c" = 2, "d" = 2, "e" = 2, "f" = 2, "g" = 2, "h" = 2, "one" = 1, "i" = 2]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  %w = exec.alloc : memref<64xi8>
  exec.collective all_reduce on reduce (%a : memref<4xf32>) outs(%a : memref<4xf32>)
      workspace(%w : memref<64xi8>) over @mesh["a", "b", "c", "d", "e", "f", "g", "h", "one"]
  // expected-error @below {{goes over 9 axes of mesh @mesh; at most 8 are possible}}
  exec.collective all_reduce on reduce (%a : memref<4xf32>) outs(%a : memref<4xf32>)
      workspace(%w : memref<64xi8>) over @mesh["a", "b", "c", "d", "e", "f", "g", "h", "i"]
}

// -----

// collective 1: the axis
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{refers to #fsdp.axis_ref<"tp">, which mesh @mesh lacks}}
  exec.collective all_gather on gather (%a : memref<4xf32>) outs(%a : memref<4xf32>) over @mesh["tp"]
}

// -----

// collective 2
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{needs as many outputs as inputs, at least one}}
  exec.collective all_gather on gather (%a : memref<4xf32>) outs(%a, %a : memref<4xf32>, memref<4xf32>) over @mesh["dp_shard"]
}

// -----

// collective 3
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{all_reduce takes 1 workspaces, but has 0}}
  exec.collective all_reduce on reduce (%a : memref<4xf32>) outs(%a : memref<4xf32>) over @mesh["dp_shard"]
}

// -----

// collective 4: a gather, of whole pieces and of one type
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  %b = exec.alloc : memref<6xf32>
  // expected-error @below {{all_gather over 2 ranks cannot make output 0 ('memref<6xf32>') of 'memref<4xf32>'}}
  exec.collective all_gather on gather (%a : memref<4xf32>) outs(%b : memref<6xf32>) over @mesh["dp_shard"]
}

// -----

fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %a = exec.alloc : memref<4xbf16>
  %b = exec.alloc : memref<8xf32>
  // expected-error @below {{all_gather over 2 ranks cannot make output 0}}
  exec.collective all_gather on gather (%a : memref<4xbf16>) outs(%b : memref<8xf32>) over @mesh["dp_shard"]
}

// -----

// collective 4: a scatter that would lose the last element
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %a = exec.alloc : memref<5xf32>
  %b = exec.alloc : memref<2xf32>
  %s = exec.alloc : memref<64xi8>
  // expected-error @below {{reduce_scatter over 2 ranks cannot make output 0}}
  exec.collective reduce_scatter on reduce (%a : memref<5xf32>) outs(%b : memref<2xf32>) workspace(%s : memref<64xi8>) over @mesh["dp_shard"]
}

// -----

// collective 4: an all_reduce changes no size
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %a = exec.alloc : memref<5xf32>
  %b = exec.alloc : memref<4xf32>
  %s = exec.alloc : memref<64xi8>
  // expected-error @below {{all_reduce over 2 ranks cannot make output 0}}
  exec.collective all_reduce on reduce (%a : memref<5xf32>) outs(%b : memref<4xf32>) workspace(%s : memref<64xi8>) over @mesh["dp_shard"]
}

// -----

// copy 1
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  %b = exec.alloc : memref<8xf32>
  // expected-error @below {{has an input and an output of different types}}
  exec.copy on compute (%a : memref<4xf32>) outs(%b : memref<8xf32>)
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
// expected-error @below {{must hold exec.reduce_rows alone as a column_reduction, and nowhere else}}
exec.kernel @k over(1, 4) access [element] outputs 1 column_reduction {
^bb0(%x: memref<4xf32>):
  exec.map {
  }
}

// -----

// load 1
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{must read an argument of the kernel}}
  %v = exec.load %a : memref<4xf32> -> f32
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
    // expected-error @below {{must write an output of the kernel}}
    exec.store %v, %x : f32, memref<4xf32>
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

exec.program @copy_of_two_buffers {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{'exec.copy' op must have one input and one output}}
  exec.copy on compute (%a, %a : memref<4xf32>, memref<4xf32>) outs(%a : memref<4xf32>)
}
