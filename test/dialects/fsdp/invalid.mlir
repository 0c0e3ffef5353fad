// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// fsdp.mesh 1: at least one axis.
// expected-error @+1 {{needs at least one axis}}
fsdp.mesh @mesh []

// -----

// fsdp.mesh 2: names differ.
// expected-error @+1 {{has axis "a" twice}}
fsdp.mesh @mesh ["a" = 2, "a" = 2]

// -----

// fsdp.mesh 2: names are not empty.
// expected-error @+1 {{a mesh axis needs a name}}
fsdp.mesh @mesh ["" = 2]

// -----

// fsdp.mesh 3: sizes are at least 1.
// expected-error @+1 {{mesh axis "a" must have size at least 1, got 0}}
fsdp.mesh @mesh ["a" = 0]

// -----

// fsdp.mesh 4: nodes are equal.
// expected-error @+1 {{has node_size 3, which does not divide the world size 4}}
fsdp.mesh @mesh ["a" = 4] {node_size = 3 : i64}

// -----

// fsdp.mesh 6: kinds are data and tensor.
// expected-error @+1 {{the kind of an axis is data or tensor, got 'date'; did you mean 'data'?}}
fsdp.mesh @mesh ["a" = 4 : date]

// -----

// The same in the attribute's own form.
// expected-error @+1 {{the kind of an axis is data or tensor, got 'expert'}}
func.func private @f() attributes {a = #fsdp.axis<"a" = 4 : expert>}

// -----

// A sub-axis has sizes of at least 1.
// expected-error @+1 {{sub-axis sizes must be at least 1}}
nn.parameter @w : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "a":(0)2}]>}

// -----

// Nor in the attribute's own form, where a mesh would be divided by it.
fsdp.mesh @mesh ["a" = 4]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @+1 {{sub-axis :(0)2 of mesh axis "a" must have sizes from 1 to 1048576}}
  "exec.collective"(%a, %a) {kind = #fsdp<collective_kind all_gather>, stream = #exec<stream gather>, mesh = @mesh, axes = [#fsdp.axis_ref<"a", 0, 2>], operandSegmentSizes = array<i32: 1, 1, 0>} : (memref<4xf32>, memref<4xf32>) -> ()
}

// -----

// The product of the parts may be larger than any number.
fsdp.mesh @mesh ["a" = 4]
// expected-error @+1 {{sub-axis :(4294967296)4294967296 of mesh axis "a" must have sizes from 1 to 1048576}}
nn.parameter @w : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "a":(4294967296)4294967296}]>}

// -----

// fsdp.placement: a placement.
// expected-error @+1 {{needs 'fsdp.placement' to be a #fsdp.placement, got "everywhere"}}
nn.parameter @w : tensor<8xf32> init #nn.zeros {fsdp.placement = "everywhere"}

// -----

// fsdp.placement: the axes exist.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
// expected-error @+1 {{has a placement #fsdp.placement<[{| "c"}]> over #fsdp.axis_ref<"c">, which mesh @mesh lacks}}
nn.parameter @w : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "c"}]>}

// -----

// fsdp.placement: a sub-axis divides its axis.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
// expected-error @+1 {{has a placement #fsdp.placement<[{| "a":(2)2}]> over #fsdp.axis_ref<"a", 2, 2>, which mesh @mesh lacks}}
nn.parameter @w : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "a":(2)2}]>}

// -----

// fsdp.placement: only on declarations.
// expected-error @+1 {{may not have 'fsdp.placement', which belongs on nn.parameter or nn.buffer}}
func.func private @f() attributes {fsdp.placement = #fsdp.placement<[]>}

// -----

// fsdp.plan: an array on the module.
// expected-error @+1 {{needs 'fsdp.plan' to be an array of rules on the module}}
module attributes {fsdp.plan = "fast"} {
}

// -----

// fsdp.parameters: not names in strings.
fsdp.mesh @mesh ["a" = 2]
nn.parameter @w : tensor<8xf32> init #nn.zeros
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{needs 'fsdp.parameters' to be one symbol of a parameter per operand of a collective}}
  %g = fsdp.all_gather %s on @mesh["a"] dim 0 {fsdp.parameters = ["w"]} : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

// fsdp.parameters: of parameters that there are.
fsdp.mesh @mesh ["a" = 2]
nn.parameter @w : tensor<8xf32> init #nn.zeros
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{moves @v, which is no nn.parameter}}
  %g = fsdp.all_gather %s on @mesh["a"] dim 0 {fsdp.parameters = [@v]} : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

// fsdp.parameters: a buffer is none. An all_reduce is checked too.
fsdp.mesh @mesh ["a" = 2]
nn.buffer @m : tensor<8xf32> init #nn.zeros
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{moves @m, which is no nn.parameter}}
  %g = fsdp.all_reduce sum %s on @mesh["a"] {fsdp.parameters = [@m]} : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

// fsdp.parameters: one symbol per operand.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{needs 'fsdp.parameters' to be one symbol of a parameter per operand of a collective}}
  %g = fsdp.all_gather %s on @mesh["a"] dim 0 {fsdp.parameters = [@v, @w]} : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

// A misspelt attribute is not accepted silently.
// expected-error @+1 {{has an unknown attribute 'fsdp.placment'}}
nn.parameter @w : tensor<8xf32> init #nn.zeros {fsdp.placment = #fsdp.placement<[{}]>}

// -----

// fsdp.redistribute 1: the mesh exists.
func.func @f(%s: tensor<8xf32>) {
  // expected-error @+1 {{refers to @mesh, which is no fsdp.mesh}}
  %r = fsdp.redistribute %s on @mesh to <[{}]> : tensor<8xf32> -> tensor<8xf32>
  return
}

// -----

// fsdp.redistribute 2: the placement fits.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%s: tensor<8xf32>) {
  // expected-error @+1 {{has a placement #fsdp.placement<[{"c"}]> over #fsdp.axis_ref<"c">, which mesh @mesh lacks}}
  %r = fsdp.redistribute %s on @mesh to <[{"c"}]> : tensor<8xf32> -> tensor<8xf32>
  return
}

// -----

// fsdp.redistribute 3: one shape.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%s: tensor<4xf32>) {
  // expected-error @+1 {{cannot produce 'tensor<8xf32>' from 'tensor<4xf32>'}}
  %r = fsdp.redistribute %s on @mesh to <[{}]> : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

// fsdp.redistribute 3: integers are not converted.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%s: tensor<8xi32>) {
  // expected-error @+1 {{cannot produce 'tensor<8xf32>' from 'tensor<8xi32>'}}
  %r = fsdp.redistribute %s on @mesh to <[{}]> : tensor<8xi32> -> tensor<8xf32>
  return
}

// -----

// fsdp.redistribute 4: what travels is a float.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%s: tensor<8xf32>) {
  // expected-error @+1 {{sends f32, bf16 or f64, not 'i32'}}
  %r = fsdp.redistribute %s on @mesh to <[{}]> wire i32 : tensor<8xf32> -> tensor<8xf32>
  return
}

// -----

// fsdp.all_gather 1: axes do not overlap.
fsdp.mesh @mesh ["a" = 4]
func.func @gather(%s: tensor<2xf32>) {
  // expected-error @+1 {{names #fsdp.axis_ref<"a", 1, 2> and #fsdp.axis_ref<"a">, which share ranks of an axis}}
  %g = fsdp.all_gather %s on @mesh["a":(1)2, "a"] dim 0 : tensor<2xf32> -> tensor<16xf32>
  return
}

// -----

// fsdp.all_gather 1: at most 8 axes.
fsdp.mesh @mesh ["a" = 2, "b" = 2, "c" = 2, "d" = 2, "e" = 2, "f" = 2, "g" = 2, "h" = 2, "i" = 2]
func.func @gather(%s: tensor<1xf32>) {
  // expected-error @+1 {{goes over 9 axes of mesh @mesh; at most 8 are possible}}
  %g = fsdp.all_gather %s on @mesh["a", "b", "c", "d", "e", "f", "g", "h", "i"] dim 0 : tensor<1xf32> -> tensor<512xf32>
  return
}

// -----

// fsdp.all_gather 1: the mesh exists.
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{refers to @mesh, which is no fsdp.mesh}}
  %g = fsdp.all_gather %s on @mesh["a"] dim 0 : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

// fsdp.all_gather 2: a result per operand.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{has 1 operands but 2 results}}
  %g:2 = fsdp.all_gather %s on @mesh["a"] dim 0 : tensor<4xf32> -> tensor<8xf32>, tensor<8xf32>
  return
}

// -----

// fsdp.all_gather 2: gathering converts nothing.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{cannot gather 'tensor<4xf32>' into 'tensor<8xbf16>'}}
  %g = fsdp.all_gather %s on @mesh["a"] dim 0 : tensor<4xf32> -> tensor<8xbf16>
  return
}

// -----

// fsdp.all_gather 3: sizes outside dim agree.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
func.func @program(%s: tensor<4x2xf32>) {
  // expected-error @+1 {{has shapes 'tensor<4x2xf32>' and 'tensor<8x3xf32>', which differ outside dim 0}}
  %g = fsdp.all_gather %s on @mesh["a"] dim 0 : tensor<4x2xf32> -> tensor<8x3xf32>
  return
}

// -----

// fsdp.all_gather 3: dim exists.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{has dim 1, which is outside 'tensor<8xf32>'}}
  %g = fsdp.all_gather %s on @mesh["a"] dim 1 : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

// fsdp.all_gather 3: over 4 ranks, 8 elements are shards of 2.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{has shard 'tensor<4xf32>' of 'tensor<8xf32>', which over 4 ranks must have size 2 along dim 0}}
  %g = fsdp.all_gather %s on @mesh["a", "b"] dim 0 : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

// fsdp.reduce_scatter 2: a bucket is not empty.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
func.func @program() {
  // expected-error @+1 {{needs at least one operand}}
  "fsdp.reduce_scatter"() {kind = #fsdp<reduce sum>, mesh = @mesh, axes = [#fsdp.axis_ref<"a">]} : () -> ()
  return
}

// -----

// fsdp.reduce_scatter 3: the shard is a shard.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
func.func @program(%s: tensor<8xf32>) {
  // expected-error @+1 {{has shard 'tensor<3xf32>' of 'tensor<8xf32>', which over 2 ranks must have size 4 along dim 0}}
  %g = fsdp.reduce_scatter sum %s on @mesh["a"] dim 0 : tensor<8xf32> -> tensor<3xf32>
  return
}

// -----

// fsdp.reduce_scatter 3: sums are f32.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
func.func @program(%s: tensor<8xbf16>) {
  // expected-error @+1 {{that reduces 'tensor<8xbf16>' must give 'f32' elements, got 'tensor<4xbf16>'}}
  %g = fsdp.reduce_scatter sum %s on @mesh["a"] dim 0 : tensor<8xbf16> -> tensor<4xbf16>
  return
}

// -----

// fsdp.all_reduce 1: the axes exist.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
func.func @program(%s: tensor<8xf32>) {
  // expected-error @+1 {{refers to #fsdp.axis_ref<"c">, which mesh @mesh lacks}}
  %g = fsdp.all_reduce sum %s on @mesh["c"] : tensor<8xf32> -> tensor<8xf32>
  return
}

// -----

// fsdp.all_reduce 2: shapes are equal.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
func.func @program(%s: tensor<8xf32>) {
  // expected-error @+1 {{cannot reduce 'tensor<8xf32>' into 'tensor<4xf32>'}}
  %g = fsdp.all_reduce sum %s on @mesh["a"] : tensor<8xf32> -> tensor<4xf32>
  return
}

// -----

// fsdp.all_reduce 3: integers stay what they are.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
func.func @program(%s: tensor<2xi64>) {
  // expected-error @+1 {{that reduces 'tensor<2xi64>' must give 'i64' elements, got 'tensor<2xf32>'}}
  %g = fsdp.all_reduce sum %s on @mesh["a"] : tensor<2xi64> -> tensor<2xf32>
  return
}

// -----

// !fsdp.future: tensors of static shape.
// expected-error @+1 {{a future gives tensors of static shape, got 'f32'}}
func.func private @f(!fsdp.future<f32>)

// -----

// fsdp.async 1: one collective.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{must hold one collective followed by fsdp.yield}}
  %f = fsdp.async : !fsdp.future<tensor<8xf32>> {
    %g = fsdp.all_gather %s on @mesh["a"] dim 0 : tensor<4xf32> -> tensor<8xf32>
    %h = fsdp.all_gather %s on @mesh["a"] dim 0 : tensor<4xf32> -> tensor<8xf32>
    fsdp.yield %g : tensor<8xf32>
  }
  return
}

// -----

// fsdp.async 1: nothing but a collective.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{must hold one collective followed by fsdp.yield}}
  %f = fsdp.async : !fsdp.future<tensor<4xf32>> {
    %g = nn.neg %s : tensor<4xf32>
    fsdp.yield %g : tensor<4xf32>
  }
  return
}

// -----

// fsdp.async 1: the future is of what the collective gives.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{must yield the results of its collective}}
  %f = fsdp.async : !fsdp.future<tensor<4xf32>> {
    %g = fsdp.all_gather %s on @mesh["a"] dim 0 : tensor<4xf32> -> tensor<8xf32>
    fsdp.yield %s : tensor<4xf32>
  }
  return
}

// -----

// fsdp.async 2: of these types.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{yields other types than '!fsdp.future<tensor<4xf32>>'}}
  %f = fsdp.async : !fsdp.future<tensor<4xf32>> {
    %g = fsdp.all_gather %s on @mesh["a"] dim 0 : tensor<4xf32> -> tensor<8xf32>
    fsdp.yield %g : tensor<8xf32>
  }
  return
}

// -----

// fsdp.async 3: a gather is on another stream than a reduction.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
func.func @program(%s: tensor<4xf32>) {
  %f = fsdp.async : !fsdp.future<tensor<8xf32>> {
    %g = fsdp.all_gather %s on @mesh["a"] dim 0 : tensor<4xf32> -> tensor<8xf32>
    fsdp.yield %g : tensor<8xf32>
  }
  %h = fsdp.async : !fsdp.future<tensor<8xf32>> {
    // expected-error @+1 {{in the body of an fsdp.async must await what runs on the same stream}}
    %w = fsdp.await %f : !fsdp.future<tensor<8xf32>> -> tensor<8xf32>
    %r = fsdp.all_reduce sum %w on @mesh["b"] : tensor<8xf32> -> tensor<8xf32>
    fsdp.yield %r : tensor<8xf32>
  }
  return
}

// -----

// fsdp.await 1: the types of the future.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
func.func @program(%f: !fsdp.future<tensor<8xf32>>) {
  // expected-error @+1 {{gives other types than '!fsdp.future<tensor<8xf32>>'}}
  %g = fsdp.await %f : !fsdp.future<tensor<8xf32>> -> tensor<4xf32>
  return
}

// -----

// fsdp.placement is verified before the op that carries it: one without a type.
// expected-error @+1 {{'nn.parameter' op requires attribute 'type'}}
"nn.parameter"() <{init = #nn.zeros, sym_name = "w"}> {fsdp.placement = #fsdp.placement<[{| "a"}]>} : () -> ()

// -----

// fsdp.mesh 5: ranks of an axis.
// expected-error @+1 {{mesh axis "a" has 1048577 ranks, more than 1048576}}
fsdp.mesh @mesh ["a" = 1048577]

// -----

// fsdp.mesh 5: ranks of all axes, whose product leaves 64 bits.
// expected-error @+1 {{has more than 1048576 ranks}}
fsdp.mesh @mesh ["a" = 1048576, "b" = 1048576, "c" = 1048576, "d" = 1048576]

// -----

// #fsdp.axis_ref 1: a prefix of 0 divides nothing.
// expected-error @+1 {{sub-axis :(0)4 of mesh axis "a" must have sizes from 1 to 1048576}}
func.func private @f() attributes {x.axes = [#fsdp.axis_ref<"a", 0, 4>]}

// -----

// #fsdp.axis_ref 1: sizes whose product leaves 64 bits.
// expected-error @+1 {{sub-axis :(4294967296)4294967296 of mesh axis "a" must have sizes from 1 to 1048576}}
fsdp.mesh @mesh ["a" = 4] {x = #fsdp.placement<[{"a":(4294967296)4294967296}]>}

// -----

// #fsdp.axis_ref 2: the whole axis has no prefix.
// expected-error @+1 {{the whole mesh axis "a" has no prefix, got 2}}
func.func private @f() attributes {x.axes = [#fsdp.axis_ref<"a", 2, 0>]}

// -----

// Sizes: what a future gives.
// expected-error @+1 {{a future's tensor must not be empty and have at most 2^56 bytes, got 'tensor<36028797018963968xf32>'}}
func.func private @f(!fsdp.future<tensor<36028797018963968xf32>>)

// -----

// #fsdp.placement 1: an axis once.
fsdp.mesh @mesh ["a" = 2]
// expected-error @+1 {{a placement names mesh axis "a" twice}}
nn.parameter @w : tensor<4x4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{"a"}, {"a"}]>}

// -----

// #fsdp.placement 1: parts of an axis that have ranks in common.
fsdp.mesh @mesh ["a" = 8]
// expected-error @+1 {{a placement names mesh axis "a" twice}}
nn.parameter @w : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{"a":(1)4}, {"a":(2)2}]>}

// -----

// #fsdp.placement 2: partial over something.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{a partial placement names at least one axis}}
  %0 = fsdp.redistribute %x on @mesh to <[{}], partial = sum {}> : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

// #fsdp.placement 3: one list per dimension.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{has a placement #fsdp.placement<[{"a"}, {}]> of 2 dimensions on a tensor of 1}}
  %0 = fsdp.redistribute %x on @mesh to <[{"a"}, {}]> : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

// #fsdp.placement 4: axes of the mesh.
fsdp.mesh @mesh ["a" = 2]
// expected-error @+1 {{has a placement #fsdp.placement<[{"b"}]> over #fsdp.axis_ref<"b">, which mesh @mesh lacks}}
func.func @f(%x: tensor<4xf32> {fsdp.placement = #fsdp.placement<[{"b"}]>}) {
  return
}

// -----

// #fsdp.placement 5: compute axes divide.
fsdp.mesh @mesh ["a" = 3]
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{that splits dimension 0 of 'tensor<4xf32>' into 3 parts, which do not divide it}}
  %0 = fsdp.redistribute %x on @mesh to <[{"a"}]> : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

// #fsdp.placement 6: activations are not stored.
fsdp.mesh @mesh ["a" = 2]
// expected-error @+1 {{with storage axes, which only parameters, buffers and their gradients have}}
func.func @f(%x: tensor<4xf32> {fsdp.placement = #fsdp.placement<[{| "a"}]>}) {
  return
}

// -----

// The same for a function without a body.
fsdp.mesh @mesh ["a" = 2]
// expected-error @+1 {{with storage axes, which only parameters, buffers and their gradients have}}
func.func private @f(tensor<4xf32> {fsdp.placement = #fsdp.placement<[{| "a"}]>})

// -----

// #fsdp.placement 6: what is stored is not partial.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
// expected-error @+1 {{has a storage placement, which cannot be partial}}
nn.parameter @w : tensor<4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "a"}], partial = sum {"b"}>}

// -----

// fsdp.placement on an argument: a #fsdp.placement.
fsdp.mesh @mesh ["a" = 2]
// expected-error @+1 {{arguments and results are tensors with 'fsdp.placement', a #fsdp.placement}}
func.func @f(%x: tensor<4xf32> {fsdp.placement = "everywhere"}) {
  return
}

// -----

// fsdp.placement on a declaration: there is a mesh.
// expected-error @+1 {{has a placement, but there is no fsdp.mesh}}
nn.parameter @w : tensor<4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{"a"}]>}

// -----

// fsdp.placement on a result: there is a mesh.
// expected-error @+1 {{has a placement, but there is no fsdp.mesh}}
func.func private @f() -> (tensor<4xf32> {fsdp.placement = #fsdp.placement<[{"a"}]>})

// -----

// fsdp.local: a unit on a program.
// expected-error @+1 {{needs 'fsdp.local' to be a unit on a program}}
func.func private @f() attributes {fsdp.local = 1}

// -----

// fsdp.shard_of 1: axes.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{which mesh @mesh lacks}}
  %0 = fsdp.shard_of %x on @mesh["b"] dim 0 : tensor<4xf32> -> tensor<2xf32>
  return
}

// -----

// fsdp.shard_of 2: element types.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{cannot take the shard 'tensor<2xbf16>' of 'tensor<4xf32>'}}
  %0 = fsdp.shard_of %x on @mesh["a"] dim 0 : tensor<4xf32> -> tensor<2xbf16>
  return
}

// -----

// fsdp.shard_of 2: the size of a part.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<7xf32>) {
  // expected-error @+1 {{which over 2 ranks must have size 4 along dim 0}}
  %0 = fsdp.shard_of %x on @mesh["a"] dim 0 : tensor<7xf32> -> tensor<3xf32>
  return
}

// -----

// fsdp.shard_of 3: what it is a shard of.
fsdp.mesh @mesh ["a" = 4]
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{is 'regathered', but its operand is not what an all_gather of one tensor along dim 0 gives}}
  %0 = fsdp.shard_of %x on @mesh["a":(2)2] dim 0 {regathered} : tensor<8xf32> -> tensor<4xf32>
  return
}

// -----

// fsdp.shard_of 3: over which ranks.
fsdp.mesh @mesh ["a" = 4, "b" = 2]
func.func @f(%x: tensor<2xf32>) {
  %0 = fsdp.all_gather %x on @mesh["a"] dim 0 : tensor<2xf32> -> tensor<8xf32>
  // expected-error @+1 {{is 'regathered' over axes that its operand is not gathered over}}
  %1 = fsdp.shard_of %0 on @mesh["b"] dim 0 {regathered} : tensor<8xf32> -> tensor<4xf32>
  return
}

// -----

// fsdp.shard_of 3: the only one.
fsdp.mesh @mesh ["a" = 4]
func.func @f(%x: tensor<2xf32>) {
  %0 = fsdp.all_gather %x on @mesh["a"] dim 0 : tensor<2xf32> -> tensor<8xf32>
  // expected-error @+1 {{is 'regathered', and so is another shard of the same tensor}}
  %1 = fsdp.shard_of %0 on @mesh["a":(2)2] dim 0 {regathered} : tensor<8xf32> -> tensor<4xf32>
  %2 = fsdp.shard_of %0 on @mesh["a":(2)2] dim 0 {regathered} : tensor<8xf32> -> tensor<4xf32>
  return
}

// -----

// fsdp.rows_of_shard 1: axes.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4xi32>) {
  // expected-error @+1 {{which mesh @mesh lacks}}
  %0 = fsdp.rows_of_shard %x on @mesh["b"] of 8 : tensor<4xi32>
  return
}

// -----

// fsdp.rows_of_shard 2: indices.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4xi64>) {
  // expected-error @+1 {{needs indices of i32, got 'tensor<4xi64>'}}
  %0 = fsdp.rows_of_shard %x on @mesh["a"] of 8 : tensor<4xi64>
  return
}

// -----

// fsdp.rows_of_shard 3: rows.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4xi32>) {
  // expected-error @+1 {{needs a table of rows, got 0}}
  %0 = fsdp.rows_of_shard %x on @mesh["a"] of 0 : tensor<4xi32>
  return
}

// -----

// fsdp.rows_of_shard 4: ranks.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<5x2xi32>) {
  // expected-error @+1 {{cannot split the indices 'tensor<5x2xi32>' by 2 ranks}}
  %0 = fsdp.rows_of_shard %x on @mesh["a"] of 8 {by_rank} : tensor<5x2xi32>
  return
}

// -----

// fsdp.all_to_all 1: axes.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4x4xf32>) {
  // expected-error @+1 {{which mesh @mesh lacks}}
  %0 = fsdp.all_to_all %x on @mesh["b"] split 0 join 1 : tensor<4x4xf32> -> tensor<2x8xf32>
  return
}

// -----

// fsdp.all_to_all 2: results.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4x4xf32>) {
  // expected-error @+1 {{has 2 operands but 1 results}}
  %0 = fsdp.all_to_all %x, %x on @mesh["a"] split 0 join 1 : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<2x8xf32>
  return
}

// -----

// fsdp.all_to_all 3: two dimensions.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4x4xf32>) {
  // expected-error @+1 {{needs two dimensions of 'tensor<4x4xf32>' to split and join, got 1 and 1}}
  %0 = fsdp.all_to_all %x on @mesh["a"] split 1 join 1 : tensor<4x4xf32> -> tensor<4x4xf32>
  return
}

// -----

// fsdp.all_to_all 4: the split dimension divides.
fsdp.mesh @mesh ["a" = 3]
func.func @f(%x: tensor<4x4xf32>) {
  // expected-error @+1 {{cannot split dimension 0 of 'tensor<4x4xf32>' into 3 parts}}
  %0 = fsdp.all_to_all %x on @mesh["a"] split 0 join 1 : tensor<4x4xf32> -> tensor<1x12xf32>
  return
}

// -----

// fsdp.all_to_all 4: the result.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4x4xf32>) {
  // expected-error @+1 {{must produce 'tensor<2x8xf32>' from 'tensor<4x4xf32>', not 'tensor<4x4xf32>'}}
  %0 = fsdp.all_to_all %x on @mesh["a"] split 0 join 1 : tensor<4x4xf32> -> tensor<4x4xf32>
  return
}

// -----

// fsdp.origin: what a plan calls an op.
func.func @program(%x: tensor<4xf32>) {
  // expected-error @+1 {{needs 'fsdp.origin' to be the #fsdp.origin of an op}}
  %y = nn.silu %x {fsdp.origin = "fwd silu"} : tensor<4xf32>
  return
}

// -----

// fsdp.members: of a collective, one per operand.
fsdp.mesh @mesh ["a" = 2]
func.func @program(%s: tensor<4xf32>) {
  // expected-error @+1 {{needs 'fsdp.members' to be one #fsdp.origin of an op per operand of a collective}}
  %g = fsdp.all_gather %s on @mesh["a"] dim 0 {fsdp.members = [#fsdp.origin<"fwd x all_gather">, #fsdp.origin<"fwd y all_gather">]} : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

// fsdp.lowering: texts.
// expected-error @+1 {{needs 'fsdp.lowering' to be a dictionary of texts on the module}}
module attributes {fsdp.lowering = {compile.reduce = 1 : i64}} {
}

// -----

// fsdp.lowering: of a module.
// expected-error @+1 {{needs 'fsdp.lowering' to be a dictionary of texts on the module}}
func.func @program() attributes {fsdp.lowering = {compile.reduce = "exact"}} {
  return
}

// -----

// fsdp.outcome: of a program.
// expected-error @+1 {{needs 'fsdp.outcome' to be an array of i64 on a program}}
func.func @program() attributes {fsdp.outcome = [1]} {
  return
}
