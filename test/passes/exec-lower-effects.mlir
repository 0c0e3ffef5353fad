// RUN: fsdp-opt %s --exec-lower=target=test | FileCheck %s
// RUN: fsdp-opt %s --exec-lower=target=test --exec-plan-memory --exec-synchronize --exec-verify --exec-outline --exec-verify -o /dev/null

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
// CHECK: exec.program @update attributes {{.*}}exec.outputs = ["loss", "zero"], exec.reads = ["lr", "step", "c", "loss_sum", "w.grad_sum", "w", "w.exp_avg", "w.exp_avg_sq"], exec.writes = ["w.grad", "w", "w.exp_avg", "w.exp_avg_sq", "loss_sum", "w.grad_sum", "loss", "zero"]}
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
