// RUN: echo '{"version": 2, "rules": [{"match": "fwd layers.1 all_gather", "start_after": "fwd tok embedding"}, {"match": "fwd output all_gather", "start_after": "fwd layers.1.w1 linear", "await_before": "fwd layers.1.w2 linear"}, {"match": "bwd head reduce_scatter", "start_after": "bwd layers.1.w2 dw", "await_before": "bwd layers.0.w2 dx"}]}' > %t.json
// RUN: fsdp-opt %S/Inputs/blocks.mlir --fsdp-address --fsdp-plan="file=%t.json" --fsdp-remat --fsdp-bucket --fsdp-overlap --fsdp-verify-schedule | FileCheck %s

// Collectives start right after the op of an address, earlier or later than by
// distance, and are awaited right before one.
// CHECK-LABEL: func.func @train
// CHECK: nn.embedding
// CHECK-NOT: nn.linear
// CHECK: fsdp.all_gather {{.*}}"fwd layers.1 all_gather"
// CHECK: nn.linear {{.*}}"fwd layers.1.w1 linear"
// CHECK-NOT: nn.silu
// CHECK: %[[O:.*]] = fsdp.async
// CHECK-NEXT: fsdp.all_gather {{.*}}"fwd head all_gather"
// CHECK: nn.mul
// CHECK-NEXT: fsdp.await %[[O]]
// CHECK-NEXT: nn.linear {{.*}}"fwd layers.1.w2 linear"
// CHECK: nn.linear_weight_grad {{.*}}"bwd layers.1.w2 dw"
// CHECK-NEXT: %[[R:.*]] = fsdp.async
// CHECK-NEXT: fsdp.reduce_scatter {{.*}}"bwd head reduce_scatter"
// CHECK: fsdp.await %[[R]]
// CHECK-NEXT: nn.linear_input_grad {{.*}}"bwd layers.0.w2 dx"

// Motion is checked: nothing starts after what needs it, is awaited where it
// has not started or after its use, or is sent before it is computed.
// RUN: echo '{"version": 2, "rules": [{"match": "fwd layers.1 all_gather", "start_after": "fwd layers.1 mul"}]}' > %t.late.json
// RUN: not fsdp-opt %S/Inputs/blocks.mlir --fsdp-address --fsdp-plan="file=%t.late.json" --fsdp-bucket --fsdp-overlap 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: 'fsdp.all_gather' op cannot start right after 'fwd layers.1 mul': its result is used before
// LATE: note: this is 'fwd layers.1.w1 linear'
// RUN: echo '{"version": 2, "rules": [{"match": "bwd layers.1 reduce_scatter", "start_after": "bwd output dx"}]}' > %t.early.json
// RUN: not fsdp-opt %S/Inputs/blocks.mlir --fsdp-address --fsdp-plan="file=%t.early.json" --fsdp-bucket --fsdp-overlap 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: error: 'fsdp.reduce_scatter' op cannot start right after 'bwd output dx': an operand is computed later
// EARLY: note: this is 'bwd layers.1.w1 dw'
// RUN: echo '{"version": 2, "rules": [{"match": "fwd layers.1 all_gather", "await_before": "fwd tok embedding", "start_after": "fwd layers.0 mul"}]}' > %t.before.json
// RUN: not fsdp-opt %S/Inputs/blocks.mlir --fsdp-address --fsdp-plan="file=%t.before.json" --fsdp-bucket --fsdp-overlap 2>&1 | FileCheck %s --check-prefix=BEFORE
// BEFORE: error: 'fsdp.all_gather' op cannot be awaited before 'fwd tok embedding', which comes before its start
// RUN: echo '{"version": 2, "rules": [{"match": "fwd layers.1 all_gather", "await_before": "fwd output linear"}]}' > %t.use.json
// RUN: not fsdp-opt %S/Inputs/blocks.mlir --fsdp-address --fsdp-plan="file=%t.use.json" --fsdp-bucket --fsdp-overlap 2>&1 | FileCheck %s --check-prefix=USE
// USE: error: 'fsdp.all_gather' op cannot be awaited before 'fwd output linear': its result is used before
// USE: note: this is 'fwd layers.1.w1 linear'

// A gather does not cross a write of what it gathers.
// RUN: not fsdp-opt %s --fsdp-address --fsdp-overlap 2>&1 | FileCheck %s --check-prefix=WRITE
// WRITE: error: 'fsdp.all_gather' op cannot start right after 'fwd first silu': an operand is computed later
// WRITE: note: this is 'update optimizer adamw'
module attributes {fsdp.plan = [{match = ["* w all_gather"], overlap = true, start_after = "fwd first silu"}]} {
  fsdp.mesh @mesh ["dp_shard" = 2]
  nn.parameter @w.weight : tensor<4x8xf32> init #nn.zeros
  nn.buffer @m : tensor<4x8xf32> init #nn.zeros {nn.state_of = @w.weight}
  nn.buffer @v : tensor<4x8xf32> init #nn.zeros {nn.state_of = @w.weight}
  func.func @step(%x: tensor<2x8xf32> {nn.name = "x"}, %lr: tensor<f32> {nn.name = "lr"}, %step: tensor<i32> {nn.name = "step"}, %clip: tensor<f32> {nn.name = "clip"}, %g: tensor<4x8xf32> {nn.name = "g"}) -> (tensor<2x8xf32> {nn.name = "y"}) {
    %a = nn.silu %x {nn.module = "first"} : tensor<2x8xf32>
    nn.adamw [@w.weight] moments [@m], [@v](%g) lr %lr step %step clip %clip {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1, nn.module = "optimizer"} : tensor<4x8xf32>
    %s = nn.read @w.weight : tensor<4x8xf32>
    %w = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@w.weight]} : tensor<4x8xf32> -> tensor<8x8xf32>
    %y = nn.linear %a, %w {nn.module = "last"} : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    return %y : tensor<2x8xf32>
  }
}
