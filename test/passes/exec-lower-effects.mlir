// RUN: fsdp-opt %s --split-input-file --exec-lower=target=test | FileCheck %s
// RUN: fsdp-opt %s --split-input-file --exec-lower=target=test --exec-plan-memory --exec-synchronize --exec-verify --exec-outline --exec-verify -o /dev/null

// How often a step runs each program, whatever it says how often.
// CHECK: module attributes {exec.steps = {train = {accumulate = 3 : i64, count = 1 : i64, update = 1 : i64}}
module attributes {nn.steps = {train = [#nn.action<@count times 1>, #nn.action<@accumulate times 1>,
                                        #nn.action<@accumulate times 2>, #nn.action<@update times 1>]}} {
nn.parameter @w : tensor<4x8xf32> init #nn.zeros
nn.parameter @frozen : tensor<8xf32> init #nn.ones {nn.frozen}
nn.buffer @w.exp_avg : tensor<4x8xf32> init #nn.zeros {nn.state_of = @w}
nn.buffer @w.exp_avg_sq : tensor<4x8xf32> init #nn.zeros {nn.state_of = @w}
nn.buffer @w.grad_sum : tensor<4x8xf32> init #nn.zeros {nn.state_of = @w}
nn.buffer @loss_sum : tensor<f32> init #nn.zeros

// CHECK: exec.program @count attributes {{.*}}exec.inputs = ["targets"], exec.outputs = ["n"], exec.reads = ["targets"], exec.writes = ["n"]}
func.func @count(%t: tensor<4xi32> {nn.name = "targets"}) -> (tensor<i64> {nn.name = "n"}) {
  %n = nn.count_labels %t ignore_index -100 : tensor<4xi32> -> tensor<i64>
  return %n : tensor<i64>
}

// An argument that no work reads is none that the program reads: neither what
// only has another name, nor what only what is dead would need.
// CHECK: exec.program @accumulate attributes {exec.adds = ["loss_sum", "w.grad_sum"], {{.*}}exec.inputs = ["x", "n", "unused", "dead"], exec.outputs = [], exec.reads = ["x", "n", "w", "loss_sum", "w.grad_sum"], exec.writes = ["loss_sum", "w.grad_sum"]}
func.func @accumulate(%x: tensor<4x8xf32> {nn.name = "x"}, %n: tensor<i64> {nn.name = "n"},
                      %unused: tensor<4xf32> {nn.name = "unused"}, %dead: tensor<4xf32> {nn.name = "dead"}) {
  %w = nn.read @w : tensor<4x8xf32>
  %f = nn.read @frozen : tensor<8xf32>
  %alias = nn.recompute_from %f : tensor<8xf32> -> tensor<8xf32>
  %0 = nn.silu %dead : tensor<4xf32>
  %1 = nn.silu %0 : tensor<4xf32>
  %product = nn.mul %x, %w : tensor<4x8xf32>
  %sum = nn.sum %product [0, 1] : tensor<4x8xf32> to tensor<f32>
  %loss = nn.divide_by_count %sum, %n : tensor<f32>, tensor<i64>
  nn.accumulate @loss_sum, %loss : tensor<f32>
  nn.accumulate @w.grad_sum, %product : tensor<4x8xf32>
  return
}

// Parameters and moments are read and written. What it has cleared it reads no
// more as it was before.
// CHECK: exec.program @update attributes {exec.clears = ["loss_sum", "w.grad_sum"], {{.*}}exec.outputs = ["loss", "zero"], exec.reads = ["lr", "step", "c", "loss_sum", "w.grad_sum", "w", "w.exp_avg", "w.exp_avg_sq"], exec.writes = ["w.grad", "w", "w.exp_avg", "w.exp_avg_sq", "loss_sum", "w.grad_sum", "loss", "zero"]}
func.func @update(%lr: tensor<f32> {nn.name = "lr"}, %step: tensor<i32> {nn.name = "step"}, %c: tensor<f32> {nn.name = "c"})
    -> (tensor<f32> {nn.name = "loss"}, tensor<4x8xf32> {nn.name = "zero"}) {
  %loss = nn.read @loss_sum : tensor<f32>
  %g = nn.read @w.grad_sum : tensor<4x8xf32>
  nn.gradient @w, %g : tensor<4x8xf32>
  nn.adamw [@w] moments [@w.exp_avg], [@w.exp_avg_sq] (%g) lr %lr step %step clip %c
      {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1} : tensor<4x8xf32>
  nn.clear [@loss_sum, @w.grad_sum]
  %zero = nn.read @w.grad_sum : tensor<4x8xf32>
  return %loss, %zero : tensor<f32>, tensor<4x8xf32>
}
}

// -----

// Setting a buffer to what it holds is no work, and what a program has set it
// reads as its own. What it has cleared or set before, it adds to anew.
// CHECK-LABEL: module attributes {exec.steps = {}
module attributes {nn.steps = {}} {
nn.buffer @b : tensor<4xf32> init #nn.zeros
nn.buffer @total : tensor<4xf32> init #nn.zeros
nn.parameter @w : tensor<4x8xf32> init #nn.ones

// CHECK: exec.program @set attributes {{.*}}exec.reads = ["x"], exec.writes = ["b", "y"]}
func.func @set(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<4xf32> {nn.name = "y"}) {
  nn.write @b, %x : tensor<4xf32>
  %r = nn.read @b : tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK: exec.program @keep attributes {{.*}}exec.reads = [], exec.writes = []} {
// CHECK-NEXT: }
func.func @keep() {
  %r = nn.read @b : tensor<4xf32>
  nn.write @b, %r : tensor<4xf32>
  return
}

// CHECK: exec.program @put_back attributes {{.*}}exec.reads = ["b"], exec.writes = ["b"]}
func.func @put_back() {
  %r = nn.read @b : tensor<4xf32>
  nn.clear [@b]
  nn.write @b, %r : tensor<4xf32>
  return
}

// CHECK: exec.program @begin attributes {exec.clears = ["total"], {{.*}}exec.reads = ["x"], exec.writes = ["b", "total"]}
func.func @begin(%x: tensor<4xf32> {nn.name = "x"}) {
  nn.clear [@b, @total]
  nn.accumulate @b, %x : tensor<4xf32>
  return
}

// A slice that is no view is copied, even if what is recomputed from it is not
// read; what nobody reads at all is not there.
// CHECK: exec.program @recompute attributes {{.*}}exec.reads = ["x", "w"], exec.writes = ["y"]}
// CHECK: exec.copy_box
// CHECK-NOT: exec.copy_box
// CHECK: exec.launch
func.func @recompute(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<4xf32> {nn.name = "y"}) {
  %w = nn.read @w : tensor<4x8xf32>
  %part = nn.slice %w [0, 1] : tensor<4x8xf32> to tensor<4x3xf32>
  %again = nn.recompute_from %part : tensor<4x3xf32> -> tensor<4x3xf32>
  %other = nn.slice %w [0, 2] : tensor<4x8xf32> to tensor<4x3xf32>
  %two:2 = nn.recompute_from %other, %x : tensor<4x3xf32>, tensor<4xf32> -> tensor<4x3xf32>, tensor<4xf32>
  %y = nn.silu %two#1 : tensor<4xf32>
  return %y : tensor<4xf32>
}
}

// -----

// A step that ends with what clears its sum, and reads a buffer that a program
// outside of it sets. An addition spelled out is one where the step clears the
// buffer; what is cleared outside counts from step to step.
// CHECK-LABEL: module attributes {exec.steps = {train = {add = 2 : i64, clear = 1 : i64, spelled_out = 1 : i64, use = 1 : i64}}
module attributes {nn.steps = {train = [#nn.action<@add times 2>, #nn.action<@spelled_out times 1>, #nn.action<@use times 1>,
                                        #nn.action<@clear times 1>]}} {
nn.buffer @sum : tensor<4xf32> init #nn.zeros
nn.buffer @scale : tensor<4xf32> init #nn.ones
nn.buffer @steps : tensor<4xf32> init #nn.ones
func.func @set(%x: tensor<4xf32> {nn.name = "x"}) {
  nn.write @scale, %x : tensor<4xf32>
  nn.clear [@steps]
  return
}
func.func @add(%x: tensor<4xf32> {nn.name = "x"}) {
  nn.accumulate @sum, %x : tensor<4xf32>
  return
}
// CHECK: exec.program @spelled_out attributes {exec.adds = ["sum"], {{.*}}exec.reads = ["x", "sum", "steps"], exec.writes = ["sum", "steps"]}
func.func @spelled_out(%x: tensor<4xf32> {nn.name = "x"}) {
  %old = nn.read @sum : tensor<4xf32>
  %sum = nn.fusion (%x, %old) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
    %2 = nn.silu %0 : tensor<4xf32>
    %3 = nn.add %1, %2 : tensor<4xf32>
    nn.yield %3 : tensor<4xf32>
  }
  nn.write @sum, %sum : tensor<4xf32>
  %steps = nn.read @steps : tensor<4xf32>
  %count = nn.add %steps, %x : tensor<4xf32>
  nn.write @steps, %count : tensor<4xf32>
  return
}
func.func @use() -> (tensor<4xf32> {nn.name = "y"}) {
  %sum = nn.read @sum : tensor<4xf32>
  %scale = nn.read @scale : tensor<4xf32>
  %y = nn.mul %sum, %scale : tensor<4xf32>
  return %y : tensor<4xf32>
}
// CHECK: exec.program @clear attributes {exec.clears = ["sum"], {{.*}}exec.reads = [], exec.writes = ["sum"]}
func.func @clear() {
  nn.clear [@sum]
  return
}
}

// -----

// What is added may not change while the sum grows: a sum that is added to
// itself is copied, and so is a part of it.
nn.buffer @sum : tensor<4x8xf32> init #nn.zeros
// CHECK-LABEL: exec.program @twice
// CHECK: %[[S:.*]] = exec.get @sum
// CHECK: exec.copy on compute(%[[S]] : memref<4x8xf32>) outs(%[[OLD:.*]] : memref<4x8xf32>)
// CHECK: exec.accumulate on compute(%[[S]], %[[OLD]] : memref<4x8xf32>, memref<4x8xf32>) outs(%[[S]] : memref<4x8xf32>)
func.func @twice() {
  %old = nn.read @sum : tensor<4x8xf32>
  nn.accumulate @sum, %old : tensor<4x8xf32>
  return
}
