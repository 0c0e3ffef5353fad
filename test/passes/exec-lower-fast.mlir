// RUN: fsdp-opt %s --exec-lower="target=test fast-reductions=true" | FileCheck %s
// RUN: fsdp-opt %s --exec-lower="target=cuda fast-reductions=true" | FileCheck %s
// RUN: fsdp-opt %s --exec-lower=target=test | FileCheck %s --check-prefix=EXACT
// EXACT-NOT: fast

// RUN: sed -n 's#^// INPUT: ##p' %s | not fsdp-opt --exec-lower="target=test fast-reductions=true" 2>&1 | FileCheck %s --check-prefix=TYPE
// INPUT: fsdp.mesh @mesh ["dp" = 2]
// INPUT: func.func @p(%g: tensor<4xbf16> {nn.name = "g"}) -> (tensor<2xf32> {nn.name = "y"}) {
// INPUT:   %y = fsdp.reduce_scatter sum %g on @mesh["dp"] dim 0 : tensor<4xbf16> -> tensor<2xf32>
// INPUT:   return %y : tensor<2xf32>
// INPUT: }
// TYPE: cannot be fast: the library only adds values of the result's type

// Sums are the library's and need no workspace. A maximum is the runtime's,
// which keeps a NaN; a gather adds nothing.
// CHECK-LABEL: exec.program @p
// CHECK: exec.collective reduce_scatter on compute(%g : memref<4xf32>) outs({{.*}} : memref<2xf32>) workspace(%{{.*}} : memref<0xi8>) over @mesh["dp"] {fast}
// CHECK: exec.collective all_reduce on compute(%n : memref<i64>) outs({{.*}} : memref<i64>) workspace(%{{.*}} : memref<0xi8>) over @mesh["dp"] {fast}
// CHECK: exec.collective all_reduce on compute(%m : memref<f32>) {{.*}} over @mesh["dp"] {reduce = #exec<reduce_kind max>}
// CHECK: exec.collective all_gather on compute({{.*}} over @mesh["dp"]{{$}}
fsdp.mesh @mesh ["dp" = 2]
func.func @p(%g: tensor<4xf32> {nn.name = "g"}, %n: tensor<i64> {nn.name = "n"}, %m: tensor<f32> {nn.name = "m"})
    -> (tensor<2xf32> {nn.name = "part"}, tensor<i64> {nn.name = "count"}, tensor<f32> {nn.name = "max"}, tensor<8xf32> {nn.name = "all"}) {
  %part = fsdp.reduce_scatter sum %g on @mesh["dp"] dim 0 : tensor<4xf32> -> tensor<2xf32>
  %count = fsdp.all_reduce sum %n on @mesh["dp"] : tensor<i64> -> tensor<i64>
  %max = fsdp.all_reduce max %m on @mesh["dp"] : tensor<f32> -> tensor<f32>
  %all = fsdp.all_gather %g on @mesh["dp"] dim 0 : tensor<4xf32> -> tensor<8xf32>
  return %part, %count, %max, %all : tensor<2xf32>, tensor<i64>, tensor<f32>, tensor<8xf32>
}
