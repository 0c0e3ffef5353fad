// RUN: split-file %s %t
// RUN: fsdp-opt %t/model.mlir --fsdp-shard="mesh=tp=2 policy=%t/policy.toml" | FileCheck %s
// RUN: fsdp-opt %t/model.mlir --fsdp-shard="mesh=tp=2 policy=%t/stated.toml" | FileCheck %s --check-prefix=STATED
// RUN: fsdp-opt %t/model.mlir --fsdp-shard="mesh=tp=2 policy=%t/policy.toml" --nn-differentiate --fsdp-propagate --fsdp-verify-placements --fsdp-expand -o %t/local.mlir
// RUN: FileCheck %s --check-prefix=LOCAL --input-file=%t/local.mlir
// RUN: fsdp-opt %t/model.mlir --nn-differentiate | fsdp-interpret --seed 1 | tail -n +2 > %t/meant
// RUN: fsdp-interpret %t/local.mlir --seed 1 --same-on-all-ranks | tail -n +2 > %t/computed
// RUN: grep -c 'grad ' %t/meant | FileCheck %s --check-prefix=GRADIENTS
// RUN: diff %t/meant %t/computed
// RUN: fsdp-opt %t/half.mlir --fsdp-shard="mesh=tp=2 policy=%t/half.toml" | FileCheck %s --check-prefix=HALF
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=tp=2 policy=%t/wrong.toml" 2>&1 | FileCheck %s --check-prefix=WRONG
//
// What belongs to a weight follows it: the bias of a product that is sharded along
// its outputs, and the weight of a norm that reads it. A bias behind a sum over
// ranks is added once, and a norm over shards adds up squares.

// CHECK: nn.parameter @up_bias {{.*}}#fsdp.placement<[{"tp"}]>
// CHECK: nn.parameter @scale {{.*}}#fsdp.placement<[{"tp"}]>
// CHECK: nn.parameter @down_bias {{.*}}#fsdp.placement<[{| "tp"}]>
// CHECK: nn.parameter @after {{.*}}#fsdp.placement<[{| "tp"}]>
// CHECK: %[[X:.*]] = nn.linear {{.*}} bias {{.*}} -> tensor<2x4x16xf32>
// CHECK-NEXT: %[[SQUARES:.*]] = nn.mul %[[X]], %[[X]]
// CHECK-NEXT: %[[MEAN:.*]] = nn.mean %[[SQUARES]] [2] count 16
// CHECK-NEXT: %[[EPS:.*]] = nn.constant dense<1.000000e-03>
// CHECK-NEXT: %[[SUM:.*]] = nn.add %[[MEAN]], %[[EPS]]
// CHECK-NEXT: %[[RSTD:.*]] = nn.rsqrt %[[SUM]]
// CHECK-NEXT: %[[ROWS:.*]] = nn.broadcast %[[RSTD]] [0, 1]
// CHECK-NEXT: %[[SCALED:.*]] = nn.mul %[[X]], %[[ROWS]]
// CHECK: %[[ONE:.*]] = nn.constant dense<1.000000e+00>
// CHECK: %[[W:.*]] = nn.add %{{.*}}, %[[ONE]]
// CHECK: %[[COLUMNS:.*]] = nn.broadcast %[[W]] [2]
// CHECK: %[[Y:.*]] = nn.mul %[[SCALED]], %[[COLUMNS]]
// CHECK: %[[D:.*]] = nn.linear %[[Y]], %{{[^ ]*}} :
// CHECK: %[[BIAS:.*]] = nn.broadcast %{{.*}} [2]
// CHECK: %[[O:.*]] = nn.add %[[D]], %[[BIAS]]
// CHECK: nn.rms_norm %[[O]]

// One number per row travels each way, and sums before a bias and a norm are
// scattered along the sequence.
// LOCAL-LABEL: func.func @train
// LOCAL: fsdp.all_gather {{.*}} : tensor<4x8xf32> -> tensor<8x8xf32>
// LOCAL: fsdp.all_reduce sum {{.*}} : tensor<2x4xf32> -> tensor<2x4xf32>
// LOCAL: fsdp.reduce_scatter sum {{.*}} : tensor<8x8xf32> -> tensor<4x8xf32>
// LOCAL: nn.add {{.*}} : tensor<2x2x8xf32>
// LOCAL: nn.rms_norm {{.*}} : tensor<2x2x8xf32>
// LOCAL: nn.seed
// LOCAL: fsdp.all_gather {{.*}} : tensor<4x8xf32> -> tensor<8x8xf32>
// LOCAL: fsdp.all_reduce sum {{.*}} : tensor<2x4xf32> -> tensor<2x4xf32>
// LOCAL-NOT: fsdp.
// LOCAL: return
// GRADIENTS: 6

// A rule that states how a parameter is split is not overridden.
// STATED: nn.parameter @up_bias {{.*}}#fsdp.placement<[{"tp"}]>
// STATED: nn.parameter @scale {{.*}}#fsdp.placement<[{}]>
// STATED: nn.rms_norm {{.*}} {plus_one} : tensor<2x4x16xf32>

// Squares and sums are f32; the result is rounded once.
// HALF: %[[X:.*]] = nn.cast %{{.*}} : tensor<2x16xbf16> to tensor<2x16xf32>
// HALF-NEXT: nn.mul %[[X]], %[[X]] : tensor<2x16xf32>
// HALF: nn.mul {{.*}} : tensor<2x16xf32>
// HALF: nn.mul {{.*}} : tensor<2x16xf32>
// HALF-NEXT: nn.cast {{.*}} : tensor<2x16xf32> to tensor<2x16xbf16>

// WRONG: wrong.toml:1: @up_bias has no dimension 1: it is 'tensor<16xf32>'

//--- model.mlir
nn.parameter @up : tensor<16x8xf32> init #nn.normal<std = 0.5>
nn.parameter @up_bias : tensor<16xf32> init #nn.normal<std = 0.5>
nn.parameter @scale : tensor<16xf32> init #nn.normal<std = 0.5>
nn.parameter @down : tensor<8x16xf32> init #nn.normal<std = 0.5>
nn.parameter @down_bias : tensor<8xf32> init #nn.normal<std = 0.5>
nn.parameter @after : tensor<8xf32> init #nn.normal<std = 0.5>
func.func @forward(%x: tensor<2x4x8xf32> {nn.name = "x"}, %t: tensor<2x4x8xf32> {nn.name = "t"}) -> (tensor<f32> {nn.name = "loss"}) {
  %u = nn.read @up : tensor<16x8xf32>
  %ub = nn.read @up_bias : tensor<16xf32>
  %i = nn.linear %x, %u bias %ub : tensor<2x4x8xf32>, tensor<16x8xf32>, tensor<16xf32> -> tensor<2x4x16xf32>
  %g = nn.read @scale : tensor<16xf32>
  %n, %r = nn.rms_norm %i, %g eps 1.0e-03 {plus_one} : tensor<2x4x16xf32>, tensor<16xf32>, tensor<2x4xf32>
  %d = nn.read @down : tensor<8x16xf32>
  %db = nn.read @down_bias : tensor<8xf32>
  %o = nn.linear %n, %d bias %db : tensor<2x4x16xf32>, tensor<8x16xf32>, tensor<8xf32> -> tensor<2x4x8xf32>
  %a = nn.read @after : tensor<8xf32>
  %m, %r1 = nn.rms_norm %o, %a eps 1.0e-05 : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
  %y = nn.add %x, %m {nn.residual} : tensor<2x4x8xf32>
  %loss = nn.mse_loss %y, %t count 64 : tensor<2x4x8xf32>, tensor<f32>
  return %loss : tensor<f32>
}

//--- half.mlir
nn.parameter @up : tensor<16x8xf32> init #nn.zeros
nn.parameter @scale : tensor<16xf32> init #nn.ones
func.func @forward(%x: tensor<2x8xbf16> {nn.name = "x"}) -> (tensor<2x16xbf16> {nn.name = "y"}) {
  %u = nn.read @up : tensor<16x8xf32>
  %uh = nn.cast %u : tensor<16x8xf32> to tensor<16x8xbf16>
  %i = nn.linear %x, %uh : tensor<2x8xbf16>, tensor<16x8xbf16> -> tensor<2x16xbf16>
  %g = nn.read @scale : tensor<16xf32>
  %gh = nn.cast %g : tensor<16xf32> to tensor<16xbf16>
  %n, %r = nn.rms_norm %i, %gh eps 1.0e-03 : tensor<2x16xbf16>, tensor<16xbf16>, tensor<2xf32>
  return %n : tensor<2x16xbf16>
}

//--- policy.toml
[stream]
sequence = "tp"

[[parameters]]
match = "up"
shard = { tp = 0 }

[[parameters]]
match = "down"
shard = { tp = 1 }

//--- half.toml
[[parameters]]
match = "up"
shard = { tp = 0 }

//--- stated.toml
[[parameters]]
match = "up"
shard = { tp = 0 }

[[parameters]]
match = "scale"
shard = {}

//--- wrong.toml
[[parameters]]
match = "*_bias"
shard = { tp = 1 }
