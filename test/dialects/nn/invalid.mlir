// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// Attributes, state, shapes, optimizer, fusion: one case per constraint, named after
// the op and the number of the constraint in its description.

// nn.name on an argument is a string.
// expected-error @+1 {{expects 'nn.name' to be a string that is not empty}}
func.func private @f(tensor<f32> {nn.name = 3 : i32})

// -----

// nn.name is not empty.
// expected-error @+1 {{expects 'nn.name' to be a string that is not empty}}
func.func private @f(tensor<f32>) -> (tensor<f32> {nn.name = ""})

// -----

// Names are lines: messages and files show them.
// expected-error @+1 {{has the name 'a\nb\x1b[2J', which is no line of text without control characters}}
func.func private @f(tensor<f32> {nn.name = "a\0Ab\1B[2J"})

// -----

// expected-error @+1 {{has the name 'a\nb', which is no line of text without control characters}}
nn.parameter @"a\0Ab" : tensor<4xf32> init #nn.zeros

// -----

// expected-error @+1 {{has the name '\x9b', which is no line of text without control characters}}
nn.buffer @"\C2\9B" : tensor<4xf32> init #nn.zeros

// -----

// A misspelt attribute of an argument.
// expected-error @+1 {{has an unknown attribute 'nn.nane' on an argument or result}}
func.func private @f(tensor<f32> {nn.nane = "x"})

// -----

// A misspelt attribute of an op.
// expected-error @+1 {{has an unknown attribute 'nn.frosen'}}
nn.parameter @w : tensor<4xf32> init #nn.zeros {nn.frosen}

// -----

// nn.frozen belongs to parameters.
// expected-error @+1 {{has 'nn.frozen', which must be a unit attribute of an nn.parameter}}
nn.buffer @w : tensor<4xf32> init #nn.zeros {nn.frozen}

// -----

// nn.frozen is a unit.
// expected-error @+1 {{has 'nn.frozen', which must be a unit attribute of an nn.parameter}}
nn.parameter @w : tensor<4xf32> init #nn.zeros {nn.frozen = 1 : i32}

// -----

// nn.residual belongs to additions.
func.func @residual_product(%x: tensor<2x4x8xf32>) {
  // expected-error @+1 {{has 'nn.residual', which must be a unit attribute of an nn.add of [batch, sequence, features]}}
  %y = nn.mul %x, %x {nn.residual} : tensor<2x4x8xf32>
  return
}

// -----

// A stream has a sequence.
func.func @residual_rank(%x: tensor<2x8xf32>) {
  // expected-error @+1 {{has 'nn.residual', which must be a unit attribute of an nn.add of [batch, sequence, features]}}
  %y = nn.add %x, %x {nn.residual} : tensor<2x8xf32>
  return
}

// -----

// nn.residual is a unit.
func.func @residual_value(%x: tensor<2x4x8xf32>) {
  // expected-error @+1 {{has 'nn.residual', which must be a unit attribute of an nn.add of [batch, sequence, features]}}
  %y = nn.add %x, %x {nn.residual = true} : tensor<2x4x8xf32>
  return
}

// -----

// nn.state_of belongs to buffers.
// expected-error @+1 {{has 'nn.state_of', which must name a parameter on an nn.buffer}}
nn.parameter @w : tensor<4xf32> init #nn.zeros {nn.state_of = @w}

// -----

// nn.state_of names a parameter: what is missing is none,
// expected-error @+1 {{is state of @w, which is no nn.parameter}}
nn.buffer @b : tensor<4xf32> init #nn.zeros {nn.state_of = @w}

// -----

// and neither is a buffer.
nn.buffer @a : tensor<4xf32> init #nn.zeros
// expected-error @+1 {{is state of @a, which is no nn.parameter}}
nn.buffer @b : tensor<4xf32> init #nn.zeros {nn.state_of = @a}

// -----

// nn.state_of is a symbol.
// expected-error @+1 {{has 'nn.state_of', which must name a parameter on an nn.buffer}}
nn.buffer @w : tensor<4xf32> init #nn.zeros {nn.state_of = "w"}

// -----

// nn.compute_copy_of belongs to buffers,
// expected-error @+1 {{has 'nn.compute_copy_of', which must name a parameter on an nn.buffer}}
nn.parameter @w : tensor<4xf32> init #nn.zeros {nn.compute_copy_of = @w}

// -----

// names a parameter
// expected-error @+1 {{is a copy of @w, which is no nn.parameter}}
nn.buffer @b : tensor<4xbf16> init #nn.zeros {nn.compute_copy_of = @w}

// -----

// of its shape,
nn.parameter @w : tensor<8xf32> init #nn.zeros
// expected-error @+1 {{is 'tensor<4xbf16>', but a copy of @w, which is 'tensor<8xf32>'}}
nn.buffer @b : tensor<4xbf16> init #nn.zeros {nn.compute_copy_of = @w}

// -----

// and is no state.
nn.parameter @w : tensor<4xf32> init #nn.zeros
// expected-error @+1 {{is state of @w and a copy of @w as well}}
nn.buffer @b : tensor<4xbf16> init #nn.zeros {nn.compute_copy_of = @w, nn.state_of = @w}

// -----

// nn.module is a string,
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{has 'nn.module', which must be a string that is not empty, on an op of a program}}
  %0 = nn.silu %x {nn.module = @layers} : tensor<4xf32>
  return
}

// -----

// and not an empty one;
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{has 'nn.module', which must be a string that is not empty, on an op of a program}}
  %0 = nn.silu %x {nn.module = ""} : tensor<4xf32>
  return
}

// -----

// what is declared belongs to no module.
// expected-error @+1 {{has 'nn.module', which must be a string that is not empty, on an op of a program}}
nn.parameter @w : tensor<4xf32> init #nn.zeros {nn.module = "layers"}

// -----

// A standard deviation is not negative.
// expected-error @+1 {{expects std >= 0}}
nn.parameter @w : tensor<4xf32> init #nn.normal<std = -1.0>

// -----

// A cut is not negative.
// expected-error @+1 {{expects cut >= 0}}
nn.parameter @w : tensor<4xf32> init #nn.normal<std = 1.0, cut = -1.0>

// -----

// A bound is not negative.
// expected-error @+1 {{expects bound >= 0}}
nn.parameter @w : tensor<4xf32> init #nn.uniform<bound = -1.0>

// -----

// There is a frequency.
// expected-error @+1 {{expects at least one frequency, each finite and not negative}}
nn.buffer @t : tensor<4x4x2xf32> init #nn.rotary_table<[]>

// -----

// Frequencies are not negative.
// expected-error @+1 {{expects at least one frequency, each finite and not negative}}
nn.buffer @t : tensor<4x2x2xf32> init #nn.rotary_table<[1.0, -0.1]>

// -----

// The scale is positive.
// expected-error @+1 {{expects a finite scale > 0}}
nn.buffer @t : tensor<4x1x2xf32> init #nn.rotary_table<[1.0] scale 0.0>

// -----

// The first position is not negative.
// expected-error @+1 {{expects 0 <= start <= 2^53}}
nn.buffer @t : tensor<4x4x2xf32> init #nn.rotary_table<[1.0] start -1>

// -----

// parameter 1: static shape.
// expected-error @+1 {{expects a ranked tensor of static shape, got 'tensor<?xf32>'}}
nn.parameter @w : tensor<?xf32> init #nn.zeros

// -----

// parameter 1: a tensor.
// expected-error @+1 {{expects a ranked tensor of static shape, got 'f32'}}
nn.parameter @w : f32 init #nn.zeros

// -----

// parameter 1: f32 or f64 elements.
// expected-error @+1 {{expects elements of type f32 or f64, got 'tensor<4xbf16>'}}
nn.parameter @w : tensor<4xbf16> init #nn.zeros

// -----

// parameter 2: an initialiser of parameters.
// expected-error @+1 {{expects #nn.zeros, #nn.ones, #nn.normal or #nn.uniform as initialiser}}
nn.parameter @w : tensor<4x1x2xf32> init #nn.rotary_table<[1.0]>

// -----

// buffer 1: static shape.
// expected-error @+1 {{expects a ranked tensor of static shape}}
nn.buffer @w : tensor<?xf32> init #nn.zeros

// -----

// buffer 2: an initialiser of the dialect.
// expected-error @+1 {{expects an initialiser of the nn dialect, got 0.000000e+00 : f32}}
nn.buffer @w : tensor<4xf32> init 0.0 : f32

// -----

// buffer 3: a rotary table is [_, _, 2].
// expected-error @+1 {{expects a #nn.rotary_table to initialise an f32 tensor of shape [_, number of frequencies, 2], got 'tensor<4x2x2xf32>' and 1 frequencies}}
nn.buffer @w : tensor<4x2x2xf32> init #nn.rotary_table<[1.0]>

// -----

// read 1: the symbol exists.
func.func @f() {
  // expected-error @+1 {{expects @w to name an nn.parameter or nn.buffer}}
  %w = nn.read @w : tensor<4xf32>
  return
}

// -----

// read 1: the symbol names a parameter or buffer.
func.func @f() {
  // expected-error @+1 {{expects @f to name an nn.parameter or nn.buffer}}
  %w = nn.read @f : tensor<4xf32>
  return
}

// -----

// read 2: the declared type.
nn.parameter @w : tensor<4xf32> init #nn.zeros
func.func @f() {
  // expected-error @+1 {{expects the declared type 'tensor<4xf32>', got 'tensor<5xf32>'}}
  %w = nn.read @w : tensor<5xf32>
  return
}

// -----

// gradient 1: the symbol names a parameter.
nn.buffer @w : tensor<4xf32> init #nn.zeros
func.func @f(%g: tensor<4xf32>) {
  // expected-error @+1 {{expects @w to name an nn.parameter}}
  nn.gradient @w, %g : tensor<4xf32>
  return
}

// -----

// gradient 2: the type of the parameter.
nn.parameter @w : tensor<4xf32> init #nn.zeros
func.func @f(%g: tensor<4xf64>) {
  // expected-error @+1 {{expects the declared type 'tensor<4xf32>', got 'tensor<4xf64>'}}
  nn.gradient @w, %g : tensor<4xf64>
  return
}

// -----

// accumulate 1: a buffer.
nn.parameter @w : tensor<4xf32> init #nn.zeros
func.func @f(%g: tensor<4xf32>) {
  // expected-error @+1 {{expects @w to name an nn.buffer}}
  nn.accumulate @w, %g : tensor<4xf32>
  return
}

// -----

// accumulate 3: the type of the buffer.
nn.buffer @s : tensor<4xf32> init #nn.zeros
func.func @f(%g: tensor<2xf32>) {
  // expected-error @+1 {{expects the declared type 'tensor<4xf32>', got 'tensor<2xf32>'}}
  nn.accumulate @s, %g : tensor<2xf32>
  return
}

// -----

// accumulate 3: bf16 is widened, f64 is not narrowed.
nn.buffer @s : tensor<4xf32> init #nn.zeros
func.func @f(%g: tensor<4xf64>) {
  // expected-error @+1 {{expects the declared type 'tensor<4xf32>', got 'tensor<4xf64>'}}
  nn.accumulate @s, %g : tensor<4xf64>
  return
}

// -----

// accumulate 2: no sum in bf16.
nn.buffer @s : tensor<4xbf16> init #nn.zeros
func.func @f(%g: tensor<4xbf16>) {
  // expected-error @+1 {{adds up in f32 or f64, but @s is 'tensor<4xbf16>'}}
  nn.accumulate @s, %g : tensor<4xbf16>
  return
}

// -----

// accumulate_product 1: a buffer.
nn.parameter @w : tensor<4x3xf32> init #nn.zeros
func.func @f(%dy: tensor<2x4xf32>, %x: tensor<2x3xf32>) {
  // expected-error @+1 {{expects @w to name an nn.buffer}}
  nn.accumulate_product @w, %dy, %x : tensor<2x4xf32>, tensor<2x3xf32>
  return
}

// -----

// accumulate_product 2: equal rows.
nn.buffer @s : tensor<4x3xf32> init #nn.zeros
func.func @f(%dy: tensor<2x4xf32>, %x: tensor<5x3xf32>) {
  // expected-error @+1 {{expects equal leading dimensions, got 'tensor<2x4xf32>' and 'tensor<5x3xf32>'}}
  nn.accumulate_product @s, %dy, %x : tensor<2x4xf32>, tensor<5x3xf32>
  return
}

// -----

// accumulate_product 2: no scalar.
nn.buffer @s : tensor<4x3xf32> init #nn.zeros
func.func @f(%dy: tensor<f32>, %x: tensor<f32>) {
  // expected-error @+1 {{expects equal leading dimensions, got 'tensor<f32>' and 'tensor<f32>'}}
  nn.accumulate_product @s, %dy, %x : tensor<f32>, tensor<f32>
  return
}

// -----

// accumulate_product 2: equal types.
nn.buffer @s : tensor<4x3xf32> init #nn.zeros
func.func @f(%dy: tensor<2x4xf32>, %x: tensor<2x3xbf16>) {
  // expected-error @+1 {{expects equal element types, got 'tensor<2x4xf32>' and 'tensor<2x3xbf16>'}}
  nn.accumulate_product @s, %dy, %x : tensor<2x4xf32>, tensor<2x3xbf16>
  return
}

// -----

// accumulate_product 2: f32 or bf16.
nn.buffer @s : tensor<4x3xf32> init #nn.zeros
func.func @f(%dy: tensor<2x4xf64>, %x: tensor<2x3xf64>) {
  // expected-error @+1 {{expects factors of f32 or bf16, got 'tensor<2x4xf64>' and 'tensor<2x3xf64>'}}
  nn.accumulate_product @s, %dy, %x : tensor<2x4xf64>, tensor<2x3xf64>
  return
}

// -----

// accumulate_product 3: the product's shape.
nn.buffer @s : tensor<3x4xf32> init #nn.zeros
func.func @f(%dy: tensor<2x4xf32>, %x: tensor<2x3xf32>) {
  // expected-error @+1 {{expects the declared type 'tensor<3x4xf32>', got 'tensor<4x3xf32>'}}
  nn.accumulate_product @s, %dy, %x : tensor<2x4xf32>, tensor<2x3xf32>
  return
}

// -----

// accumulate_product 3: a sum in f32.
nn.buffer @s : tensor<4x3xbf16> init #nn.zeros
func.func @f(%dy: tensor<2x4xbf16>, %x: tensor<2x3xbf16>) {
  // expected-error @+1 {{expects the declared type 'tensor<4x3xbf16>', got 'tensor<4x3xf32>'}}
  nn.accumulate_product @s, %dy, %x : tensor<2x4xbf16>, tensor<2x3xbf16>
  return
}

// -----

// write 1: a buffer.
nn.parameter @w : tensor<4xf32> init #nn.zeros
func.func @f(%g: tensor<4xf32>) {
  // expected-error @+1 {{expects @w to name an nn.buffer}}
  nn.write @w, %g : tensor<4xf32>
  return
}

// -----

// write 2: the type of the buffer.
nn.buffer @s : tensor<4xf32> init #nn.zeros
func.func @f(%g: tensor<4xbf16>) {
  // expected-error @+1 {{expects the declared type 'tensor<4xf32>', got 'tensor<4xbf16>'}}
  nn.write @s, %g : tensor<4xbf16>
  return
}

// -----

// clear 1: buffers.
nn.parameter @w : tensor<4xf32> init #nn.zeros
func.func @f() {
  // expected-error @+1 {{expects @w to name an nn.buffer}}
  nn.clear [@w]
  return
}

// -----

// clear 2: at least one.
func.func @f() {
  // expected-error @+1 {{expects at least one buffer}}
  nn.clear []
  return
}

// -----

// action: from 1 to 2^20 times.
// expected-error @+1 {{#nn.action expects from 1 to 1048576 times, got 0}}
module attributes {nn.steps = {train = [#nn.action<@train times 0>]}} {}

// -----

// The model is fields by name with a family, on the module.
// expected-error @+1 {{has 'nn.model', which must be fields by name with the string 'family', on the module}}
module attributes {nn.model = {dim = 4 : i64}} {}

// -----

// expected-error @+1 {{has 'nn.model', whose field 'dim' must be an i64, a finite f64, a boolean or a string, got 4 : i32}}
module attributes {nn.model = {family = "llama3", dim = 4 : i32}} {}

// -----

// expected-error @+1 {{has 'nn.model', whose field 'norm_eps' must be an i64, a finite f64, a boolean or a string, got 0x7FF0000000000000 : f64}}
module attributes {nn.model = {family = "llama3", norm_eps = 0x7FF0000000000000 : f64}} {}

// -----

// Steps are lists of actions, on the module.
// expected-error @+1 {{has 'nn.steps', which must be lists of #nn.action by name, on the module}}
module attributes {nn.steps = {train = []}} {}

// -----

// What a step runs is in the module, and a program.
// expected-error @+1 {{has no program @w, which its step 'train' runs}}
module attributes {nn.steps = {train = [#nn.action<@w times 1>]}} {
  nn.buffer @w : tensor<4xf32> init #nn.zeros
}

// -----

// seed 1: the loss has rank 0.
func.func @f(%l: tensor<1xf32>) {
  // expected-error @+1 {{expects the loss of rank 0, got 'tensor<1xf32>'}}
  %0 = nn.seed %l : tensor<1xf32>
  return
}

// -----

// recompute_from 1: equal types.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects results of the operands' types}}
  %0 = nn.recompute_from %x : tensor<4x8xf32> -> tensor<8x4xf32>
  return
}

// -----

// constant 1: one value.
func.func @f() {
  // expected-error @+1 {{expects a tensor value whose elements are all equal}}
  %0 = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return
}

// -----

// cast 1: equal shapes.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{requires the same shape for all operands and results}}
  %0 = nn.cast %x : tensor<4x8xf32> to tensor<8x4xbf16>
  return
}

// -----

// Arithmetic 1: equal types.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{requires the same type for all operands and results}}
  %0 = "nn.add"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

// Activations 1: equal types.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{requires the same type for all operands and results}}
  %0 = "nn.silu"(%x) : (tensor<4x8xf32>) -> tensor<4x8xbf16>
  return
}

// -----

// Gradients of activations 1: equal types.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{requires the same type for all operands and results}}
  %0 = "nn.silu_grad"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xbf16>
  return
}

// -----

// Kernels know no f16.
func.func @f(%x: tensor<4xf16>) {
  // expected-error @+1 {{must be statically shaped tensor of 32-bit float or bfloat16 type or 64-bit float values}}
  %0 = nn.neg %x : tensor<4xf16>
  return
}

// -----

// reshape 1: equal element types.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the result with elements of type 'f32', got 'tensor<32xbf16>'}}
  %0 = nn.reshape %x : tensor<4x8xf32> to tensor<32xbf16>
  return
}

// -----

// reshape 2: equal element counts.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects as many elements in the result (31) as in the operand (32)}}
  %0 = nn.reshape %x : tensor<4x8xf32> to tensor<31xf32>
  return
}

// -----

// transpose 1: a permutation.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects a permutation of the operand's dimensions}}
  %0 = nn.transpose %x [0, 0] : tensor<4x8xf32> to tensor<4x4xf32>
  return
}

// -----

// transpose 1: of all dimensions.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects a permutation of the operand's dimensions}}
  %0 = nn.transpose %x [0] : tensor<4x8xf32> to tensor<4xf32>
  return
}

// -----

// transpose 2: the permuted type.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the result of type 'tensor<8x4xf32>', got 'tensor<4x8xf32>'}}
  %0 = nn.transpose %x [1, 0] : tensor<4x8xf32> to tensor<4x8xf32>
  return
}

// -----

// slice 1: one offset per dimension.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects one offset per dimension}}
  %0 = nn.slice %x [0] : tensor<4x8xf32> to tensor<4x2xf32>
  return
}

// -----

// slice 2: inside the operand.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the box to lie inside dimension 1: 7 + 2 > 8}}
  %0 = nn.slice %x [0, 7] : tensor<4x8xf32> to tensor<4x2xf32>
  return
}

// -----

// slice 2: offsets are not negative.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the box to lie inside dimension 0: -1 + 4 > 4}}
  %0 = nn.slice %x [-1, 0] : tensor<4x8xf32> to tensor<4x2xf32>
  return
}

// -----

// slice 3: equal element types.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the result with elements of type 'f32'}}
  %0 = nn.slice %x [0, 0] : tensor<4x8xf32> to tensor<4x2xbf16>
  return
}

// -----

// slice 3: equal ranks.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the result of rank 2}}
  %0 = nn.slice %x [0, 0] : tensor<4x8xf32> to tensor<4xf32>
  return
}

// -----

// pad 1: one offset per dimension.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects one offset per dimension}}
  %0 = nn.pad %x [0] : tensor<4x8xf32> to tensor<4x9xf32>
  return
}

// -----

// pad 2: the operand lies inside the result.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the box to lie inside dimension 1: 2 + 8 > 9}}
  %0 = nn.pad %x [0, 2] : tensor<4x8xf32> to tensor<4x9xf32>
  return
}

// -----

// pad 3: equal element types.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the result with elements of type 'f32'}}
  %0 = nn.pad %x [0, 0] : tensor<4x8xf32> to tensor<4x9xbf16>
  return
}

// -----

// concat 1: at least one operand.
func.func @f() {
  // expected-error @+1 {{expects at least one operand}}
  %0 = "nn.concat"() {dim = 0 : i64} : () -> tensor<4xf32>
  return
}

// -----

// concat 2: the dimension exists.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{has no dimension 2 to join along}}
  %0 = nn.concat %x, %x dim 2 : tensor<4x8xf32>, tensor<4x8xf32> to tensor<4x16xf32>
  return
}

// -----

// concat 3: all other sizes are equal.
func.func @f(%x: tensor<4x8xf32>, %y: tensor<5x8xf32>) {
  // expected-error @+1 {{expects sizes to be equal except along dimension 1}}
  %0 = nn.concat %x, %y dim 1 : tensor<4x8xf32>, tensor<5x8xf32> to tensor<4x16xf32>
  return
}

// -----

// concat 3: the joined sizes add up.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the result of type 'tensor<4x16xf32>'}}
  %0 = nn.concat %x, %x dim 1 : tensor<4x8xf32>, tensor<4x8xf32> to tensor<4x15xf32>
  return
}

// -----

// concat 3: equal ranks.
func.func @f(%x: tensor<4x8xf32>, %y: tensor<8xf32>) {
  // expected-error @+1 {{expects an operand of rank 2}}
  %0 = nn.concat %x, %y dim 0 : tensor<4x8xf32>, tensor<8xf32> to tensor<5x8xf32>
  return
}

// -----

// concat 3: equal element types.
func.func @f(%x: tensor<4x8xf32>, %y: tensor<4x8xbf16>) {
  // expected-error @+1 {{expects an operand with elements of type 'f32'}}
  %0 = nn.concat %x, %y dim 0 : tensor<4x8xf32>, tensor<4x8xbf16> to tensor<8x8xf32>
  return
}

// -----

// broadcast 1: one entry per operand dimension.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects one entry of dims per operand dimension}}
  %0 = nn.broadcast %x [0] : tensor<4x8xf32> to tensor<4x8xf32>
  return
}

// -----

// broadcast 1: increasing.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects dims to be increasing and below 2}}
  %0 = nn.broadcast %x [1, 0] : tensor<4x8xf32> to tensor<8x4xf32>
  return
}

// -----

// broadcast 1: inside the result's rank.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects dims to be increasing and below 2}}
  %0 = nn.broadcast %x [0, 2] : tensor<4x8xf32> to tensor<4x8xf32>
  return
}

// -----

// broadcast 2: sizes equal or 1.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects size 1 or 9 for result dimension 1, got 8}}
  %0 = nn.broadcast %x [0, 1] : tensor<4x8xf32> to tensor<4x9xf32>
  return
}

// -----

// broadcast 3: equal element types.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the result with elements of type 'f32'}}
  %0 = nn.broadcast %x [0, 1] : tensor<4x8xf32> to tensor<4x8xbf16>
  return
}

// -----

// sum 1: at least one dimension.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects at least one dimension to reduce}}
  %0 = nn.sum %x [] : tensor<4x8xf32> to tensor<4x8xf32>
  return
}

// -----

// mean 1: at least one dimension.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects at least one dimension to reduce}}
  %0 = nn.mean %x [] count 1 : tensor<4x8xf32> to tensor<4x8xf32>
  return
}

// -----

// mean 4: a positive count.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects a positive count, got 0}}
  %0 = nn.mean %x [1] count 0 : tensor<4x8xf32> to tensor<4xf32>
  return
}

// -----

// max 1: at least one dimension.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects at least one dimension to reduce}}
  %0 = nn.max %x [] : tensor<4x8xf32> to tensor<4x8xf32>
  return
}

// -----

// Reductions 1: increasing.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects dims to be increasing and below 2}}
  %0 = nn.sum %x [1, 0] : tensor<4x8xf32> to tensor<f32>
  return
}

// -----

// Reductions 1: inside the rank.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects dims to be increasing and below 2}}
  %0 = nn.sum %x [2] : tensor<4x8xf32> to tensor<4xf32>
  return
}

// -----

// Reductions 2: the operand's shape without dims.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the reduced tensor of type 'tensor<4xf32>', got 'tensor<8xf32>'}}
  %0 = nn.sum %x [1] : tensor<4x8xf32> to tensor<8xf32>
  return
}

// -----

// Reductions 3: equal element types.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the reduced tensor of type 'tensor<4xf32>', got 'tensor<4xf64>'}}
  %0 = nn.sum %x [1] : tensor<4x8xf32> to tensor<4xf64>
  return
}

// -----

// max_grad: the type that nn.max gives.
func.func @f(%x: tensor<4x8xf32>, %m: tensor<8xf32>) {
  // expected-error @+1 {{expects the reduced tensor of type 'tensor<4xf32>'}}
  %0 = nn.max_grad %x, %m, %m [1] : tensor<4x8xf32>, tensor<8xf32>
  return
}

// -----

// abs_max: the result has rank 0.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the result of rank 0}}
  %0 = nn.abs_max %x : tensor<4x8xf32> -> tensor<1xf32>
  return
}

// -----

// sum_squares 1: max has rank 0.
func.func @f(%x: tensor<4x8xf32>, %m: tensor<1xf32>) {
  // expected-error @+1 {{expects max of rank 0}}
  %0 = nn.sum_squares %m, %x : tensor<1xf32>, tensor<4x8xf32> -> tensor<2xi64>
  return
}

// -----

// sum_squares 2: two digits.
func.func @f(%x: tensor<4x8xf32>, %m: tensor<f32>) {
  // expected-error @+1 {{expects the sum of type 'tensor<2xi64>'}}
  %0 = nn.sum_squares %m, %x : tensor<f32>, tensor<4x8xf32> -> tensor<3xi64>
  return
}

// -----

// clip_coefficient: max has rank 0.
func.func @f(%m: tensor<1xf32>, %s: tensor<2xi64>) {
  // expected-error @+1 {{expects max of rank 0}}
  %0, %1 = nn.clip_coefficient %m, %s max_norm 1.0 : tensor<1xf32>, tensor<2xi64>
  return
}

// -----

// clip_coefficient: max_norm is not negative.
func.func @f(%m: tensor<f32>, %s: tensor<2xi64>) {
  // expected-error @+1 {{expects max_norm >= 0}}
  %0, %1 = nn.clip_coefficient %m, %s max_norm -1.0 : tensor<f32>, tensor<2xi64>
  return
}

// -----

// adamw 1: as many moments as parameters.
nn.parameter @w : tensor<4xf32> init #nn.zeros
nn.buffer @m : tensor<4xf32> init #nn.zeros
func.func @f(%g: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{expects as many first moments, second moments and gradients as parameters (1)}}
  nn.adamw [@w] moments [@m], [](%g) lr %lr step %t clip %lr
      {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1} : tensor<4xf32>
  return
}

// -----

// adamw 1: as many copies as parameters.
nn.parameter @w : tensor<4xf32> init #nn.zeros
nn.buffer @m : tensor<4xf32> init #nn.zeros
nn.buffer @c : tensor<4xbf16> init #nn.zeros
func.func @f(%g: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{expects as many copies as parameters (1)}}
  nn.adamw [@w] moments [@m], [@m] copies [@c, @c](%g) lr %lr step %t clip %lr
      {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1} : tensor<4xf32>
  return
}

// -----

// adamw 2: copies name nn.buffer.
nn.parameter @w : tensor<4xf32> init #nn.zeros
nn.buffer @m : tensor<4xf32> init #nn.zeros
func.func @f(%g: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{expects @w to name an nn.buffer}}
  nn.adamw [@w] moments [@m], [@m] copies [@w](%g) lr %lr step %t clip %lr
      {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1} : tensor<4xf32>
  return
}

// -----

// adamw 4: copies are bf16.
nn.parameter @w : tensor<4xf32> init #nn.zeros
nn.buffer @m : tensor<4xf32> init #nn.zeros
func.func @f(%g: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{expects a copy in bf16, but @m is 'tensor<4xf32>'}}
  nn.adamw [@w] moments [@m], [@m] copies [@m](%g) lr %lr step %t clip %lr
      {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1} : tensor<4xf32>
  return
}

// -----

// adamw 2: parameters name nn.parameter.
nn.parameter @w : tensor<4xf32> init #nn.zeros
nn.buffer @m : tensor<4xf32> init #nn.zeros
func.func @f(%g: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{expects @m to name an nn.parameter}}
  nn.adamw [@m] moments [@m], [@m](%g) lr %lr step %t clip %lr
      {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1} : tensor<4xf32>
  return
}

// -----

// adamw 2: moments name nn.buffer.
nn.parameter @w : tensor<4xf32> init #nn.zeros
nn.buffer @m : tensor<4xf32> init #nn.zeros
func.func @f(%g: tensor<4xf32>, %lr: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{expects @w to name an nn.buffer}}
  nn.adamw [@w] moments [@m], [@w](%g) lr %lr step %t clip %lr
      {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1} : tensor<4xf32>
  return
}

// -----

// adamw 3: the learning rate is tensor<f32>.
nn.parameter @w : tensor<4xf32> init #nn.zeros
nn.buffer @m : tensor<4xf32> init #nn.zeros
func.func @f(%g: tensor<4xf32>, %lr: tensor<1xf32>, %t: tensor<i32>, %c: tensor<f32>) {
  // expected-error @+1 {{operand #1 must be tensor<f32>}}
  "nn.adamw"(%g, %lr, %t, %c) {parameters = [@w], first_moments = [@m], second_moments = [@m],
      beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}
      : (tensor<4xf32>, tensor<1xf32>, tensor<i32>, tensor<f32>) -> ()
  return
}

// -----

// adamw 3: the step is tensor<i32>.
nn.parameter @w : tensor<4xf32> init #nn.zeros
nn.buffer @m : tensor<4xf32> init #nn.zeros
func.func @f(%g: tensor<4xf32>, %lr: tensor<f32>) {
  // expected-error @+1 {{operand #2 must be tensor<i32>}}
  "nn.adamw"(%g, %lr, %lr, %lr) {parameters = [@w], first_moments = [@m], second_moments = [@m],
      beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}
      : (tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> ()
  return
}

// -----

// fusion 1: block arguments match the operands.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects block arguments of the operands' types}}
  %y = nn.fusion(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<8x4xf32>):
    %0 = nn.constant dense<1.0> : tensor<4x8xf32>
    nn.yield %0 : tensor<4x8xf32>
  }
  return
}

// -----

// fusion 1: nn.yield matches the results.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects nn.yield to give values of the results' types}}
  %y = nn.fusion(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4x8xf32>):
    %0 = nn.silu %a : tensor<4x8xf32>
    nn.yield %0 : tensor<4x8xf32>
  }
  return
}

// -----

// fusion 2: every op has a kernel form.
func.func @f(%x: tensor<4x8xf32>) {
  %y = nn.fusion(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x8xf32>):
    // expected-error @+1 {{has no kernel form and cannot be fused}}
    %0 = nn.matmul %a, %a {transpose_rhs} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32>
    nn.yield %a : tensor<4x8xf32>
  }
  return
}

// -----

// fusion 3: 4 rows of 8 are not 8 rows of 4.
func.func @f(%x: tensor<4x8xf32>) {
  %y = nn.fusion(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x8xf32>):
    %0 = nn.silu %a : tensor<4x8xf32>
    %1 = nn.constant dense<1.0> : tensor<8x4xf32>
    // expected-error @-1 {{does not share the iteration space of the fusion}}
    nn.yield %0 : tensor<4x8xf32>
  }
  return
}

// -----

// fusion 3: a sum over a middle dimension has no space.
func.func @f(%x: tensor<4x8xf32>) {
  %y = nn.fusion(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x8xf32>):
    %0 = nn.constant dense<1.0> : tensor<2x3x4xf32>
    // expected-error @+1 {{does not share the iteration space of the fusion}}
    %1 = nn.sum %0 [1] : tensor<2x3x4xf32> to tensor<2x4xf32>
    nn.yield %a : tensor<4x8xf32>
  }
  return
}

// -----

// fusion 5: it computes something.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects an op that it computes}}
  %y = nn.fusion(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x8xf32>):
    nn.yield %a : tensor<4x8xf32>
  }
  return
}

// -----

// fusion 4: sums over rows are of whole blocks.
func.func @f(%x: tensor<4x8xf32>) {
  %y:2 = nn.fusion(%x) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>) {
  ^bb0(%a: tensor<4x8xf32>):
    %0 = nn.silu %a : tensor<4x8xf32>
    // expected-error @+1 {{does not share the iteration space of the fusion}}
    %1 = nn.sum %a [0] : tensor<4x8xf32> to tensor<8xf32>
    nn.yield %0, %1 : tensor<4x8xf32>, tensor<8xf32>
  }
  return
}

// -----

// fusion 4: the sum is not there while the kernel runs.
func.func @f(%x: tensor<32x8xf32>) {
  %y = nn.fusion(%x) : (tensor<32x8xf32>) -> tensor<32x8xf32> {
  ^bb0(%a: tensor<32x8xf32>):
    // expected-error @+1 {{is a sum over rows, which no op of the fusion can read}}
    %0 = nn.sum %a [0] : tensor<32x8xf32> to tensor<8xf32>
    %1 = nn.broadcast %0 [1] : tensor<8xf32> to tensor<32x8xf32>
    nn.yield %1 : tensor<32x8xf32>
  }
  return
}

// -----

// Sizes: an operand of 2^62 bytes.
func.func @f(%x: tensor<1073741824x1073741824xf32>) {
  // expected-error @+1 {{operand #0 must be statically shaped tensor of 32-bit float or bfloat16 type or 64-bit float values, not empty and of at most 2^56 bytes, but got 'tensor<1073741824x1073741824xf32>'}}
  %0 = nn.neg %x : tensor<1073741824x1073741824xf32>
  return
}

// -----

// Sizes: a product that leaves 64 bits, and comes back to 0.
func.func @f(%x: tensor<4294967296x4294967296xf32>) {
  // expected-error @+1 {{not empty and of at most 2^56 bytes}}
  %0 = nn.reshape %x : tensor<4294967296x4294967296xf32> to tensor<0xf32>
  return
}

// -----

// Sizes: no element.
func.func @f(%x: tensor<4x0xf32>) {
  // expected-error @+1 {{not empty and of at most 2^56 bytes}}
  %0 = nn.neg %x : tensor<4x0xf32>
  return
}

// -----

// Sizes: a parameter.
// expected-error @+1 {{@w must not be empty and have at most 2^56 bytes, but is 'tensor<9007199254740991x4096xf32>'}}
nn.parameter @w : tensor<9007199254740991x4096xf32> init #nn.zeros

// -----

// Sizes: a buffer, whose elements must have bytes.
// expected-error @+1 {{@b must not be empty and have at most 2^56 bytes, but is 'tensor<4xi1>'}}
nn.buffer @b : tensor<4xi1> init #nn.zeros

// -----

// Sizes: an argument that no op uses is a range all the same.
// expected-error @+1 {{expects "x" to be a statically shaped tensor, not empty and of at most 2^56 bytes, got 'tensor<36028797018963968xf32>'}}
func.func @f(%x: tensor<36028797018963968xf32> {nn.name = "x"}) {
  return
}

// -----

// slice 2: an offset whose end leaves 64 bits.
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects the box to lie inside dimension 0: 9223372036854775807 + 2 > 4}}
  %0 = nn.slice %x [9223372036854775807] : tensor<4xf32> to tensor<2xf32>
  return
}

// -----

// #nn.rotary_table: a position that f64 does not hold.
// expected-error @+1 {{expects 0 <= start <= 2^53}}
nn.buffer @t : tensor<4x4x2xf32> init #nn.rotary_table<[1.0] start 9007199254740993>
