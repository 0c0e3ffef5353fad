// The program of a rank without a mesh is that of the only one.
// RUN: fsdp-interpret %s --seed 1 | FileCheck %s
// CHECK:      @twice on 1 rank, in double precision
// CHECK-NEXT: results:
// CHECK-NEXT:   b {{.*}} 2x4

func.func @twice(%a: tensor<2x4xf32> {nn.name = "a"}) -> (tensor<2x4xf32> {nn.name = "b"}) attributes {fsdp.local} {
  %0 = nn.add %a, %a : tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
