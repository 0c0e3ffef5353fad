// RUN: fsdp-opt %s --split-input-file --exec-lower=target=cpu | FileCheck %s
// RUN: sed 's/ {node_size = [0-9]* : i64}//' %s | fsdp-opt --split-input-file --exec-lower=target=cpu | FileCheck %s --check-prefix=FLAT
// RUN: sed 's/bf16/f32/g' %s | fsdp-opt --split-input-file --exec-lower="target=cuda fast-reductions=true" | FileCheck %s --check-prefix=FAST
// FLAT-NOT: node_ranks
// FAST-NOT: node_ranks

// Where nodes are stated, sums to f32 are made in two levels, beside partial
// sums: 4 of a piece in f32, and as many pieces of another rank of the node, or 3
// partial sums of other nodes. Small sums, maxima and integers are not.
// CHECK-LABEL: exec.program @axis
// CHECK: reduce_scatter {{.*}} workspace(%{{.*}} : memref<7168xi8>) over @mesh["dp"] {node_ranks = 2 : i64}
// CHECK: reduce_scatter {{.*}} workspace(%{{.*}} : memref<8192xi8>) over @mesh["dp"] {node_ranks = 2 : i64}
// CHECK: all_reduce {{.*}} workspace(%{{.*}} : memref<8192xi8>) over @mesh["dp"] {node_ranks = 2 : i64}
// CHECK: all_reduce on compute(%n : memref<i64>) {{.*}} over @mesh["dp"]{{$}}
// CHECK: all_reduce on compute(%m : memref<f32>) {{.*}} over @mesh["dp"] {reduce = #exec<reduce_kind max>}
// CHECK: all_reduce on compute(%m : memref<f32>) {{.*}} over @mesh["dp"]{{$}}
fsdp.mesh @mesh ["dp" = 8] {node_size = 2 : i64}
func.func @axis(%b: tensor<2048xbf16> {nn.name = "b"}, %f: tensor<2048xf32> {nn.name = "f"}, %n: tensor<i64> {nn.name = "n"}, %m: tensor<f32> {nn.name = "m"})
    -> (tensor<256xf32> {nn.name = "0"}, tensor<256xf32> {nn.name = "1"}, tensor<2048xf32> {nn.name = "2"}, tensor<i64> {nn.name = "3"}, tensor<f32> {nn.name = "4"}, tensor<f32> {nn.name = "5"}) {
  %0 = fsdp.reduce_scatter sum %b on @mesh["dp"] dim 0 : tensor<2048xbf16> -> tensor<256xf32>
  %1 = fsdp.reduce_scatter sum %f on @mesh["dp"] dim 0 : tensor<2048xf32> -> tensor<256xf32>
  %2 = fsdp.all_reduce sum %f on @mesh["dp"] : tensor<2048xf32> -> tensor<2048xf32>
  %3 = fsdp.all_reduce sum %n on @mesh["dp"] : tensor<i64> -> tensor<i64>
  %4 = fsdp.all_reduce max %m on @mesh["dp"] : tensor<f32> -> tensor<f32>
  %5 = fsdp.all_reduce sum %m on @mesh["dp"] : tensor<f32> -> tensor<f32>
  return %0, %1, %2, %3, %4, %5 : tensor<256xf32>, tensor<256xf32>, tensor<2048xf32>, tensor<i64>, tensor<f32>, tensor<f32>
}

// -----

// What shares a node depends on the axes: of a nodes of 6 ranks the last axis
// has 3 and the one before 2, which are 6 of both. Ranks along the first axis
// share none.
// CHECK-LABEL: exec.program @axes
// CHECK: over @mesh["c"]{{$}}
// CHECK: over @mesh["b"] {node_ranks = 2 : i64}
// CHECK: over @mesh["a"]{{$}}
// CHECK: over @mesh["b", "c"] {node_ranks = 6 : i64}
// CHECK: over @mesh["a", "c"] {node_ranks = 3 : i64}
// CHECK: over @mesh["b":(1)2]{{$}}
// CHECK: over @mesh["b":(2)2]{{$}}
fsdp.mesh @mesh ["a" = 2, "b" = 4, "c" = 3] {node_size = 6 : i64}
func.func @axes(%f: tensor<2400xf32> {nn.name = "f"}) -> (tensor<800xf32> {nn.name = "0"}, tensor<600xf32> {nn.name = "1"}, tensor<1200xf32> {nn.name = "2"}, tensor<200xf32> {nn.name = "3"}, tensor<400xf32> {nn.name = "4"}, tensor<1200xf32> {nn.name = "5"}, tensor<1200xf32> {nn.name = "6"}) {
  %0 = fsdp.reduce_scatter sum %f on @mesh["c"] dim 0 : tensor<2400xf32> -> tensor<800xf32>
  %1 = fsdp.reduce_scatter sum %f on @mesh["b"] dim 0 : tensor<2400xf32> -> tensor<600xf32>
  %2 = fsdp.reduce_scatter sum %f on @mesh["a"] dim 0 : tensor<2400xf32> -> tensor<1200xf32>
  %3 = fsdp.reduce_scatter sum %f on @mesh["b", "c"] dim 0 : tensor<2400xf32> -> tensor<200xf32>
  %4 = fsdp.reduce_scatter sum %f on @mesh["a", "c"] dim 0 : tensor<2400xf32> -> tensor<400xf32>
  %5 = fsdp.reduce_scatter sum %f on @mesh["b":(1)2] dim 0 : tensor<2400xf32> -> tensor<1200xf32>
  %6 = fsdp.reduce_scatter sum %f on @mesh["b":(2)2] dim 0 : tensor<2400xf32> -> tensor<1200xf32>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<800xf32>, tensor<600xf32>, tensor<1200xf32>, tensor<200xf32>, tensor<400xf32>, tensor<1200xf32>, tensor<1200xf32>
}
