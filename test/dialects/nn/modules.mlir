// RUN: fsdp-opt %s | FileCheck %s
// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt %s --cse | FileCheck %s --check-prefix=CSE

// The module of an op is text. CSE keeps equal ops of different modules, and of
// different calls of one, apart; those of one call it merges.

// CHECK-LABEL: func.func @f
// CHECK-NEXT: nn.silu %{{.*}} {nn.module = "layers.0"}
// CHECK-NEXT: nn.silu %{{.*}} {nn.module = "layers.0"}
// CHECK-NEXT: nn.silu %{{.*}} {nn.module = "layers.0#2"}
// CHECK-NEXT: nn.silu %{{.*}} {nn.module = "layers.1"}
// CHECK-NEXT: nn.silu %{{.*}} :

// CSE-LABEL: func.func @f
// CSE-NEXT: %[[A:.*]] = nn.silu %{{.*}} {nn.module = "layers.0"}
// CSE-NEXT: %[[B:.*]] = nn.silu %{{.*}} {nn.module = "layers.0#2"}
// CSE-NEXT: %[[C:.*]] = nn.silu %{{.*}} {nn.module = "layers.1"}
// CSE-NEXT: %[[D:.*]] = nn.silu %{{.*}} :
// CSE-NEXT: return %[[A]], %[[A]], %[[B]], %[[C]], %[[D]]
func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = nn.silu %x {nn.module = "layers.0"} : tensor<4xf32>
  %1 = nn.silu %x {nn.module = "layers.0"} : tensor<4xf32>
  %2 = nn.silu %x {nn.module = "layers.0#2"} : tensor<4xf32>
  %3 = nn.silu %x {nn.module = "layers.1"} : tensor<4xf32>
  %4 = nn.silu %x : tensor<4xf32>
  return %0, %1, %2, %3, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
