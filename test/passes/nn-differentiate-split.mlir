// RUN: fsdp-opt %s --nn-differentiate="function=f split=true backward=b wrt=x" --verify-roundtrip | FileCheck %s
// RUN: not fsdp-opt %s --nn-differentiate="function=f split=true backward=b wrt=z" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not fsdp-opt %s --nn-differentiate="function=f split=true backward=b wrt=u" 2>&1 | FileCheck %s --check-prefix=UNUSED
// RUN: not fsdp-opt %s --nn-differentiate="function=f split=true backward=taken" 2>&1 | FileCheck %s --check-prefix=TAKEN
// RUN: fsdp-opt %s --nn-differentiate="function=f split=true backward=b wrt=x" --exec-lower="target=test" | FileCheck %s --check-prefix=EXEC
// RUN: fsdp-opt %s --nn-differentiate="function=counts split=true backward=b wrt=p" | FileCheck %s --check-prefix=WRITES

// NAME: error: program @f has no floating argument with nn.name = "z"
// UNUSED: error: no result of @f depends on "u"
// TAKEN: error: @taken has the name of the program that nn-differentiate creates

// The forward pass leaves what the reverse pass cannot make again: not the
// argument, the parameters or a constant, and no second time what it gives
// anyway.
// CHECK-LABEL: func.func @f
// CHECK-SAME: -> (tensor<2x3xf32> {nn.name = "y"}, tensor<2x3xf32> {nn.name = "h"}, tensor<2x3xf32> {nn.name = "residual.0"})
// CHECK: %[[H:.*]] = nn.linear
// CHECK: %[[A:.*]] = nn.mul %[[H]],
// CHECK: %[[E:.*]] = nn.exp %[[A]]
// CHECK: return %{{.*}}, %[[H]], %[[E]]

// The reverse pass begins with the cotangents of the results and ends with that
// of the argument; nothing of the forward pass is computed in it.
// CHECK-LABEL: func.func @b
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x4xf32> {nn.name = "x"}
// CHECK-SAME: %[[DY:[^:]*]]: tensor<2x3xf32> {nn.name = "y.cotangent"}
// CHECK-SAME: %[[DH:[^:]*]]: tensor<2x3xf32> {nn.name = "h.cotangent"}
// CHECK-SAME: tensor<2x3xf32> {nn.name = "residual.0"}
// CHECK-SAME: -> (tensor<2x4xf32> {nn.name = "x.cotangent"})
// CHECK-NOT: nn.linear %
// CHECK-NOT: nn.exp
// CHECK-NOT: nn.seed
// CHECK: nn.add %[[DH]], %{{.*}} : tensor<2x3xf32>
// CHECK: nn.gradient @w
// CHECK: return

// What one program gives and the other takes is one range.
// EXEC: exec.range @residual.0 : memref<2x3xf32> role input
// EXEC: exec.program @f attributes {{.*}}exec.outputs = ["y", "h", "residual.0"]
// EXEC: exec.program @b attributes {{.*}}exec.inputs = ["x", "y.cotangent", "h.cotangent", "residual.0"], exec.outputs = ["x.cotangent"]

// What the forward pass writes is written once, and its old value is kept.
// WRITES-LABEL: func.func @counts
// WRITES-SAME: -> (tensor<3x4xf32> {nn.name = "q"}, tensor<3x4xf32> {nn.name = "residual.0"})
// WRITES: %[[OLD:.*]] = nn.read @seen
// WRITES: nn.accumulate @seen
// WRITES: nn.write @last
// WRITES: nn.clear [@last]
// WRITES: return %{{.*}}, %[[OLD]]
// WRITES-LABEL: func.func @b
// WRITES-SAME: %[[R:[^:]*]]: tensor<3x4xf32> {nn.name = "residual.0"}
// WRITES-NOT: nn.read @seen
// WRITES-NOT: nn.accumulate
// WRITES-NOT: nn.write
// WRITES-NOT: nn.clear
// WRITES: nn.mul %{{.*}}, %[[R]]
// WRITES: return

nn.buffer @seen : tensor<3x4xf32> init #nn.zeros
nn.buffer @last : tensor<3x4xf32> init #nn.zeros
func.func @counts(%p: tensor<3x4xf32> {nn.name = "p"}) -> (tensor<3x4xf32> {nn.name = "q"}) {
  %w = nn.read @w : tensor<3x4xf32>
  %old = nn.read @seen : tensor<3x4xf32>
  nn.accumulate @seen, %p : tensor<3x4xf32>
  nn.write @last, %p : tensor<3x4xf32>
  nn.clear [@last]
  %a = nn.add %p, %w : tensor<3x4xf32>
  %q = nn.mul %a, %old : tensor<3x4xf32>
  return %q : tensor<3x4xf32>
}
nn.parameter @w : tensor<3x4xf32> init #nn.normal<std = 0.02>
func.func @f(%x: tensor<2x4xf32> {nn.name = "x"}, %u: tensor<2xf32> {nn.name = "u"}) -> (tensor<2x3xf32> {nn.name = "y"}, tensor<2x3xf32> {nn.name = "h"}) {
  %w = nn.read @w : tensor<3x4xf32>
  %h = nn.linear %x, %w : tensor<2x4xf32>, tensor<3x4xf32> -> tensor<2x3xf32>
  %c = nn.constant dense<0.5> : tensor<2x3xf32>
  %a = nn.mul %h, %c : tensor<2x3xf32>
  %e = nn.exp %a : tensor<2x3xf32>
  %y = nn.neg %e : tensor<2x3xf32>
  return %y, %h : tensor<2x3xf32>, tensor<2x3xf32>
}
func.func @taken() {
  return
}
