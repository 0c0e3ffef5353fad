// RUN: split-file %s %t
// RUN: fsdp-opt %t/model.mlir --fsdp-shard="mesh=tp=2 policy=%t/policy.toml" | FileCheck %s
// RUN: fsdp-opt %t/model.mlir --fsdp-shard="mesh=tp=2 policy=%t/parameters.toml" | FileCheck %s --check-prefix=FALLS
// RUN: fsdp-opt %t/loss.mlir --fsdp-shard="mesh=tp=2 policy=%t/sequence.toml" --nn-differentiate --fsdp-propagate --fsdp-verify-placements --fsdp-expand -o %t/local.mlir
// RUN: FileCheck %s --check-prefix=LOCAL --input-file=%t/local.mlir
// RUN: fsdp-opt %t/loss.mlir --nn-differentiate | fsdp-interpret --seed 1 | tail -n +2 > %t/meant
// RUN: fsdp-interpret %t/local.mlir --seed 1 --same-on-all-ranks | tail -n +2 > %t/computed
// RUN: grep -c 'grad .* whole' %t/meant
// RUN: diff %t/meant %t/computed
//
// The residual stream is what the model's additions say, wherever norms stand:
// before a block (Llama), after it (OLMo-2) or both (Gemma 2). It is kept
// sharded along the sequence up to the last addition, and whole after that.

// What a norm after a block reads is no stream.
// CHECK-LABEL: func.func @behind
// CHECK: %[[X:.*]] = fsdp.redistribute %arg0 on @mesh to <[{}, {"tp"}, {}]>
// CHECK: %[[A:.*]] = nn.linear %[[X]]
// CHECK-NOT: fsdp.redistribute %[[A]]
// CHECK: %[[N:.*]], %{{.*}} = nn.rms_norm %[[A]]
// CHECK: %[[H0:.*]] = nn.add %[[X]], %[[N]] : tensor<2x4x8xf32>
// CHECK: %[[H:.*]] = fsdp.redistribute %[[H0]] on @mesh to <[{}, {"tp"}, {}]>
// CHECK: %[[U:.*]] = nn.linear %[[H]]
// CHECK: %[[D:.*]] = nn.linear %[[U]]
// CHECK-NOT: fsdp.redistribute %[[D]]
// CHECK: %[[M:.*]], %{{.*}} = nn.rms_norm %[[D]]
// CHECK: %[[Y0:.*]] = nn.add %[[H]], %[[M]] : tensor<2x4x8xf32>
// CHECK: %[[Y:.*]] = fsdp.redistribute %[[Y0]] on @mesh to <[{}, {}, {}]>
// CHECK: nn.rms_norm %[[Y]]

// CHECK-LABEL: func.func @around
// CHECK: %[[X:.*]] = fsdp.redistribute %arg0 on @mesh to <[{}, {"tp"}, {}]>
// CHECK: %[[I:.*]], %{{.*}} = nn.rms_norm %[[X]]
// CHECK: %[[U:.*]] = nn.linear %[[I]]
// CHECK: %[[D:.*]] = nn.linear %[[U]]
// CHECK-NOT: fsdp.redistribute %[[D]]
// CHECK: %[[M:.*]], %{{.*}} = nn.rms_norm %[[D]]
// CHECK: %[[Y0:.*]] = nn.add %[[X]], %[[M]] : tensor<2x4x8xf32>
// CHECK: fsdp.redistribute %[[Y0]] on @mesh to <[{}, {}, {}]>

// Of a block with a norm after it a rank adds its half of the sequence to the
// stream, and loss and gradients are those of the whole.
// LOCAL: fsdp.shard_of
// LOCAL: fsdp.reduce_scatter sum
// LOCAL: nn.rms_norm
// LOCAL: nn.add {{.*}} : tensor<2x2x8xf32>
// LOCAL: nn.mse_loss

// A policy that says nothing of the stream leaves it where it falls; the mark
// goes all the same.
// FALLS-LABEL: func.func @behind
// FALLS-NOT: fsdp.redistribute %arg0
// FALLS-NOT: nn.residual

//--- model.mlir
nn.parameter @square : tensor<8x8xf32> init #nn.zeros
nn.parameter @up : tensor<16x8xf32> init #nn.zeros
nn.parameter @down : tensor<8x16xf32> init #nn.zeros
nn.parameter @scale : tensor<8xf32> init #nn.ones
func.func @behind(%x: tensor<2x4x8xf32> {nn.name = "x"}) -> (tensor<2x4x8xf32> {nn.name = "y"}) {
  %w = nn.read @square : tensor<8x8xf32>
  %a = nn.linear %x, %w : tensor<2x4x8xf32>, tensor<8x8xf32> -> tensor<2x4x8xf32>
  %g = nn.read @scale : tensor<8xf32>
  %n, %r0 = nn.rms_norm %a, %g eps 1.0e-05 : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
  %h = nn.add %x, %n {nn.residual} : tensor<2x4x8xf32>
  %u = nn.read @up : tensor<16x8xf32>
  %i = nn.linear %h, %u : tensor<2x4x8xf32>, tensor<16x8xf32> -> tensor<2x4x16xf32>
  %d = nn.read @down : tensor<8x16xf32>
  %o = nn.linear %i, %d : tensor<2x4x16xf32>, tensor<8x16xf32> -> tensor<2x4x8xf32>
  %m, %r1 = nn.rms_norm %o, %g eps 1.0e-05 : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
  %y = nn.add %h, %m {nn.residual} : tensor<2x4x8xf32>
  %z, %r2 = nn.rms_norm %y, %g eps 1.0e-05 : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
  return %z : tensor<2x4x8xf32>
}
func.func @around(%x: tensor<2x4x8xf32> {nn.name = "x"}) -> (tensor<2x4x8xf32> {nn.name = "v"}) {
  %g = nn.read @scale : tensor<8xf32>
  %n, %r0 = nn.rms_norm %x, %g eps 1.0e-05 : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
  %u = nn.read @up : tensor<16x8xf32>
  %i = nn.linear %n, %u : tensor<2x4x8xf32>, tensor<16x8xf32> -> tensor<2x4x16xf32>
  %d = nn.read @down : tensor<8x16xf32>
  %o = nn.linear %i, %d : tensor<2x4x16xf32>, tensor<8x16xf32> -> tensor<2x4x8xf32>
  %m, %r1 = nn.rms_norm %o, %g eps 1.0e-05 : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
  %y = nn.add %x, %m {nn.residual} : tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

//--- loss.mlir
nn.parameter @up : tensor<16x8xf32> init #nn.normal<std = 0.5>
nn.parameter @down : tensor<8x16xf32> init #nn.normal<std = 0.5>
nn.parameter @scale : tensor<8xf32> init #nn.ones
func.func @forward(%x: tensor<2x4x8xf32> {nn.name = "x"}, %t: tensor<2x4x8xf32> {nn.name = "t"}) -> (tensor<f32> {nn.name = "loss"}) {
  %u = nn.read @up : tensor<16x8xf32>
  %i = nn.linear %x, %u : tensor<2x4x8xf32>, tensor<16x8xf32> -> tensor<2x4x16xf32>
  %s = nn.silu %i : tensor<2x4x16xf32>
  %d = nn.read @down : tensor<8x16xf32>
  %o = nn.linear %s, %d : tensor<2x4x16xf32>, tensor<8x16xf32> -> tensor<2x4x8xf32>
  %g = nn.read @scale : tensor<8xf32>
  %m, %r = nn.rms_norm %o, %g eps 1.0e-05 : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
  %y = nn.add %x, %m {nn.residual} : tensor<2x4x8xf32>
  %loss = nn.mse_loss %y, %t count 64 : tensor<2x4x8xf32>, tensor<f32>
  return %loss : tensor<f32>
}

//--- policy.toml
[stream]
sequence = "tp"
loss = ""

[[parameters]]
match = "up"
shard = { tp = 0 }

[[parameters]]
match = "down"
shard = { tp = 1 }

//--- sequence.toml
[stream]
sequence = "tp"

[[parameters]]
match = "up"
shard = { tp = 0 }

[[parameters]]
match = "down"
shard = { tp = 1 }

//--- parameters.toml
[[parameters]]
match = "up"
shard = { tp = 0 }

[[parameters]]
match = "down"
shard = { tp = 1 }
