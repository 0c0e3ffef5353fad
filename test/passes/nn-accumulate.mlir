// RUN: fsdp-opt %s --nn-accumulate="microbatches=4" --verify-roundtrip | FileCheck %s
// RUN: fsdp-opt %s --nn-accumulate="microbatches=4" --fsdp-optimizer="function=update" | FileCheck %s --check-prefix=STEP
// RUN: fsdp-opt %s --nn-accumulate="microbatches=4" --fsdp-optimizer="function=update" --fsdp-propagate --fsdp-verify-placements --fsdp-expand | FileCheck %s --check-prefix=LOCAL
// RUN: fsdp-opt %s --nn-accumulate="microbatches=4" --fsdp-optimizer="function=update" --fsdp-propagate --fsdp-expand --fsdp-plan --fsdp-bucket --fsdp-overlap --exec-lower="target=test" | FileCheck %s --check-prefix=EXEC

// RUN: fsdp-opt %s --nn-accumulate="microbatches=4 keep-gathers=true reduce-once=true" --verify-roundtrip | FileCheck %s --check-prefix=ONCE
// RUN: fsdp-opt %s --nn-accumulate="microbatches=4 keep-gathers=true reduce-once=true" --fsdp-optimizer="function=update" --fsdp-propagate --fsdp-verify-placements --fsdp-expand | FileCheck %s --check-prefix=ONCE-LOCAL
// RUN: fsdp-opt %s --nn-accumulate="microbatches=4 keep-gathers=true reduce-once=true" --fsdp-optimizer="function=update" --fsdp-propagate --fsdp-expand --exec-lower="target=test" | FileCheck %s --check-prefix=ONCE-EXEC

// One step: count once, four microbatches, update once.
// CHECK: module attributes {nn.steps = {train = [#nn.action<@count times 1>, #nn.action<@accumulate times 4>, #nn.action<@update times 1>]}} {

// The sums rest where the parameters do, and begin with zero.
// CHECK: nn.buffer @loss_sum : tensor<f32> init #nn.zeros
// CHECK-NEXT: nn.buffer @w.grad_sum : tensor<4x2xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>, nn.state_of = @w}
// CHECK-NOT: @frozen.grad_sum

// The labels of all microbatches are counted before the first of them.
// CHECK-LABEL: func.func @count
// CHECK-SAME: %[[ALL:.*]]: tensor<16xi32> {fsdp.placement = #fsdp.placement<[{"dp_shard"}]>, nn.name = "targets.of_step"}) -> (tensor<i64> {nn.name = "label_count"})
// CHECK-NEXT: %[[N:.*]] = nn.count_labels %[[ALL]] ignore_index -100 : tensor<16xi32> -> tensor<i64>
// CHECK-NEXT: return %[[N]]

// A microbatch adds its part; the additions follow everything else.
// CHECK-LABEL: func.func @accumulate
// CHECK-SAME: %[[COUNT:[^,]*]]: tensor<i64> {nn.name = "label_count"}) {
// CHECK-NOT: nn.count_labels
// CHECK: %[[LOSS:.*]] = nn.divide_by_count %{{.*}}, %[[COUNT]]
// CHECK: nn.divide_by_count %{{.*}}, %[[COUNT]]
// CHECK: %[[G:.*]] = fsdp.redistribute %{{.*}} on @mesh to <[{| "dp_shard"}, {}]>
// CHECK-NOT: nn.gradient
// CHECK: nn.accumulate @loss_sum, %[[LOSS]] : tensor<f32>
// CHECK-NEXT: nn.accumulate @w.grad_sum, %[[G]] {{.*}}: tensor<4x2xf32>
// CHECK-NEXT: return{{$}}

// The sums are the step's, and zero for the next one.
// CHECK-LABEL: func.func @update() -> (tensor<f32> {nn.name = "loss"})
// CHECK-NEXT: %[[L:.*]] = nn.read @loss_sum : tensor<f32>
// CHECK-NEXT: %[[S:.*]] = nn.read @w.grad_sum {{.*}}: tensor<4x2xf32>
// CHECK-NEXT: nn.gradient @w, %[[S]]
// CHECK-NEXT: nn.clear [@loss_sum, @w.grad_sum]
// CHECK-NEXT: return %[[L]]

// The optimizer uses the sums as they lie, and before they are cleared.
// STEP-LABEL: func.func @update
// STEP-NOT: fsdp.redistribute
// STEP: nn.adamw
// STEP: nn.clear

// Only the count, the loss and the gradient are reduced.
// LOCAL-LABEL: func.func @count
// LOCAL: fsdp.all_reduce sum %{{.*}} on @mesh["dp_shard"] {{.*}}: tensor<i64> -> tensor<i64>
// LOCAL-LABEL: func.func @accumulate
// LOCAL: fsdp.reduce_scatter
// LOCAL-SAME: parameters = [@w]
// LOCAL: nn.accumulate @w.grad_sum, %{{.*}} : tensor<2x2xf32>

// What @count gives is an input of the arena. A sum is added to where it is.
// EXEC: exec.range @label_count : memref<i64> role input
// EXEC-LABEL: exec.program @accumulate
// EXEC: exec.accumulate on compute(%[[SUM:w.grad_sum]], %{{.*}} : memref<2x2xf32>, memref<2x2xf32>) outs(%[[SUM]] : memref<2x2xf32>)
// The loss of the step is kept when its sum is cleared.
// EXEC-LABEL: exec.program @update
// EXEC: exec.copy on compute(%[[LS:.*]] : memref<f32>) outs(%[[KEPT:.*]] :
// EXEC: exec.fill_zero on compute() outs(%[[LS]]
// EXEC: exec.copy on compute(%[[KEPT]] : memref<f32>) outs(%loss : memref<f32>)

// What is gathered once lies where it is computed with, and the sum is this
// rank's part of one until @update.
// ONCE: nn.steps = {train = [#nn.action<@gather times 1>, #nn.action<@count times 1>,
// ONCE: nn.buffer @w.gathered : tensor<4x2xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{}, {}]>, nn.state_of = @w}
// ONCE: nn.buffer @w.grad_sum : tensor<4x2xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{}, {}], partial = sum {"dp_shard"}>, nn.state_of = @w}
// ONCE-LABEL: func.func @gather() {
// ONCE-NEXT: %[[R:.*]] = nn.read @w
// ONCE-NEXT: %[[W:.*]] = fsdp.redistribute %[[R]] on @mesh to <[{}, {}]> wire f32
// ONCE-NEXT: nn.write @w.gathered, %[[W]]
// ONCE-LABEL: func.func @accumulate
// ONCE-NOT: nn.read @w {
// ONCE: %[[KEPT:.*]] = nn.read @w.gathered {nn.module = "head"}
// ONCE-NEXT: nn.linear %{{.*}}, %[[KEPT]]
// ONCE: fsdp.redistribute %{{.*}} on @mesh to <[{}, {}], partial = sum {"dp_shard"}>
// ONCE-LABEL: func.func @update
// ONCE: %[[S:.*]] = nn.read @w.grad_sum
// ONCE-NEXT: %[[G:.*]] = fsdp.redistribute %[[S]] on @mesh to <[{| "dp_shard"}, {}]>
// ONCE-NEXT: nn.gradient @w, %[[G]]

// A microbatch moves the loss alone; the gather and the scatter are the step's.
// ONCE-LOCAL-LABEL: func.func @gather
// ONCE-LOCAL: fsdp.all_gather {{.*}}parameters = [@w]
// ONCE-LOCAL-LABEL: func.func @accumulate
// ONCE-LOCAL-NOT: fsdp.all_gather
// ONCE-LOCAL-NOT: fsdp.reduce_scatter
// ONCE-LOCAL: nn.accumulate @w.grad_sum, %{{.*}} : tensor<4x2xf32>
// ONCE-LOCAL-LABEL: func.func @update
// ONCE-LOCAL: fsdp.reduce_scatter sum {{.*}}parameters = [@w]

// A range holds partial values as each rank's own; a gather writes its buffer.
// ONCE-EXEC: exec.range @w.gathered : memref<4x2xf32> role state {{.*}}placement
// ONCE-EXEC: exec.range @w.grad_sum : memref<4x2xf32> role state {full = tensor<4x2xf32>, init = #nn.zeros}{{$}}
// ONCE-EXEC-LABEL: exec.program @gather
// ONCE-EXEC: exec.collective all_gather on compute(%w{{.*}} outs(%w.gathered

fsdp.mesh @mesh ["dp_shard" = 2]
nn.parameter @w : tensor<4x2xf32> init #nn.normal<std = 0.02> {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
nn.parameter @frozen : tensor<2xf32> init #nn.ones {nn.frozen}
func.func @train(%x: tensor<4x2xf32> {fsdp.placement = #fsdp.placement<[{"dp_shard"}, {}]>, nn.name = "x"},
                 %t: tensor<4xi32> {fsdp.placement = #fsdp.placement<[{"dp_shard"}]>, nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %s = nn.read @w {nn.module = "head"} : tensor<4x2xf32>
  %w = fsdp.redistribute %s on @mesh to <[{}, {}]> wire f32 {nn.module = "head"} : tensor<4x2xf32> -> tensor<4x2xf32>
  %y = nn.linear %x, %w : tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x4xf32>
  %rows, %lse = nn.cross_entropy %y, %t ignore_index -100 : tensor<4x4xf32>, tensor<4xi32>, tensor<4xf32>
  %sum = nn.sum %rows [0] : tensor<4xf32> to tensor<f32>
  %count = nn.count_labels %t ignore_index -100 : tensor<4xi32> -> tensor<i64>
  %loss = nn.divide_by_count %sum, %count : tensor<f32>, tensor<i64>
  %one = nn.seed %loss : tensor<f32>
  %dsum = nn.divide_by_count %one, %count : tensor<f32>, tensor<i64>
  %drows = nn.broadcast %dsum [] : tensor<f32> to tensor<4xf32>
  %dy = nn.cross_entropy_grad %y, %t, %lse, %drows ignore_index -100 : tensor<4x4xf32>, tensor<4xi32>, tensor<4xf32>
  %dw = nn.linear_weight_grad %dy, %x : tensor<4x4xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
  %g = fsdp.redistribute %dw on @mesh to <[{| "dp_shard"}, {}]> wire f32 {nn.module = "head"} : tensor<4x2xf32> -> tensor<4x2xf32>
  nn.gradient @w, %g {nn.module = "head"} : tensor<4x2xf32>
  return %loss : tensor<f32>
}
