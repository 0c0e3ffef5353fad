// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --exec-lower=target=test
// RUN: sed -n 's#^// CUDA: ##p' %s | not fsdp-opt --exec-lower=target=cuda 2>&1 | FileCheck %s --check-prefix=TOKENS
// RUN: echo 'module {}' | not fsdp-opt --exec-lower=target=tpu 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: echo 'module {}' | not fsdp-opt --exec-lower="target=test threads=0" 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: echo 'module {}' | not fsdp-opt --exec-lower="target=test threads=4097" 2>&1 | FileCheck %s --check-prefix=MANY
// FEW: error: exec-lower takes 1 to 4096 threads, not 0
// MANY: error: exec-lower takes 1 to 4096 threads, not 4097
// TARGET: error: exec-lower knows no target 'tpu'; there are cpu, cuda and test

// The rows of one column do not lie one after another.
fsdp.mesh @mesh ["dp_shard" = 2]
func.func @a(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<4x4xf32> {nn.name = "y"}) {
  // expected-error @below {{only dimension 0 can be lowered yet, not 1}}
  %y = fsdp.shard_of %x on @mesh["dp_shard"] dim 1 : tensor<4x8xf32> -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// Programs that share an input agree on where it lies.
fsdp.mesh @mesh ["dp_shard" = 2]
// expected-note @below {{and input of type 'memref<4xf32>' at #fsdp.placement<[{"dp_shard"}]> there}}
func.func @a(%x: tensor<4xf32> {nn.name = "x", fsdp.placement = #fsdp.placement<[{"dp_shard"}]>}) attributes {fsdp.local} {
  return
}
// expected-error @below {{range 'x' is input of type 'memref<4xf32>' here}}
func.func @b(%x: tensor<4xf32> {nn.name = "x"}) attributes {fsdp.local} {
  return
}

// -----

// A placed program that is not one rank's yet.
fsdp.mesh @mesh ["dp_shard" = 2]
// expected-error @below {{result 0 of @a has a placement, but the type of the whole tensor; run fsdp-expand first}}
func.func @a(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<4xf32> {nn.name = "y", fsdp.placement = #fsdp.placement<[{"dp_shard"}]>}) {
  return %x : tensor<4xf32>
}

// -----

// Parts of a tensor that no address space holds.
fsdp.mesh @mesh ["dp_shard" = 1048576]
// expected-error @below {{argument 0 of @a is the shard of a tensor of more than 2^56 bytes}}
func.func @a(%x: tensor<17592186044416xf32> {nn.name = "x", fsdp.placement = #fsdp.placement<[{"dp_shard"}]>}) attributes {fsdp.local} {
  return
}

// -----

// Two programs use one name for different things.
// expected-note @below {{and input of type 'memref<4xf32>' there}}
func.func @a(%x: tensor<4xf32> {nn.name = "x"}) {
  return
}
// expected-error @below {{range 'x' is input of type 'memref<8xf32>' here}}
func.func @b(%x: tensor<8xf32> {nn.name = "x"}) {
  return
}

// -----

// One program's result may be another's argument, if they agree.
func.func @a(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<4xf32> {nn.name = "y"}) {
  %y = nn.neg %x : tensor<4xf32>
  // expected-note @below {{and output of type 'memref<4xf32>' there}}
  return %y : tensor<4xf32>
}
// expected-error @below {{range 'y' is input of type 'memref<8xf32>' here}}
func.func @b(%y: tensor<8xf32> {nn.name = "y"}) {
  return
}

// -----

// Within one program the argument would be overwritten.
// expected-error @below {{result 0 of @a has the name of an argument, "x"}}
func.func @a(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<4xf32> {nn.name = "x"}) {
  %y = nn.neg %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// An argument without a name has no range.
// expected-error @below {{argument 0 of @a has no nn.name}}
func.func @a(%x: tensor<4xf32>) {
  return
}

// -----

// Calls do not exist in exec.
// expected-error @below {{@helper is not public: exec-lower takes programs, inline other functions first}}
func.func private @helper()

// -----

// exec computes in f32.
// expected-error @below {{exec has no f64, but an argument is 'tensor<4xf64>'}}
func.func @a(%x: tensor<4xf64> {nn.name = "x"}) {
  return
}

// -----

// Pieces of another dimension than the first do not lie one after another.
fsdp.mesh @mesh ["dp_shard" = 2]
func.func @a(%x: tensor<4x2xf32> {nn.name = "x"}) -> (tensor<4x4xf32> {nn.name = "y"}) {
  // expected-error @below {{only dimension 0 can be lowered yet, not 1}}
  %y = fsdp.all_gather %x on @mesh["dp_shard"] dim 1 : tensor<4x2xf32> -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// A reduction over a middle dimension has no kernel.
func.func @a(%x: tensor<2x3x4xf32> {nn.name = "x"}) -> (tensor<2x4xf32> {nn.name = "y"}) {
  // expected-error @below {{has no kernel: its dimensions are neither leading nor trailing; transpose first}}
  %y = nn.sum %x [1] : tensor<2x3x4xf32> to tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// A future that is never awaited has nowhere to give its values.
fsdp.mesh @mesh ["dp_shard" = 2]
func.func @a(%x: tensor<2xf32> {nn.name = "x"}) {
  // expected-error @below {{is never awaited}}
  %f = fsdp.async : !fsdp.future<tensor<4xf32>> {
    %g = fsdp.all_gather %x on @mesh["dp_shard"] dim 0 : tensor<2xf32> -> tensor<4xf32>
    fsdp.yield %g : tensor<4xf32>
  }
  return
}

// -----

// Programs and ranges are symbols of one module.
// expected-error @below {{has the name of a program}}
func.func @x(%a: tensor<4xf32> {nn.name = "x"}) {
  return
}

// -----

// A gather whose padding is larger than any tensor: 2^20 ranks with a row of
// 2^40 elements each.
fsdp.mesh @mesh ["dp_shard" = 1048576]
func.func @a(%x: tensor<1x1099511627776xf32> {nn.name = "x"}) -> (tensor<1x1099511627776xf32> {nn.name = "y"}) {
  // expected-error @below {{gathers 'memref<1x1099511627776xf32>' from 1048576 ranks, which is more than 2^56 bytes}}
  %y = fsdp.all_gather %x on @mesh["dp_shard"] dim 0 : tensor<1x1099511627776xf32> -> tensor<1x1099511627776xf32>
  return %y : tensor<1x1099511627776xf32>
}

// -----

// A result may not be f64 either.
func.func @a() {
  // expected-error @below {{exec has no f64, but a result is 'tensor<4xf64>'}}
  %c = nn.constant dense<0.0> : tensor<4xf64>
  return
}

// -----

// The same room for the pieces of a reduction.
fsdp.mesh @mesh ["dp_shard" = 1048576]
func.func @a(%x: tensor<1x1099511627776xf32> {nn.name = "x"}) -> (tensor<1x1099511627776xf32> {nn.name = "y"}) {
  // expected-error @below {{is too large for the library of this target}}
  %y = fsdp.reduce_scatter sum %x on @mesh["dp_shard"] dim 0 : tensor<1x1099511627776xf32> -> tensor<1x1099511627776xf32>
  return %y : tensor<1x1099511627776xf32>
}

// -----

// A shard has one size.
fsdp.mesh @mesh ["dp_shard" = 2]
nn.parameter @w : tensor<4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}]>}
func.func @a() {
  // expected-error @below {{'nn.read' op reads 'tensor<3xf32>', but this rank holds 'memref<2xf32>'}}
  %w = nn.read @w : tensor<3xf32>
  return
}

// -----

// A product of 2 x 2^27 x 2^27 x 2^27 operations.
// expected-error @below {{needs more than 2^62 floating point operations}}
func.func @a(%x: tensor<134217728x134217728xf32> {nn.name = "x"}) -> (tensor<134217728x134217728xf32> {nn.name = "y"}) {
  %y = nn.matmul %x, %x : tensor<134217728x134217728xf32>, tensor<134217728x134217728xf32> -> tensor<134217728x134217728xf32>
  return %y : tensor<134217728x134217728xf32>
}

// -----

// What fsdp-expand should have replaced.
fsdp.mesh @mesh ["dp_shard" = 2]
func.func @a(%x: tensor<2xf32> {nn.name = "x"}) -> (tensor<2xf32> {nn.name = "y"}) {
  // expected-error @below {{'fsdp.redistribute' op has no lowering to exec}}
  %y = fsdp.redistribute %x on @mesh to <[{}]> : tensor<2xf32> -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

// Nothing of another level may stand beside the programs.
// expected-error @below {{'memref.global' op is left above exec}}
memref.global "private" @g : memref<4xf32>

// -----

// Only tensors have ranges.
// expected-error @below {{argument 0 of @x is not a tensor but 'index'}}
func.func @x(%a: index {nn.name = "x"}) {
  return
}

// -----

// expected-error @below {{result 0 of @x is not a tensor but '!fsdp.future<tensor<4xf32>>'}}
func.func @x(%a: tensor<4xf32> {nn.name = "x"}) -> (!fsdp.future<tensor<4xf32>> {nn.name = "y"}) {
  %y = builtin.unrealized_conversion_cast %a : tensor<4xf32> to !fsdp.future<tensor<4xf32>>
  return %y : !fsdp.future<tensor<4xf32>>
}

// -----

// A program is straight-line code.
// expected-error @+1 {{a program is one block}}
func.func @forward() {
  "func.return"() : () -> ()
^other:
  return
}

// -----

// More tokens than the GPU's sort can number, which is known before a run.
// TOKENS: :2:{{[0-9]+}}: error: is too large for the library of this target
// CUDA: func.func @p(%t: tensor<4294967296xi32> {nn.name = "t"}, %d: tensor<4294967296x2xf32> {nn.name = "d"}) -> (tensor<3x2xf32> {nn.name = "y"}) {
// CUDA:   %y = nn.embedding_grad %t, %d : tensor<4294967296xi32>, tensor<4294967296x2xf32> -> tensor<3x2xf32>
// CUDA:   return %y : tensor<3x2xf32>
// CUDA: }
