// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt %s --symbol-dce --mlir-print-op-generic | fsdp-opt | FileCheck %s

fsdp.mesh @mesh ["a" = 2]
// CHECK: nn.parameter @layers.3.wq.weight
nn.parameter @layers.3.wq.weight : tensor<8xf32> init #nn.zeros

// CHECK-LABEL: func.func @program
// CHECK: fsdp.all_gather {{.*}}{fsdp.members = [#fsdp.origin<"fwd layers.3.wq all_gather">], fsdp.origin = #fsdp.origin<"fwd layers.3 all_gather#2">, fsdp.parameters = [@layers.3.wq.weight], serves = #fsdp.origin<all "fwd layers.3">}
// CHECK: nn.silu {{.*}}{fsdp.origin = #fsdp.origin<"update head \22(2)\22 silu">}
// CHECK: nn.silu {{.*}}{fsdp.origin = #fsdp.origin<"again silu#12">}
// CHECK: fsdp.all_gather {{.*}}serves = #fsdp.origin<all "bwd head (2)">
func.func @program(%x: tensor<4xf32>) {
  %0 = fsdp.all_gather %x on @mesh["a"] dim 0 {serves = #fsdp.origin<all "fwd layers.3">, fsdp.parameters = [@layers.3.wq.weight], fsdp.origin = #fsdp.origin<"fwd layers.3 all_gather#2">, fsdp.members = [#fsdp.origin<"fwd layers.3.wq all_gather">]} : tensor<4xf32> -> tensor<8xf32>
  %1 = nn.silu %x {fsdp.origin = #fsdp.origin<"update head \22(2)\22 silu">} : tensor<4xf32>
  %2 = nn.silu %x {fsdp.origin = #fsdp.origin<"again silu#12">} : tensor<4xf32>
  %3 = fsdp.all_gather %x on @mesh["a"] dim 0 {serves = #fsdp.origin<all "bwd head (2)">} : tensor<4xf32> -> tensor<8xf32>
  return
}
