// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt %s --mlir-print-op-generic | fsdp-opt | FileCheck %s

// A hand-written program with every op: a gather on its own stream, a matmul,
// a kernel, a runtime operation, a reduction, and the order between streams.

fsdp.mesh @mesh ["dp_shard" = 2]

// CHECK: exec.range @w : memref<4x8xf32> role parameter at 0 {full = tensor<8x8xf32>, init = #nn.zeros, placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
exec.range @w : memref<4x8xf32> role parameter at 0
    {full = tensor<8x8xf32>, init = #nn.zeros, placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
// CHECK: exec.range @w.exp_avg : memref<4x8xf32> role state at 128
exec.range @w.exp_avg : memref<4x8xf32> role state at 128
// CHECK: exec.range @table : memref<16x2x2xf32> role buffer
exec.range @table : memref<16x2x2xf32> role buffer
// CHECK: exec.range @w.grad : memref<4x8xf32> role gradient
exec.range @w.grad : memref<4x8xf32> role gradient
// CHECK: exec.range @x : memref<2x2x8xf32> role input
exec.range @x : memref<2x2x8xf32> role input
// CHECK: exec.range @y : memref<4x8xf32> role output
exec.range @y : memref<4x8xf32> role output
exec.range @u : memref<4x4xf32> role parameter
exec.range @v : memref<16xf32> role parameter

// Kernel arguments are named by their part: inputs first, outputs last.
// CHECK-LABEL: exec.kernel @scaled_by_sum over(4, 8) access [element, column, scalar, element, row] outputs 2
// CHECK-NEXT: ^bb0(%in0: memref<4x8xf32>, %in1: memref<8xbf16>, %in2: memref<i32>, %out0: memref<4x8xbf16>, %out1: memref<4xf32>):
exec.kernel @scaled_by_sum over(4, 8) access [element, column, scalar, element, row] outputs 2 {
^bb0(%x: memref<4x8xf32>, %w: memref<8xbf16>, %n: memref<i32>, %y: memref<4x8xbf16>, %s: memref<4xf32>):
  // CHECK-NEXT: %[[N:.*]] = exec.load %in2 : memref<i32> -> i32
  %count = exec.load %n : memref<i32> -> i32
  %scale = arith.sitofp %count : i32 to f32
  // CHECK: %[[SUM:.*]] = exec.reduce sum {
  %sum = exec.reduce sum {
    %a = exec.load %x : memref<4x8xf32> -> f32
    // CHECK: exec.yield
    exec.yield %a
  }
  // CHECK: exec.reduce max
  %max = exec.reduce max {
    // CHECK-NEXT: %[[J:.*]] = exec.column
    %j = exec.column
    // CHECK-NEXT: exec.load %in0 at %[[J]] : memref<4x8xf32> -> f32
    %a = exec.load %x at %j : memref<4x8xf32> -> f32
    exec.yield %a
  }
  // CHECK: exec.map {
  exec.map {
    %a = exec.load %x : memref<4x8xf32> -> f32
    %b = exec.load %w : memref<8xbf16> -> f32
    %c = arith.mulf %a, %b : f32
    %d = arith.mulf %c, %scale : f32
    %e = arith.addf %d, %max : f32
    // CHECK: exec.store %{{.*}}, %out0 : f32, memref<4x8xbf16>
    exec.store %e, %y : f32, memref<4x8xbf16>
  }
  exec.store %sum, %s : f32, memref<4xf32>
}

// CHECK-LABEL: exec.kernel @column_sums over(4, 8) access [element, column] outputs 1 column_reduction
exec.kernel @column_sums over(4, 8) access [element, column] outputs 1 column_reduction {
^bb0(%x: memref<4x8xf32>, %s: memref<8xf32>):
  // CHECK: exec.reduce_rows sum %out0 : memref<8xf32> {
  exec.reduce_rows sum %s : memref<8xf32> {
    %a = exec.load %x : memref<4x8xf32> -> f32
    exec.yield %a
  }
}

// Sums over blocks of rows, and over these.
// CHECK-LABEL: exec.kernel @blocks over(64, 8) access [element, element, block] outputs 2
exec.kernel @blocks over(64, 8) access [element, element, block] outputs 2 {
^bb0(%x: memref<64x8xf32>, %y: memref<64x8xf32>, %b: memref<2x8xf32>):
  exec.map {
    %a = exec.load %x : memref<64x8xf32> -> f32
    exec.store %a, %y : f32, memref<64x8xf32>
  }
  // CHECK: exec.reduce_rows sum %out1 : memref<2x8xf32> {
  exec.reduce_rows sum %b : memref<2x8xf32> {
    %a = exec.load %x : memref<64x8xf32> -> f32
    exec.yield %a
  }
}

// CHECK-LABEL: exec.kernel @sum_of_blocks
exec.kernel @sum_of_blocks over(2, 8) access [element, column] outputs 1 column_reduction {
^bb0(%b: memref<2x8xf32>, %s: memref<8xf32>):
  // CHECK: exec.reduce_rows sum %out0 in_order : memref<8xf32> {
  exec.reduce_rows sum %s in_order : memref<8xf32> {
    %a = exec.load %b : memref<2x8xf32> -> f32
    exec.yield %a
  }
}

// CHECK-LABEL: exec.program @train arena 4096 attributes {exec.inputs = ["x"]}
exec.program @train arena 4096 attributes {exec.inputs = ["x"]} {
  // A persistent range gives its name to the value.
  // CHECK-NEXT: %w = exec.get @w : memref<4x8xf32>
  %w = exec.get @w : memref<4x8xf32>
  %x = exec.get @x : memref<2x2x8xf32>
  %y = exec.get @y : memref<4x8xf32>
  // CHECK: exec.get @u adjacent [@v] : memref<32xf32>
  %wide = exec.get @u adjacent [@v] : memref<32xf32>
  // CHECK: %[[FULL:.*]] = exec.alloc at 1024 "layers.0: all_gather" : memref<8x8xf32>
  %full = exec.alloc at 1024 "layers.0: all_gather" : memref<8x8xf32>
  // CHECK: %[[T:.*]] = exec.collective all_gather on gather(%w : memref<4x8xf32>) outs(%[[FULL]] : memref<8x8xf32>) over @mesh["dp_shard"] {serves = #fsdp.origin<all "fwd layers.0">} -> !exec.token
  %t = exec.collective all_gather on gather (%w : memref<4x8xf32>) outs(%full : memref<8x8xf32>)
      over @mesh["dp_shard"] {serves = #fsdp.origin<all "fwd layers.0">} -> !exec.token
  // CHECK-NEXT: exec.await %[[T]]
  exec.await %t
  // CHECK-NEXT: exec.view %x[0] : memref<2x2x8xf32> to memref<4x8xf32>
  %x2 = exec.view %x[0] : memref<2x2x8xf32> to memref<4x8xf32>
  %scratch = exec.alloc : memref<64xi8>
  // CHECK: exec.gemm on compute(%{{.*}}, %[[FULL]] : memref<4x8xf32>, memref<8x8xf32>) outs(%y : memref<4x8xf32>) workspace(%{{.*}} : memref<64xi8>) {transpose_rhs}
  exec.gemm on compute (%x2, %full : memref<4x8xf32>, memref<8x8xf32>) outs(%y : memref<4x8xf32>)
      workspace(%scratch : memref<64xi8>) {transpose_rhs}
  %sum = exec.alloc : memref<8x8xf32>
  // CHECK: exec.gemm_add on compute(%{{.*}}, %y, %[[SUM:.*]] : memref<4x8xf32>, memref<4x8xf32>, memref<8x8xf32>) outs(%[[SUM]] : memref<8x8xf32>) workspace(%{{.*}} : memref<64xi8>) {transpose_lhs}
  exec.gemm_add on compute (%x2, %y, %sum : memref<4x8xf32>, memref<4x8xf32>, memref<8x8xf32>) outs(%sum : memref<8x8xf32>)
      workspace(%scratch : memref<64xi8>) {transpose_lhs}
  %sums = exec.alloc : memref<8xf32>
  // CHECK: exec.launch @column_sums on compute(%y : memref<4x8xf32>) outs(%{{.*}} : memref<8xf32>)
  exec.launch @column_sums on compute (%y : memref<4x8xf32>) outs(%sums : memref<8xf32>)
  %part = exec.alloc : memref<4xf32>
  %room = exec.alloc : memref<32xi8>
  // CHECK: exec.collective reduce_scatter on reduce(%{{.*}} : memref<8xf32>) outs(%{{.*}} : memref<4xf32>) workspace(%{{.*}} : memref<32xi8>) over @mesh["dp_shard"]
  exec.collective reduce_scatter on reduce (%sums : memref<8xf32>) outs(%part : memref<4xf32>)
      workspace(%room : memref<32xi8>) over @mesh["dp_shard"]
  // CHECK-NEXT: exec.record 3 on reduce
  exec.record 3 on reduce
  // CHECK-NEXT: exec.wait 3 on compute
  exec.wait 3 on compute
  // CHECK: exec.transpose on compute(%y : memref<4x8xf32>) outs(%{{.*}} : memref<8x4xf32>) {permutation = array<i64: 1, 0>}
  %turned = exec.alloc : memref<8x4xf32>
  exec.transpose on compute (%y : memref<4x8xf32>) outs(%turned : memref<8x4xf32>)
      {permutation = array<i64: 1, 0>}
  // CHECK-NEXT: exec.copy on copy(%y : memref<4x8xf32>) outs(%w : memref<4x8xf32>)
  exec.copy on copy (%y : memref<4x8xf32>) outs(%w : memref<4x8xf32>)
  // CHECK-NEXT: exec.call @layer(%y, %{{.*}}) events [3, 4] : memref<4x8xf32>, memref<8xf32>
  exec.call @layer(%y, %sums) events [3, 4] : memref<4x8xf32>, memref<8xf32>
}

// CHECK-LABEL: exec.func @layer
exec.func @layer {
^bb0(%y: memref<4x8xf32>, %s: memref<8xf32>):
  exec.launch @column_sums on compute (%y : memref<4x8xf32>) outs(%s : memref<8xf32>)
}
