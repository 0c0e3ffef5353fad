// RUN: fsdp-opt %s --pass-pipeline="builtin.module(func.func(nn-sum-blocks))" | FileCheck %s
// RUN: fsdp-opt %s --pass-pipeline="builtin.module(func.func(nn-sum-blocks),exec-lower{target=test})" | FileCheck %s --check-prefix=EXEC
// RUN: fsdp-opt %s --pass-pipeline="builtin.module(func.func(nn-sum-blocks{in-products=true}))" | FileCheck %s --check-prefix=PRODUCTS
// RUN: fsdp-opt %s --pass-pipeline="builtin.module(func.func(nn-sum-blocks{in-products=true}),exec-lower{target=test})" | FileCheck %s --check-prefix=ADDED
// RUN: fsdp-opt %s --pass-pipeline="builtin.module(func.func(nn-sum-blocks,fsdp-address),exec-lower{target=test})" | FileCheck %s --check-prefix=NAMED
// Gradients are added up after the last one of their block, unless a reduction
// gives them. What follows each other in exec is one call.

// Each output of a call is what its own op produces.
// NAMED: outs(%layers.1.wv.weight.grad_sum, %layers.1.wq.weight.grad_sum : {{.*}} {exec.makes = ["fwd layers.1.wv accumulate", "fwd layers.1.wq accumulate"]

// Products that nothing else reads add to the sum themselves.
// PRODUCTS-LABEL: func.func @accumulate
// PRODUCTS-NEXT: nn.accumulate_product @output.weight.grad_sum, %arg0, %arg0 {nn.module = "output"}
// PRODUCTS-NEXT: nn.accumulate_product @layers.1.wv.weight.grad_sum, %arg0, %arg0 {nn.module = "layers.1.wv"}
// PRODUCTS-NEXT: nn.accumulate_product @layers.1.wq.weight.grad_sum
// PRODUCTS: nn.linear_weight_grad
// PRODUCTS: fsdp.all_reduce
// PRODUCTS: nn.linear_weight_grad
// PRODUCTS-NOT: nn.accumulate_product
// PRODUCTS: nn.accumulate @layers.0.wv.weight.grad_sum
// PRODUCTS: nn.accumulate @layers.0.wq.weight.grad_sum
// PRODUCTS: nn.accumulate @norm.weight.grad_sum

// ADDED: exec.adds = ["output.weight.grad_sum",
// ADDED: exec.alloc "output: accumulate_product workspace"
// ADDED: exec.gemm_add on compute(%a, %a, %output.weight.grad_sum : memref<2x8xbf16>, memref<2x8xbf16>, memref<8x8xf32>) outs(%output.weight.grad_sum : memref<8x8xf32>) workspace({{.*}}) {nn.module = "output", transpose_lhs}

fsdp.mesh @mesh ["dp" = 2]
nn.buffer @loss_sum : tensor<f32> init #nn.zeros
nn.buffer @layers.1.wv.weight.grad_sum : tensor<8x8xf32> init #nn.zeros
nn.buffer @layers.1.wq.weight.grad_sum : tensor<8x8xf32> init #nn.zeros
nn.buffer @layers.0.wq.weight.grad_sum : tensor<8x8xf32> init #nn.zeros
nn.buffer @layers.0.wv.weight.grad_sum : tensor<8x8xf32> init #nn.zeros
nn.buffer @output.weight.grad_sum : tensor<8x8xf32> init #nn.zeros
nn.buffer @norm.weight.grad_sum : tensor<8x8xf32> init #nn.zeros

// CHECK-LABEL: func.func @accumulate
// EXEC-LABEL: exec.program @accumulate
func.func @accumulate(%a: tensor<2x8xbf16> {nn.name = "a"}, %loss: tensor<f32> {nn.name = "loss"}) {
  // CHECK: %[[OUT:.*]] = nn.linear_weight_grad
  // CHECK-NEXT: nn.accumulate @output.weight.grad_sum, %[[OUT]]
  // EXEC: exec.gemm
  // EXEC: exec.accumulate on compute(%output.weight.grad_sum, %{{.*}} : memref<8x8xf32>, memref<8x8xbf16>) outs(%output.weight.grad_sum : memref<8x8xf32>) {nn.module = "output"}
  %out = nn.linear_weight_grad %a, %a {nn.module = "output"} : tensor<2x8xbf16>, tensor<2x8xbf16> -> tensor<8x8xbf16>
  // CHECK-NEXT: %[[DV:.*]] = nn.linear_weight_grad
  // CHECK-NEXT: %[[DQ:.*]] = nn.linear_weight_grad
  // CHECK-NEXT: nn.accumulate @layers.1.wv.weight.grad_sum, %[[DV]]
  // CHECK-NEXT: nn.accumulate @layers.1.wq.weight.grad_sum, %[[DQ]]
  // EXEC: exec.gemm
  // EXEC: exec.gemm
  // EXEC: exec.accumulate on compute(%layers.1.wv.weight.grad_sum, %layers.1.wq.weight.grad_sum, %{{.*}} {nn.module = "layers.1"}
  %dv = nn.linear_weight_grad %a, %a {nn.module = "layers.1.wv"} : tensor<2x8xbf16>, tensor<2x8xbf16> -> tensor<8x8xbf16>
  %dq = nn.linear_weight_grad %a, %a {nn.module = "layers.1.wq"} : tensor<2x8xbf16>, tensor<2x8xbf16> -> tensor<8x8xbf16>
  // What is reduced comes at the end, in whatever type.
  // CHECK: fsdp.all_reduce
  // CHECK-NOT: nn.accumulate
  %du = nn.linear_weight_grad %a, %a {nn.module = "layers.0.wq"} : tensor<2x8xbf16>, tensor<2x8xbf16> -> tensor<8x8xbf16>
  %wide = nn.cast %du : tensor<8x8xbf16> to tensor<8x8xf32>
  %r = fsdp.all_reduce sum %wide on @mesh["dp"] {nn.module = "layers.0.wq"} : tensor<8x8xf32> -> tensor<8x8xf32>
  %two = nn.add %r, %r {nn.module = "layers.0.wq"} : tensor<8x8xf32>
  // A buffer that the program reads too.
  %dn = nn.linear_weight_grad %a, %a : tensor<2x8xbf16>, tensor<2x8xbf16> -> tensor<8x8xbf16>
  %before = nn.read @norm.weight.grad_sum : tensor<8x8xf32>
  %n = nn.add %before, %wide : tensor<8x8xf32>
  // CHECK: nn.read @norm.weight.grad_sum
  // CHECK-NEXT: %[[N:.*]] = nn.add
  // CHECK-NEXT: nn.accumulate @layers.0.wv.weight.grad_sum, %[[N]]
  // CHECK-NEXT: nn.accumulate @loss_sum
  // CHECK-NEXT: nn.accumulate @layers.0.wq.weight.grad_sum
  // CHECK-NEXT: nn.accumulate @norm.weight.grad_sum
  // CHECK-NEXT: return
  // EXEC: exec.collective all_reduce
  // A value that lies in a range may be one of the sums: it is added alone.
  // EXEC: exec.accumulate on compute(%layers.0.wv.weight.grad_sum, %{{[0-9]+}} : memref<8x8xf32>, memref<8x8xf32>)
  // EXEC: exec.accumulate on compute(%loss_sum, %loss : memref<f32>, memref<f32>) outs(%loss_sum : memref<f32>){{$}}
  // EXEC: exec.accumulate on compute(%layers.0.wq.weight.grad_sum, %norm.weight.grad_sum, %{{.*}} : memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xbf16>)
  nn.accumulate @loss_sum, %loss : tensor<f32>
  nn.accumulate @layers.1.wv.weight.grad_sum, %dv {nn.module = "layers.1.wv"} : tensor<8x8xbf16>
  nn.accumulate @layers.1.wq.weight.grad_sum, %dq {nn.module = "layers.1.wq"} : tensor<8x8xbf16>
  nn.accumulate @layers.0.wq.weight.grad_sum, %two {nn.module = "layers.0.wq"} : tensor<8x8xf32>
  nn.accumulate @output.weight.grad_sum, %out {nn.module = "output"} : tensor<8x8xbf16>
  nn.accumulate @norm.weight.grad_sum, %dn : tensor<8x8xbf16>
  nn.accumulate @layers.0.wv.weight.grad_sum, %n {nn.module = "layers.0.wv"} : tensor<8x8xf32>
  return
}
