// RUN: split-file %s %t
// RUN: fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t/policy.toml" | FileCheck %s
// RUN: fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t/policy.toml" --fsdp-propagate --fsdp-verify-placements --fsdp-expand | FileCheck %s --check-prefix=LOCAL
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2" 2>&1 | FileCheck %s --check-prefix=PLAN
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2 policy=%t/policy.toml" 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t/none.toml" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=3 policy=%t/policy.toml" 2>&1 | FileCheck %s --check-prefix=DIVIDE
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=8 policy=%t/stream.toml" 2>&1 | FileCheck %s --check-prefix=SEQUENCE
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t/rank.toml" 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t/data.toml" 2>&1 | FileCheck %s --check-prefix=DATA
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t/twice.toml" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t/glob.toml" 2>&1 | FileCheck %s --check-prefix=GLOB
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t/key.toml" 2>&1 | FileCheck %s --check-prefix=KEY
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t/section.toml" 2>&1 | FileCheck %s --check-prefix=SECTION
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t/boolean.toml" 2>&1 | FileCheck %s --check-prefix=BOOLEAN
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t/axes.toml" 2>&1 | FileCheck %s --check-prefix=AXES
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t/negative.toml" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t/match.toml" 2>&1 | FileCheck %s --check-prefix=MATCH
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t/streams.toml" 2>&1 | FileCheck %s --check-prefix=STREAMS
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t/unknown.toml" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not fsdp-opt %t/flat.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t/stream.toml" 2>&1 | FileCheck %s --check-prefix=FLAT
// RUN: sed 's/nn.add %%x, %%o/nn.add %%o, %%x/' %t/model.mlir | not fsdp-opt --fsdp-shard="mesh=dp=2,tp=2 policy=%t/policy.toml" 2>&1 | FileCheck %s --check-prefix=SWAPPED
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t/absent.toml" 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=/dev/zero" 2>&1 | FileCheck %s --check-prefix=DEVICE
// RUN: rm -f %t/pipe && mkfifo %t/pipe && not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t/pipe" 2>&1 | FileCheck %s --check-prefix=PIPE
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t" 2>&1 | FileCheck %s --check-prefix=FOLDER
// RUN: truncate -s 1048577 %t/large.toml
// RUN: not fsdp-opt %t/model.mlir --fsdp-shard="mesh=dp=2,tp=2 policy=%t/large.toml" 2>&1 | FileCheck %s --check-prefix=LARGE

// Later rules win; storage lies behind the axes of the policy.
// CHECK: nn.parameter @up {{.*}} {fsdp.placement = #fsdp.placement<[{"tp" | "dp"}, {}]>}
// CHECK: nn.parameter @down {{.*}} {fsdp.placement = #fsdp.placement<[{| "dp"}, {"tp"}]>}
// CHECK: nn.parameter @scale {{.*}} {fsdp.placement = #fsdp.placement<[{}]>, nn.frozen}
// CHECK-LABEL: func.func @forward
// The residual stream is sharded along the sequence over tp, for all its users; what
// said which it is goes.
// CHECK: %[[S:.*]] = fsdp.redistribute %arg0 on @mesh to <[{"dp"}, {"tp"}, {}]>
// CHECK: nn.rms_norm %[[S]]
// CHECK: %[[Y:.*]] = nn.add %[[S]], %{{[^{]*}} : tensor<2x4x8xf32>
// CHECK: fsdp.redistribute %[[Y]] on @mesh to <[{"dp"}, {"tp"}, {}]>

// The sequence is gathered before the first product, and its parts are added
// and sharded in one after the second. Each rank has one sequence, so bringing
// pieces to the front costs nothing.
// LOCAL-LABEL: func.func @forward
// LOCAL: fsdp.shard_of
// LOCAL: nn.rms_norm {{.*}} tensor<1x2x8xf32>
// LOCAL: fsdp.all_gather {{.*}} on @mesh["tp"] dim 0
// LOCAL: nn.linear {{.*}} -> tensor<1x4x8xf32>
// LOCAL: nn.linear {{.*}} -> tensor<1x4x8xf32>
// LOCAL: fsdp.reduce_scatter sum {{.*}} on @mesh["tp"] dim 0
// LOCAL: nn.add {{.*}} : tensor<1x2x8xf32>
// LOCAL-NOT: nn.transpose

// PLAN: error: the tensor-parallel plan: no parameter matches "layers.*.attention.wq.weight"
// AXIS: error: {{.*}}policy.toml:4: the mesh has no axis "tp"
// NONE: error: {{.*}}none.toml:1: no parameter matches "layers.*"
// DIVIDE: error: {{.*}}policy.toml:4: 3 ranks of the axis "tp" do not divide dimension 0 of @up, which is 'tensor<16x8xf32>'; take a number of ranks that divides it
// SEQUENCE: error: {{.*}}stream.toml:1: 8 ranks of the axis "tp" do not divide the sequence of 4; take another sequence length, or do not split the stream
// RANK: error: {{.*}}rank.toml:1: @scale has no dimension 1: it is 'tensor<8xf32>'
// DATA: error: {{.*}}data.toml:1: over the axis "dp" batches are split, and the mode says how parameters are stored; name another axis
// TWICE: error: {{.*}}twice.toml:{{.*}}
// GLOB: error: {{.*}}glob.toml:1: "w[": {{.*}}
// KEY: error: {{.*}}key.toml:3: {{\[\[parameters\]\]}}: unknown key 'shards'; did you mean 'shard'?
// SECTION: error: {{.*}}section.toml:1: a policy has [stream] and {{\[\[parameters\]\]}}, not 'parameter'
// BOOLEAN: error: {{.*}}boolean.toml:3: {{\[\[parameters\]\]}}: frozen: expected true or false
// AXES: error: {{.*}}axes.toml:3: {{\[\[parameters\]\]}}: shard: expected { AXIS = DIMENSION, … }
// NEGATIVE: error: {{.*}}negative.toml:3: {{\[\[parameters\]\]}}: shard.tp: expected a dimension, 0 or above
// MATCH: error: {{.*}}match.toml:1: {{\[\[parameters\]\]}}: match: expected a pattern of parameter names
// STREAMS: error: {{.*}}streams.toml:1: over the axis "dp" batches are split
// UNKNOWN: error: {{.*}}unknown.toml:2: [stream]: unknown key 'seqence'; did you mean 'sequence'?
// FLAT: error: {{.*}}stream.toml:1: @forward has no residual stream: no nn.add has 'nn.residual', with which a model marks the additions of its blocks
// SWAPPED: error: 'nn.add' op has 'nn.residual', but its first operand, which is the residual stream, is computed from its second, which a block adds to it; swap them
// ABSENT: error: {{.*}}absent.toml
// What never ends is not read, nor what is larger than any policy.
// DEVICE: error: the placement policy '/dev/zero' is not a regular file; copy it into one
// PIPE: error: the placement policy '{{.*}}/pipe' is not a regular file
// FOLDER: error: the placement policy '{{.*}}' is not a regular file
// LARGE: error: the placement policy '{{.*}}large.toml' has 1048577 bytes, more than 1 MiB

//--- model.mlir
nn.parameter @up : tensor<16x8xf32> init #nn.zeros
nn.parameter @down : tensor<8x16xf32> init #nn.zeros
nn.parameter @scale : tensor<8xf32> init #nn.ones
func.func @forward(%x: tensor<2x4x8xf32> {nn.name = "x"}) -> (tensor<2x4x8xf32> {nn.name = "y"}) {
  %g = nn.read @scale : tensor<8xf32>
  %n, %rstd = nn.rms_norm %x, %g eps 1.0e-05 : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
  %u = nn.read @up : tensor<16x8xf32>
  %h = nn.linear %n, %u : tensor<2x4x8xf32>, tensor<16x8xf32> -> tensor<2x4x16xf32>
  %d = nn.read @down : tensor<8x16xf32>
  %o = nn.linear %h, %d : tensor<2x4x16xf32>, tensor<8x16xf32> -> tensor<2x4x8xf32>
  %y = nn.add %x, %o {nn.residual} : tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

//--- policy.toml
[stream]
sequence = "tp"

[[parameters]]
match = "{up,down}"
shard = { tp = 0 }

[[parameters]]
match = "down"
shard = { tp = 1 }

[[parameters]]
match = "scale"
shard = { tp = 0 }

[[parameters]]
match = "scale"
shard = {}
frozen = true
replicate = true
//--- none.toml
[[parameters]]
match = "layers.*"
//--- stream.toml
[stream]
sequence = "tp"
//--- rank.toml
[[parameters]]
match = "scale"
shard = { tp = 1 }
//--- data.toml
[[parameters]]
match = "up"
shard = { dp = 0 }
//--- twice.toml
[[parameters]]
match = "up"
shard = { tp = 0, tp = 1 }
//--- glob.toml
[[parameters]]
match = "w["
//--- key.toml
[[parameters]]
match = "up"
shards = { tp = 0 }
//--- section.toml
[[parameter]]
match = "up"
//--- boolean.toml
[[parameters]]
match = "up"
frozen = 1
//--- axes.toml
[[parameters]]
match = "up"
shard = "tp"
//--- negative.toml
[[parameters]]
match = "up"
shard = { tp = -1 }
//--- match.toml
[[parameters]]
frozen = true
//--- streams.toml
[stream]
sequence = "dp"
//--- unknown.toml
[stream]
seqence = "tp"
//--- flat.mlir
func.func @forward(%x: tensor<2x8xf32> {nn.name = "x"}) -> (tensor<2x8xf32> {nn.name = "y"}) {
  %y = nn.silu %x : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}
