// RUN: fsdp-compile %s --programs-only --workspaces=test --emit=mlir | FileCheck %s
// RUN: rm -rf %t && fsdp-compile %s --programs-only -o %t | FileCheck %s --check-prefix=SUMMARY
// RUN: FileCheck %s --check-prefix=MANIFEST < %t/manifest.json
// RUN: fsdp-compile %S/../emit/Inputs/linear.mlir --optimizer none --emit=mlir | FileCheck %s --check-prefix=GRADIENTS

// With --programs-only every public function is a program as it stands, so
// that one artifact can hold many operations.

// CHECK-DAG: exec.range @a : memref<4x8xf32> role input
// CHECK-DAG: exec.range @activated : memref<4x8xf32> role output
// CHECK-DAG: exec.range @total : memref<f32> role output
// CHECK: exec.program @silu
// CHECK: exec.launch @silu{{.*}} on compute
// CHECK: exec.program @sum
// CHECK-NOT: optimizer

// SUMMARY: 0 parameters in 0 tensors
// SUMMARY: program silu: peak
// SUMMARY: program sum: peak

// Programs share the input by its name.
// MANIFEST: {"name":"silu","inputs":["a"],"outputs":["activated"]
// MANIFEST-NEXT: {"name":"sum","inputs":["a"],"outputs":["total"]
func.func @silu(%a: tensor<4x8xf32> {nn.name = "a"}) -> (tensor<4x8xf32> {nn.name = "activated"}) {
  %y = nn.silu %a : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
func.func @sum(%a: tensor<4x8xf32> {nn.name = "a"}) -> (tensor<f32> {nn.name = "total"}) {
  %y = nn.sum %a [0, 1] : tensor<4x8xf32> to tensor<f32>
  return %y : tensor<f32>
}

// Without an optimizer the gradients stay, and there is no learning rate.
// GRADIENTS-DAG: exec.range @w : memref<4x8xf32> role parameter
// GRADIENTS-DAG: exec.range @w.grad : memref<4x8xf32> role gradient
// GRADIENTS-NOT: exec.range @lr
// GRADIENTS: exec.program @train
