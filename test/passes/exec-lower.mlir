// RUN: fsdp-opt %s --split-input-file --exec-lower=target=test | FileCheck %s

// What persists becomes ranges: parameters, state and buffers with the shape of
// this rank's part, then arguments and results. @w has 5 rows on 2 ranks, so
// ceil(5/2) = 3 here.
// CHECK: exec.range @w : memref<3x8xf32> role parameter {full = tensor<5x8xf32>, init = #nn.zeros, placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
// CHECK-NEXT: exec.range @w.exp_avg : memref<3x8xf32> role state {full = tensor<5x8xf32>
// CHECK-NEXT: exec.range @table : memref<4x2x2xf32> role buffer {full = tensor<4x2x2xf32>
// CHECK-NEXT: exec.range @x : memref<3x8xf32> role input
// CHECK-NEXT: exec.range @n : memref<f32> role input
// CHECK-NEXT: exec.range @y : memref<3x8xf32> role output
fsdp.mesh @mesh ["dp_shard" = 2]
nn.parameter @w : tensor<5x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
nn.buffer @w.exp_avg : tensor<5x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>, nn.state_of = @w}
nn.buffer @table : tensor<4x2x2xf32> init #nn.rotary_table<[1.0, 0.1]>

// The result is written where it ends. An addition is 8 + 8 + 8 flops.
// CHECK: exec.program @evaluate attributes {exec.flops = 24 : i64, exec.inputs = ["x", "n"], exec.outputs = ["y"], exec.reads = ["x", "w"], exec.writes = ["y"]} {
// CHECK-NEXT: %x = exec.get @x
// CHECK-NEXT: %y = exec.get @y
// CHECK-NEXT: %w = exec.get @w
// CHECK-NEXT: exec.launch @add on compute(%w, %x : memref<3x8xf32>, memref<3x8xf32>) outs(%y : memref<3x8xf32>)
// CHECK-NEXT: }
func.func @evaluate(%x: tensor<3x8xf32> {nn.name = "x"}, %n: tensor<f32> {nn.name = "n"}) -> (tensor<3x8xf32> {nn.name = "y"}) {
  %w = nn.read @w : tensor<3x8xf32>
  %y = nn.add %w, %x : tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}

// A second program shares the ranges; returning an argument is a copy.
// CHECK: exec.program @identity
// CHECK: exec.copy on compute(%x : memref<3x8xf32>) outs(%y : memref<3x8xf32>)
func.func @identity(%x: tensor<3x8xf32> {nn.name = "x"}) -> (tensor<3x8xf32> {nn.name = "y"}) {
  return %x : tensor<3x8xf32>
}

// -----

// What lies where in one rank's program: ranges carry the logical type and the
// placement. @w has 10 rows: 5 for each of `tp`, and 3 or 2 of these here.
// CHECK: exec.range @w : memref<3x4xf32> role parameter {full = tensor<10x4xf32>, init = #nn.zeros, placement = #fsdp.placement<[{"tp" | "dp_shard"}, {}]>}
// CHECK-NEXT: exec.range @bias : memref<4xf32> role parameter {full = tensor<4xf32>, init = #nn.zeros, placement = #fsdp.placement<[{}]>}
// CHECK-NEXT: exec.range @x : memref<3x4xf32> role input {full = tensor<6x4xf32>, placement = #fsdp.placement<[{"dp_shard"}, {}]>}
// CHECK-NEXT: exec.range @n : memref<3x4xf32> role input{{$}}
// CHECK-NEXT: exec.range @y : memref<3x4xf32> role output {full = tensor<6x8xf32>, placement = #fsdp.placement<[{"dp_shard"}, {"tp"}]>}
// CHECK-NEXT: exec.range @loss : memref<f32> role output {full = tensor<f32>, placement = #fsdp.placement<[]>}
// CHECK: exec.range @w.grad : memref<3x4xf32> role gradient {full = tensor<10x4xf32>, placement = #fsdp.placement<[{"tp" | "dp_shard"}, {}]>}
fsdp.mesh @mesh ["dp_shard" = 2, "tp" = 2]
nn.parameter @w : tensor<10x4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{"tp" | "dp_shard"}, {}]>}
nn.parameter @bias : tensor<4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{}]>}
func.func @placed(%x: tensor<3x4xf32> {nn.name = "x", fsdp.placement = #fsdp.placement<[{"dp_shard"}, {}]>},
                  %n: tensor<3x4xf32> {nn.name = "n"})
    -> (tensor<3x4xf32> {nn.name = "y", fsdp.placement = #fsdp.placement<[{"dp_shard"}, {"tp"}]>},
        tensor<f32> {nn.name = "loss", fsdp.placement = #fsdp.placement<[]>}) attributes {fsdp.local} {
  %w = nn.read @w : tensor<3x4xf32>
  %y = nn.add %w, %x : tensor<3x4xf32>
  %loss = nn.sum %n [0, 1] : tensor<3x4xf32> to tensor<f32>
  nn.gradient @w, %y : tensor<3x4xf32>
  return %y, %loss : tensor<3x4xf32>, tensor<f32>
}

// -----

// The rows of a table that this rank has, of the indices of all.
// CHECK-LABEL: exec.program @rows
// CHECK: exec.rows_of_shard on compute(%ids : memref<8xi32>) outs(%[[OWN:.*]] : memref<8xi32>) over @mesh["dp_shard"] of 15 {by_rank}
// CHECK: exec.embedding_grad on compute(%[[OWN]], %dy : memref<8xi32>, memref<8x2xf32>) outs(%dw : memref<16x2xf32>) {absent
fsdp.mesh @mesh ["dp_shard" = 4]
func.func @rows(%ids: tensor<8xi32> {nn.name = "ids"}, %dy: tensor<8x2xf32> {nn.name = "dy"}) -> (tensor<16x2xf32> {nn.name = "dw"}) {
  %own = fsdp.rows_of_shard %ids on @mesh["dp_shard"] of 15 {by_rank} : tensor<8xi32>
  %dw = nn.embedding_grad %own, %dy {absent} : tensor<8xi32>, tensor<8x2xf32> -> tensor<16x2xf32>
  return %dw : tensor<16x2xf32>
}

// -----

// A part of what every rank has is a copy by the rank's place.
// CHECK-LABEL: exec.program @part
// CHECK: exec.shard_of on compute(%{{.*}} : memref<7x8xf32>) outs(%y : memref<2x8xf32>) over @mesh["tp", "dp_shard":(2)2]
fsdp.mesh @mesh ["dp_shard" = 4, "tp" = 2]
func.func @part(%x: tensor<7x8xf32> {nn.name = "x"}) -> (tensor<2x8xf32> {nn.name = "y"}) {
  %n = nn.neg %x : tensor<7x8xf32>
  %y = fsdp.shard_of %n on @mesh["tp", "dp_shard":(2)2] dim 0 : tensor<7x8xf32> -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// Equal kernels are one kernel, whatever they serve; a kernel of another
// shape gets a number. The unused row statistic is not stored.
// CHECK: exec.kernel @rms_norm over(8, 16) access [element, column, element] outputs 1 {
// CHECK-NEXT: ^bb0(%in0: memref<2x4x16xbf16>, %in1: memref<16xbf16>, %out0: memref<2x4x16xbf16>):
// CHECK-NEXT: %[[SS:.*]] = exec.reduce sum {
// CHECK-NEXT: %[[X:.*]] = exec.load %in0 : memref<2x4x16xbf16> -> f32
// CHECK-NEXT: %[[S:.*]] = arith.mulf %[[X]], %[[X]] : f32
// CHECK-NEXT: exec.yield %[[S]]
// CHECK: %[[RSTD:.*]] = arith.divf
// CHECK: exec.map {
// CHECK: exec.store %{{.*}}, %out0 : f32, memref<2x4x16xbf16>
// CHECK: exec.kernel @rms_norm_2 over(4, 32)
// CHECK-NOT: exec.kernel
// CHECK-LABEL: exec.program @norms
// CHECK: exec.launch @rms_norm on
// CHECK: exec.launch @rms_norm on
// CHECK: exec.launch @rms_norm_2 on
func.func @norms(%x: tensor<2x4x16xbf16> {nn.name = "x"}, %w: tensor<16xbf16> {nn.name = "w"},
                 %a: tensor<4x32xbf16> {nn.name = "a"}, %v: tensor<32xbf16> {nn.name = "v"})
    -> (tensor<2x4x16xbf16> {nn.name = "y"}, tensor<4x32xbf16> {nn.name = "b"}) {
  %h, %0 = nn.rms_norm %x, %w eps 1.0e-05 : tensor<2x4x16xbf16>, tensor<16xbf16>, tensor<2x4xf32>
  %y, %1 = nn.rms_norm %h, %w eps 1.0e-05 : tensor<2x4x16xbf16>, tensor<16xbf16>, tensor<2x4xf32>
  %b, %2 = nn.rms_norm %a, %v eps 1.0e-05 : tensor<4x32xbf16>, tensor<32xbf16>, tensor<4xf32>
  return %y, %b : tensor<2x4x16xbf16>, tensor<4x32xbf16>
}

// -----

// Inside a fusion every op still rounds to its declared type: the sum is bf16
// for the norm's readers, in both stages. It also leaves, so it is stored;
// the store rounds by itself. Constants need no buffer.
// CHECK: exec.kernel @add_mul_sum over(4, 8) access [element, element, element, row] outputs 2 {
// CHECK: exec.reduce sum {
// CHECK-NEXT: %[[A:.*]] = exec.load %in0
// CHECK-NEXT: %[[B:.*]] = exec.load %in1
// CHECK-NEXT: %[[ADD:.*]] = arith.addf %[[A]], %[[B]] : f32
// CHECK-NEXT: %[[NARROW:.*]] = arith.truncf %[[ADD]] : f32 to bf16
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[NARROW]] : bf16 to f32
// CHECK-NEXT: %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-NEXT: %[[MUL:.*]] = arith.mulf %[[WIDE]], %[[HALF]] : f32
// CHECK-NEXT: arith.truncf %[[MUL]] : f32 to bf16
// CHECK: exec.map {
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK-NEXT: exec.store %[[SUM]], %out0 : f32, memref<4x8xbf16>
// CHECK: exec.store %{{.*}}, %out1 : f32, memref<4xbf16>
// CHECK-LABEL: exec.program @fused
// CHECK: exec.launch @add_mul_sum on compute(%a, %b : {{.*}}) outs(%c, %d :
func.func @fused(%a: tensor<4x8xbf16> {nn.name = "a"}, %b: tensor<4x8xbf16> {nn.name = "b"})
    -> (tensor<4x8xbf16> {nn.name = "c"}, tensor<4xbf16> {nn.name = "d"}) {
  %half = nn.constant dense<0.5> : tensor<4x8xbf16>
  %c, %d = nn.fusion (%a, %b, %half) : (tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<4xbf16>) {
  ^bb0(%x: tensor<4x8xbf16>, %y: tensor<4x8xbf16>, %h: tensor<4x8xbf16>):
    %s = nn.add %x, %y : tensor<4x8xbf16>
    %t = nn.mul %s, %h : tensor<4x8xbf16>
    %u = nn.sum %t [1] : tensor<4x8xbf16> to tensor<4xbf16>
    nn.yield %s, %u : tensor<4x8xbf16>, tensor<4xbf16>
  }
  return %c, %d : tensor<4x8xbf16>, tensor<4xbf16>
}

// -----

// A sum over the rows has one result per column. What is the same for a whole
// row is read before the loop over the columns, except in such a sum.
// CHECK: exec.kernel @rms_norm_weight_grad over(4, 8) access [{{.*}}] outputs 1 column_reduction {
// CHECK-NEXT: ^bb0
// CHECK-NEXT: exec.reduce_rows sum %out0 : memref<8xf32> {
// CHECK: exec.kernel @rms_norm_input_grad over(4, 8)
// CHECK: %[[RSTD:.*]] = exec.load %{{.*}} : memref<4xf32> -> f32
// CHECK: exec.map {
// CHECK-NOT: memref<4xf32>
// CHECK-LABEL: exec.program @norm_grads
func.func @norm_grads(%x: tensor<4x8xf32> {nn.name = "x"}, %w: tensor<8xf32> {nn.name = "w"},
                      %r: tensor<4xf32> {nn.name = "r"}, %dy: tensor<4x8xf32> {nn.name = "dy"})
    -> (tensor<8xf32> {nn.name = "dw"}, tensor<4x8xf32> {nn.name = "dx"}) {
  %dw = nn.rms_norm_weight_grad %x, %r, %dy : tensor<4x8xf32>, tensor<4xf32> to tensor<8xf32>
  %dx = nn.rms_norm_input_grad %x, %w, %r, %dy : tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>
  return %dw, %dx : tensor<8xf32>, tensor<4x8xf32>
}

// -----

// Sums over the rows of a fusion are made for each block of rows, and added by a
// kernel after it. A row's scalar that only a sum reads is read before the loops.
// CHECK: exec.kernel @rms_norm_input_grad_rms_norm_weight_grad over(64, 8) access [column, element, element, row, element, block] outputs 2 {
// CHECK: exec.map {
// CHECK: exec.reduce_rows sum %out1 : memref<2x8xf32> {
// CHECK-NOT: memref<64xf32>
// CHECK: exec.kernel @sum_of_blocks over(2, 8) access [element, column] outputs 1 column_reduction {
// CHECK: exec.reduce_rows sum %out0 in_order : memref<8xbf16> {
// CHECK-LABEL: exec.program @blocks
// CHECK: %[[B:.*]] = exec.alloc "norm: rms_norm_weight_grad blocks" : memref<2x8xf32>
// CHECK: exec.launch @rms_norm_input_grad_rms_norm_weight_grad on compute({{.*}}) outs(%dx, %[[B]] : memref<64x8xbf16>, memref<2x8xf32>)
// CHECK: exec.launch @sum_of_blocks on compute(%[[B]] : memref<2x8xf32>) outs(%dw : memref<8xbf16>)
func.func @blocks(%x: tensor<64x8xbf16> {nn.name = "x"}, %w: tensor<8xbf16> {nn.name = "w"},
                  %r: tensor<64xf32> {nn.name = "r"}, %dy: tensor<64x8xbf16> {nn.name = "dy"})
    -> (tensor<64x8xbf16> {nn.name = "dx"}, tensor<8xbf16> {nn.name = "dw"}) {
  %f:2 = nn.fusion(%x, %w, %r, %dy) {nn.module = "norm"} : (tensor<64x8xbf16>, tensor<8xbf16>, tensor<64xf32>, tensor<64x8xbf16>) -> (tensor<64x8xbf16>, tensor<8xbf16>) {
  ^bb0(%a: tensor<64x8xbf16>, %b: tensor<8xbf16>, %c: tensor<64xf32>, %d: tensor<64x8xbf16>):
    %dx = nn.rms_norm_input_grad %a, %b, %c, %d {nn.module = "norm"} : tensor<64x8xbf16>, tensor<8xbf16>, tensor<64xf32>
    %dw = nn.rms_norm_weight_grad %a, %c, %d {nn.module = "norm"} : tensor<64x8xbf16>, tensor<64xf32> to tensor<8xbf16>
    nn.yield %dx, %dw : tensor<64x8xbf16>, tensor<8xbf16>
  }
  return %f#0, %f#1 : tensor<64x8xbf16>, tensor<8xbf16>
}

// -----

// A linear layer is one matmul over the flattened rows; a workspace is 64
// bytes for the test target. The label names the layer and the op.
// CHECK-LABEL: exec.program @matmuls
// CHECK: %[[H:.*]] = exec.alloc "layers.0.wq: linear" : memref<2x4x16xf32>
// CHECK-NEXT: %[[X:.*]] = exec.view %x[0] : memref<2x4x8xf32> to memref<8x8xf32>
// CHECK-NEXT: %[[H2:.*]] = exec.view %[[H]][0] : memref<2x4x16xf32> to memref<8x16xf32>
// CHECK-NEXT: %[[S:.*]] = exec.alloc "layers.0.wq: linear workspace" : memref<64xi8>
// CHECK-NEXT: exec.gemm on compute(%[[X]], %w, %b : memref<8x8xf32>, memref<16x8xf32>, memref<16xf32>) outs(%[[H2]] : memref<8x16xf32>) workspace(%[[S]] : memref<64xi8>) {nn.module = "layers.0.wq", transpose_rhs}
// CHECK: exec.gemm on compute(%[[H]], %[[H]] : memref<2x4x16xf32>, memref<2x4x16xf32>) outs(%y : memref<2x16x16xf32>) workspace(%{{.*}}) {transpose_lhs}

// The gradients of a linear layer are matmuls over the flattened rows too.
// CHECK: exec.gemm on compute(%[[DY:.*]], %w : memref<8x16xf32>, memref<16x8xf32>) outs(%[[DX:.*]] : memref<8x8xf32>) workspace(%{{.*}} : memref<64xi8>){{$}}
// CHECK: exec.gemm on compute(%{{.*}}, %{{.*}} : memref<8x16xf32>, memref<8x8xf32>) outs(%dw : memref<16x8xf32>) workspace(%{{.*}} : memref<64xi8>) {transpose_lhs}
func.func @matmuls(%x: tensor<2x4x8xf32> {nn.name = "x"}, %w: tensor<16x8xf32> {nn.name = "w"}, %b: tensor<16xf32> {nn.name = "b"})
    -> (tensor<2x16x16xf32> {nn.name = "y"}, tensor<2x4x8xf32> {nn.name = "dx"}, tensor<16x8xf32> {nn.name = "dw"}) {
  %h = nn.linear %x, %w bias %b {nn.module = "layers.0.wq"} : tensor<2x4x8xf32>, tensor<16x8xf32>, tensor<16xf32> -> tensor<2x4x16xf32>
  %y = nn.matmul %h, %h {transpose_lhs} : tensor<2x4x16xf32>, tensor<2x4x16xf32> -> tensor<2x16x16xf32>
  %dx = nn.linear_input_grad %h, %w : tensor<2x4x16xf32>, tensor<16x8xf32> -> tensor<2x4x8xf32>
  %dw = nn.linear_weight_grad %h, %x : tensor<2x4x16xf32>, tensor<2x4x8xf32> -> tensor<16x8xf32>
  return %y, %dx, %dw : tensor<2x16x16xf32>, tensor<2x4x8xf32>, tensor<16x8xf32>
}

// -----

// Attention and what is around it are calls of the runtime.
// CHECK-LABEL: exec.program @attention
// CHECK: exec.rotary on compute(%q, %t : {{.*}}) outs(%[[R:.*]] : {{.*}}) pairs halves
// CHECK: %[[LSE:.*]] = exec.alloc "attention" : memref<2x4x8xf32>
// CHECK-NEXT: %[[S:.*]] = exec.alloc "attention workspace" : memref<4096xi8>
// CHECK-NEXT: exec.attention on compute(%[[R]], %k, %v : {{.*}}) outs(%[[O:.*]], %[[LSE]] : {{.*}}) workspace(%[[S]] : memref<4096xi8>) {causal, scale = 2.500000e-01 : f64}
// CHECK: exec.attention_grad on compute(%[[R]], %k, %v, %[[O]], %[[LSE]], %do : {{.*}}) outs(%[[DQ:.*]], %dk, %dv : {{.*}}) workspace(%{{.*}} : memref<8192xi8>)
// CHECK: exec.rotary on compute(%[[DQ]], %t : {{.*}}) outs(%dq : {{.*}}) pairs halves {inverse}
func.func @attention(%q: tensor<2x8x4x16xf32> {nn.name = "q"}, %k: tensor<2x8x2x16xf32> {nn.name = "k"}, %v: tensor<2x8x2x16xf32> {nn.name = "v"},
                     %t: tensor<8x8x2xf32> {nn.name = "t"}, %do: tensor<2x8x4x16xf32> {nn.name = "do"})
    -> (tensor<2x8x4x16xf32> {nn.name = "dq"}, tensor<2x8x2x16xf32> {nn.name = "dk"}, tensor<2x8x2x16xf32> {nn.name = "dv"}) {
  %r = nn.rotary halves %q, %t : tensor<2x8x4x16xf32>, tensor<8x8x2xf32>
  %o, %lse = nn.attention %r, %k, %v scale 0.25 {causal} : tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x4x8xf32>
  %dr, %dk, %dv = nn.attention_grad %r, %k, %v, %o, %lse, %do scale 0.25 {causal} : tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x4x8xf32>
  %dq = nn.rotary halves %dr, %t {inverse} : tensor<2x8x4x16xf32>, tensor<8x8x2xf32>
  return %dq, %dk, %dv : tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>
}

// -----

// Embedding and loss. The rows' losses are summed by one kernel; the count is
// loaded as the integer that it is. The cotangent of the loss is the constant 1
// inside the kernel that divides it. The bf16 table's gradient is summed in f32:
// 16 x 4 elements of 4 bytes.
// CHECK: exec.kernel @sum over(1, 6) access [element, row] outputs 1 {
// CHECK: exec.kernel @divide_by_count over(1, 1) access [element, element, element] outputs 1 {
// CHECK-NEXT: ^bb0(%{{.*}}: memref<f32>, %[[N:.*]]: memref<i64>, %{{.*}}: memref<f32>):
// CHECK: %[[COUNT:.*]] = exec.load %[[N]] : memref<i64> -> i64
// CHECK: arith.sitofp %[[COUNT]] : i64 to f32
// CHECK: exec.kernel @divide_by_count_2 over(1, 1) access [element, element] outputs 1 {
// CHECK: arith.constant 1.000000e+00 : f32
// CHECK-LABEL: exec.program @backward
// CHECK: exec.embedding on compute(%ids, %table : memref<6xi32>, memref<16x4xbf16>)
// CHECK: exec.cross_entropy on compute(%[[E:.*]], %ids : {{.*}}) outs(%[[ROWS:.*]], %[[LSE:.*]] : memref<6xf32>, memref<6xf32>) {ignore_index = -100 : i64}
// CHECK: exec.launch @sum on compute(%[[ROWS]] : {{.*}}) outs(%[[SUM:.*]] : memref<f32>)
// CHECK: exec.count_labels on compute(%ids : memref<6xi32>) outs(%[[COUNT:.*]] : memref<i64>) {ignore_index = -100 : i64}
// CHECK: exec.launch @divide_by_count on compute(%[[SUM]], %[[COUNT]] : {{.*}}) outs(%loss : memref<f32>)
// CHECK: exec.launch @divide_by_count_2 on compute(%[[COUNT]] : memref<i64>) outs(%[[D:.*]] : memref<f32>)
// CHECK: exec.launch @broadcast on compute(%[[D]] : memref<f32>) outs(%[[DROWS:.*]] : memref<6xf32>)
// CHECK: exec.cross_entropy_grad on compute(%[[E]], %ids, %[[LSE]], %[[DROWS]] : {{.*}}) outs(%[[DE:.*]] : memref<6x4xbf16>)
// CHECK: %[[SUMS:.*]] = exec.alloc "embedding_grad workspace" : memref<256xi8>
// CHECK: exec.embedding_grad on compute(%ids, %[[DE]] : {{.*}}) outs(%dt : memref<16x4xbf16>) workspace(%[[SUMS]] : memref<256xi8>)
func.func @backward(%ids: tensor<6xi32> {nn.name = "ids"}, %table: tensor<16x4xbf16> {nn.name = "table"})
    -> (tensor<f32> {nn.name = "loss"}, tensor<16x4xbf16> {nn.name = "dt"}) {
  %e = nn.embedding %ids, %table : tensor<6xi32>, tensor<16x4xbf16> -> tensor<6x4xbf16>
  %rows, %lse = nn.cross_entropy %e, %ids ignore_index -100 : tensor<6x4xbf16>, tensor<6xi32>, tensor<6xf32>
  %sum = nn.sum %rows [0] : tensor<6xf32> to tensor<f32>
  %count = nn.count_labels %ids ignore_index -100 : tensor<6xi32> -> tensor<i64>
  %loss = nn.divide_by_count %sum, %count : tensor<f32>, tensor<i64>
  %one = nn.seed %loss : tensor<f32>
  %dsum = nn.divide_by_count %one, %count : tensor<f32>, tensor<i64>
  %drows = nn.broadcast %dsum [] : tensor<f32> to tensor<6xf32>
  %de = nn.cross_entropy_grad %e, %ids, %lse, %drows ignore_index -100 : tensor<6x4xbf16>, tensor<6xi32>, tensor<6xf32>
  %dt = nn.embedding_grad %ids, %de : tensor<6xi32>, tensor<6x4xbf16> -> tensor<16x4xbf16>
  return %loss, %dt : tensor<f32>, tensor<16x4xbf16>
}

// -----

// Reshapes and contiguous slices are views (row 2 of 4 x 16 starts at element
// 32), recomputation is an alias, other boxes are copied. Parts that lie one
// after the other are produced where they end, but what is somewhere already is
// copied there.
// CHECK-LABEL: exec.program @shapes
// CHECK: %[[CAT:.*]] = exec.alloc "concat" : memref<4x16xf32>
// CHECK-NEXT: %[[PAD:.*]] = exec.view %[[CAT]][32] : memref<4x16xf32> to memref<2x16xf32>
// CHECK-NEXT: %[[ROW:.*]] = exec.view %x[32] : memref<4x16xf32> to memref<2x16xf32>
// CHECK: exec.copy_box on compute(%x : memref<4x16xf32>) outs(%[[BOX:.*]] : memref<2x4xf32>) {in_offsets = array<i64: 2, 4>, out_offsets = array<i64: 0, 0>, shape = array<i64: 2, 4>}
// CHECK-NEXT: exec.fill_zero on compute() outs(%[[PAD]] : memref<2x16xf32>)
// CHECK-NEXT: exec.copy_box on compute(%[[BOX]] : memref<2x4xf32>) outs(%[[PAD]] : memref<2x16xf32>) {in_offsets = array<i64: 0, 0>, out_offsets = array<i64: 0, 1>, shape = array<i64: 2, 4>}
// CHECK-NEXT: %[[HEAD:.*]] = exec.view %[[CAT]][0] : memref<4x16xf32> to memref<2x16xf32>
// CHECK-NEXT: exec.copy on compute(%[[ROW]] : memref<2x16xf32>) outs(%[[HEAD]] : memref<2x16xf32>)
// CHECK-NEXT: exec.transpose on compute(%[[CAT]] : memref<4x16xf32>) outs(%{{.*}} : memref<16x4xf32>) {permutation = array<i64: 1, 0>}
func.func @shapes(%x: tensor<4x16xf32> {nn.name = "x"}) -> (tensor<64xf32> {nn.name = "y"}) {
  %rows = nn.slice %x [2, 0] : tensor<4x16xf32> to tensor<2x16xf32>
  %box = nn.slice %x [2, 4] : tensor<4x16xf32> to tensor<2x4xf32>
  %pad = nn.pad %box [0, 1] : tensor<2x4xf32> to tensor<2x16xf32>
  %alias = nn.recompute_from %rows : tensor<2x16xf32> -> tensor<2x16xf32>
  %cat = nn.concat %alias, %pad dim 0 : tensor<2x16xf32>, tensor<2x16xf32> to tensor<4x16xf32>
  %t = nn.transpose %cat [1, 0] : tensor<4x16xf32> to tensor<16x4xf32>
  %y = nn.reshape %t : tensor<16x4xf32> to tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

// A reduction that awaits another one follows it on the same stream: only the
// second token is awaited.
// CHECK-LABEL: exec.program @chained
// CHECK: exec.collective reduce_scatter on reduce(%g : memref<4x8xf32>) outs(%[[S:[^ ]*]] : memref<2x8xf32>) {{.*}} -> !exec.token
// CHECK: %[[T:.*]] = exec.collective all_reduce on reduce(%[[S]] : memref<2x8xf32>) {{.*}} -> !exec.token
// CHECK-NOT: exec.await
// CHECK: exec.launch @neg
// CHECK-NEXT: exec.await %[[T]]
// CHECK-NOT: exec.await
fsdp.mesh @mesh ["dp_replicate" = 2, "dp_shard" = 2]
func.func @chained(%g: tensor<4x8xf32> {nn.name = "g"}) -> (tensor<2x8xf32> {nn.name = "r"}, tensor<4x8xf32> {nn.name = "n"}) {
  %f = fsdp.async : !fsdp.future<tensor<2x8xf32>> {
    %s = fsdp.reduce_scatter sum %g on @mesh["dp_shard"] dim 0 : tensor<4x8xf32> -> tensor<2x8xf32>
    fsdp.yield %s : tensor<2x8xf32>
  }
  %h = fsdp.async : !fsdp.future<tensor<2x8xf32>> {
    %s = fsdp.await %f : !fsdp.future<tensor<2x8xf32>> -> tensor<2x8xf32>
    %r = fsdp.all_reduce sum %s on @mesh["dp_replicate"] : tensor<2x8xf32> -> tensor<2x8xf32>
    fsdp.yield %r : tensor<2x8xf32>
  }
  %n = nn.neg %g : tensor<4x8xf32>
  %r = fsdp.await %h : !fsdp.future<tensor<2x8xf32>> -> tensor<2x8xf32>
  return %r, %n : tensor<2x8xf32>, tensor<4x8xf32>
}

// -----

// A gathered tensor is the prefix of the padded buffer: 2 ranks x 3 rows, 5 of
// them real. Started collectives run on their own streams and are awaited
// where fsdp.await stood; the reduction's workspace holds 2 pieces of 3 x 8
// bf16. The gradient is reduced into its range.
// CHECK: exec.range @w.grad : memref<3x8xf32> role gradient {full = tensor<5x8xf32>, placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
// CHECK-LABEL: exec.program @collectives
// CHECK: %[[FULL:.*]] = exec.alloc "fwd layers.0: all_gather" : memref<6x8xbf16>
// CHECK-NEXT: %[[W:.*]] = exec.view %[[FULL]][0] : memref<6x8xbf16> to memref<5x8xbf16>
// CHECK-NEXT: %[[T:.*]] = exec.collective all_gather on gather(%{{.*}} : memref<3x8xbf16>) outs(%[[FULL]] : memref<6x8xbf16>) over @mesh["dp_shard"] {serves = #fsdp.origin<all "fwd layers.0">} -> !exec.token
// CHECK: exec.await %[[T]]
// CHECK: exec.launch @add on compute(%[[W]] : memref<5x8xbf16>)
// CHECK: %[[S:.*]] = exec.alloc "w: reduce_scatter workspace" : memref<96xi8>
// CHECK: %[[R:.*]] = exec.collective reduce_scatter on reduce(%{{.*}} : memref<5x8xbf16>) outs(%w.grad : memref<3x8xf32>) workspace(%[[S]] : memref<96xi8>) over @mesh["dp_shard"] -> !exec.token
// CHECK: exec.collective all_reduce on compute(%{{.*}} : memref<f32>) outs(%norm : memref<f32>) workspace(%{{.*}} : memref<8xi8>) over @mesh["dp_shard"] {reduce = #exec<reduce_kind max>}
// CHECK: exec.await %[[R]]
fsdp.mesh @mesh ["dp_shard" = 2]
nn.parameter @w : tensor<5x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
func.func @collectives() -> (tensor<f32> {nn.name = "norm"}) {
  %s = nn.read @w : tensor<3x8xf32>
  %c = nn.cast %s : tensor<3x8xf32> to tensor<3x8xbf16>
  %f = fsdp.async : !fsdp.future<tensor<5x8xbf16>> {
    %g = fsdp.all_gather %c on @mesh["dp_shard"] dim 0 {serves = #fsdp.origin<all "fwd layers.0">} : tensor<3x8xbf16> -> tensor<5x8xbf16>
    fsdp.yield %g : tensor<5x8xbf16>
  }
  %w = fsdp.await %f : !fsdp.future<tensor<5x8xbf16>> -> tensor<5x8xbf16>
  %a = nn.add %w, %w : tensor<5x8xbf16>
  %h = fsdp.async : !fsdp.future<tensor<3x8xf32>> {
    %g = fsdp.reduce_scatter sum %a on @mesh["dp_shard"] dim 0 : tensor<5x8xbf16> -> tensor<3x8xf32>
    fsdp.yield %g : tensor<3x8xf32>
  }
  %m = nn.abs_max %s : tensor<3x8xf32> -> tensor<f32>
  %n = fsdp.all_reduce max %m on @mesh["dp_shard"] : tensor<f32> -> tensor<f32>
  %r = fsdp.await %h : !fsdp.future<tensor<3x8xf32>> -> tensor<3x8xf32>
  nn.gradient @w, %r : tensor<3x8xf32>
  return %n : tensor<f32>
}

// -----

// The optimizer updates in place: parameters and moments stand among the
// inputs and again as outputs. A value read before the update and used after
// it is copied.
// CHECK-LABEL: exec.program @update
// CHECK: exec.copy on compute(%w : memref<4x8xf32>) outs(%[[OLD:.*]] : memref<4x8xf32>)
// CHECK: exec.abs_max on compute(%g : memref<4x8xf32>) outs(%[[M:.*]] : memref<f32>)
// CHECK: exec.sum_squares on compute(%[[M]], %g : memref<f32>, memref<4x8xf32>) outs(%[[S:.*]] : memref<2xi64>)
// CHECK: exec.clip_coefficient on compute(%[[M]], %[[S]] : {{.*}}) outs(%norm, %[[C:.*]] : {{.*}}) {max_norm = 1.000000e+00 : f64}
// CHECK: exec.adamw on compute(%w, %[[A:.*]], %[[Q:.*]], %g, %lr, %step, %[[C]] : {{.*}}) outs(%w, %[[A]], %[[Q]] : {{.*}}) {beta1 = 9.000000e-01 : f64, beta2 = 0.94999999999999996 : f64, eps = 1.000000e-08 : f64, weight_decay = 1.000000e-01 : f64}
// CHECK: exec.copy on compute(%[[OLD]] : memref<4x8xf32>) outs(%old : memref<4x8xf32>)
nn.parameter @w : tensor<4x8xf32> init #nn.zeros
nn.buffer @w.exp_avg : tensor<4x8xf32> init #nn.zeros {nn.state_of = @w}
nn.buffer @w.exp_avg_sq : tensor<4x8xf32> init #nn.zeros {nn.state_of = @w}
func.func @update(%g: tensor<4x8xf32> {nn.name = "g"}, %lr: tensor<f32> {nn.name = "lr"}, %step: tensor<i32> {nn.name = "step"})
    -> (tensor<f32> {nn.name = "norm"}, tensor<4x8xf32> {nn.name = "old"}) {
  %w = nn.read @w : tensor<4x8xf32>
  %m = nn.abs_max %g : tensor<4x8xf32> -> tensor<f32>
  %s = nn.sum_squares %m, %g : tensor<f32>, tensor<4x8xf32> -> tensor<2xi64>
  %norm, %c = nn.clip_coefficient %m, %s max_norm 1.0 : tensor<f32>, tensor<2xi64>
  nn.adamw [@w] moments [@w.exp_avg], [@w.exp_avg_sq] (%g) lr %lr step %step clip %c
      {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1} : tensor<4x8xf32>
  return %norm, %w : tensor<f32>, tensor<4x8xf32>
}

// -----

// Buffers that hold a parameter or a gradient are called after the parameter,
// one by one where a collective moves several, and through casts. An op whose
// location has no name is called after the module of the weight that it reads.
// CHECK-LABEL: exec.program @names
// CHECK: exec.alloc "layers.1.w1.weight: cast" : memref<4x8xbf16>
// CHECK: exec.alloc "layers.1.w1.weight: all_gather" : memref<8x8xbf16>
// CHECK: exec.alloc "layers.1.w2.weight: all_gather" : memref<8x8xbf16>
// CHECK: exec.alloc "layers.1.w1: linear" : memref<2x8xbf16>
// CHECK: exec.alloc "layers.1.w1: linear workspace"
// CHECK: exec.alloc "layers.1.w2: linear" : memref<2x8xbf16>
// CHECK: exec.alloc "layers.1.w1.weight: matmul" : memref<8x8xbf16>
// CHECK: exec.alloc "layers.1.w1.weight: matmul workspace"
// CHECK: exec.alloc "layers.1.w1.weight: reduce_scatter workspace"
fsdp.mesh @mesh ["dp_shard" = 2]
nn.parameter @layers.1.w1.weight : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
nn.parameter @layers.1.w2.weight : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
func.func @names(%x: tensor<2x8xbf16> {nn.name = "x"}) -> (tensor<2x8xbf16> {nn.name = "y"}) {
  %s1 = nn.read @layers.1.w1.weight : tensor<4x8xf32>
  %s2 = nn.read @layers.1.w2.weight : tensor<4x8xf32>
  %c1 = nn.cast %s1 : tensor<4x8xf32> to tensor<4x8xbf16>
  %c2 = nn.cast %s2 : tensor<4x8xf32> to tensor<4x8xbf16>
  %w:2 = fsdp.all_gather %c1, %c2 on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@layers.1.w1.weight, @layers.1.w2.weight], serves = #fsdp.origin<all "fwd layers.1">} : tensor<4x8xbf16>, tensor<4x8xbf16> -> tensor<8x8xbf16>, tensor<8x8xbf16>
  %h = nn.linear %x, %w#0 : tensor<2x8xbf16>, tensor<8x8xbf16> -> tensor<2x8xbf16>
  %z = nn.linear %h, %w#1 : tensor<2x8xbf16>, tensor<8x8xbf16> -> tensor<2x8xbf16>
  %y = nn.add %h, %z : tensor<2x8xbf16>
  %dw = nn.matmul %h, %x {transpose_lhs} : tensor<2x8xbf16>, tensor<2x8xbf16> -> tensor<8x8xbf16>
  %r = fsdp.reduce_scatter sum %dw on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@layers.1.w1.weight]} : tensor<8x8xbf16> -> tensor<4x8xf32>
  nn.gradient @layers.1.w1.weight, %r : tensor<4x8xf32>
  return %y : tensor<2x8xbf16>
}

// -----

// A sum is where its last addend leaves it, here in the result's range, and each
// addend is added in place. Element 12 of rows of 6 is byte 48: a matmul reads
// what is aligned to 128 bytes, so that slice is a copy, and that after 16 rows
// is none.
// CHECK-LABEL: exec.program @sum_in_place
// CHECK: %[[SUM:.*]] = exec.get @dw : memref<3x6xf32>
// CHECK: %[[FIRST:.*]] = exec.view %x[0] : memref<32x6xf32> to memref<2x6xf32>
// CHECK: exec.gemm on compute(%d, %[[FIRST]] : memref<2x3xf32>, memref<2x6xf32>) outs(%[[SUM]] : memref<3x6xf32>) workspace(%{{.*}}) {transpose_lhs}
// CHECK: exec.copy_box on compute(%x : memref<32x6xf32>) outs(%[[SECOND:.*]] : memref<2x6xf32>) {in_offsets = array<i64: 2, 0>
// CHECK: exec.gemm_add on compute(%d, %[[SECOND]], %[[SUM]] : memref<2x3xf32>, memref<2x6xf32>, memref<3x6xf32>) outs(%[[SUM]] : memref<3x6xf32>) workspace(%{{.*}}) {transpose_lhs}
// CHECK: %[[THIRD:.*]] = exec.view %x[96] : memref<32x6xf32> to memref<2x6xf32>
// CHECK: exec.gemm_add on compute(%d, %[[THIRD]], %[[SUM]] :
// CHECK-NOT: exec.copy
func.func @sum_in_place(%x: tensor<32x6xf32> {nn.name = "x"}, %d: tensor<2x3xf32> {nn.name = "d"}) -> (tensor<3x6xf32> {nn.name = "dw"}) {
  %x0 = nn.slice %x [0, 0] : tensor<32x6xf32> to tensor<2x6xf32>
  %s0 = nn.linear_weight_grad %d, %x0 : tensor<2x3xf32>, tensor<2x6xf32> -> tensor<3x6xf32>
  %x1 = nn.slice %x [2, 0] : tensor<32x6xf32> to tensor<2x6xf32>
  %s1 = nn.linear_weight_grad %d, %x1 sum %s0 : tensor<2x3xf32>, tensor<2x6xf32>, tensor<3x6xf32> -> tensor<3x6xf32>
  %x2 = nn.slice %x [16, 0] : tensor<32x6xf32> to tensor<2x6xf32>
  %s2 = nn.linear_weight_grad %d, %x2 sum %s1 : tensor<2x3xf32>, tensor<2x6xf32>, tensor<3x6xf32> -> tensor<3x6xf32>
  return %s2 : tensor<3x6xf32>
}

// -----

// A matmul that reads a view of a slice reads it where the slice begins, byte 48:
// it is copied, and so is the slice of it.
// CHECK-LABEL: exec.program @slices_of_slices
// CHECK: exec.copy_box on compute(%x : memref<16x6xf32>) outs(%[[A:.*]] : memref<8x6xf32>) {in_offsets = array<i64: 2, 0>
// CHECK: exec.copy_box on compute(%[[A]] : memref<8x6xf32>) outs(%[[B:.*]] : memref<2x6xf32>) {in_offsets = array<i64: 2, 0>
// CHECK: %[[C:.*]] = exec.view %[[B]][0] : memref<2x6xf32> to memref<4x3xf32>
// CHECK: exec.gemm on compute(%[[C]], %w
func.func @slices_of_slices(%x: tensor<16x6xf32> {nn.name = "x"}, %w: tensor<5x3xf32> {nn.name = "w"}) -> (tensor<4x5xf32> {nn.name = "y"}) {
  %a = nn.slice %x [2, 0] : tensor<16x6xf32> to tensor<8x6xf32>
  %b = nn.slice %a [2, 0] : tensor<8x6xf32> to tensor<2x6xf32>
  %c = nn.reshape %b : tensor<2x6xf32> to tensor<4x3xf32>
  %y = nn.linear %c, %w : tensor<4x3xf32>, tensor<5x3xf32> -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// -----

// A sum that somebody else reads, or that is an argument, is copied first.
// CHECK-LABEL: exec.program @sums_of_others
// CHECK: exec.copy on compute(%s : memref<3x6xf32>) outs(%a : memref<3x6xf32>)
// CHECK-NEXT: %{{.*}} = exec.alloc
// CHECK-NEXT: exec.gemm_add on compute(%d, %x, %a : memref<2x3xf32>, memref<2x6xf32>, memref<3x6xf32>) outs(%a : memref<3x6xf32>)
// CHECK: exec.copy on compute(%a : memref<3x6xf32>) outs(%b : memref<3x6xf32>)
// CHECK: exec.gemm_add on compute(%d, %x, %b : memref<2x3xf32>, memref<2x6xf32>, memref<3x6xf32>) outs(%b : memref<3x6xf32>)
func.func @sums_of_others(%x: tensor<2x6xf32> {nn.name = "x"}, %d: tensor<2x3xf32> {nn.name = "d"}, %s: tensor<3x6xf32> {nn.name = "s"})
    -> (tensor<3x6xf32> {nn.name = "a"}, tensor<3x6xf32> {nn.name = "b"}) {
  %a = nn.linear_weight_grad %d, %x sum %s : tensor<2x3xf32>, tensor<2x6xf32>, tensor<3x6xf32> -> tensor<3x6xf32>
  %b = nn.linear_weight_grad %d, %x sum %a : tensor<2x3xf32>, tensor<2x6xf32>, tensor<3x6xf32> -> tensor<3x6xf32>
  return %a, %b : tensor<3x6xf32>, tensor<3x6xf32>
}

// -----

// Columns are copied in boxes. Element 6 of the second result is byte 24, which
// is not aligned to 128 bytes, so that part is copied there; the third one begins
// at byte 128, where the negation writes it.
// CHECK-LABEL: exec.program @joined
// CHECK: %[[LAST:.*]] = exec.view %b[32] : memref<38xf32> to memref<6xf32>
// CHECK: exec.copy_box on compute(%y : memref<2x3xf32>) outs(%a : memref<2x6xf32>) {in_offsets = array<i64: 0, 0>, out_offsets = array<i64: 0, 0>, shape = array<i64: 2, 3>}
// CHECK: exec.copy_box on compute(%y : memref<2x3xf32>) outs(%a : memref<2x6xf32>) {in_offsets = array<i64: 0, 0>, out_offsets = array<i64: 0, 3>, shape = array<i64: 2, 3>}
// CHECK: exec.launch @{{.*}} on compute(%x : memref<6xf32>) outs(%[[LAST]] : memref<6xf32>)
// CHECK: %[[FIRST:.*]] = exec.view %b[0] : memref<38xf32> to memref<6xf32>
// CHECK: exec.copy on compute(%x : memref<6xf32>) outs(%[[FIRST]] : memref<6xf32>)
// CHECK: %[[SECOND:.*]] = exec.view %b[6] : memref<38xf32> to memref<26xf32>
// CHECK: exec.copy on compute(%{{.*}} : memref<26xf32>) outs(%[[SECOND]] : memref<26xf32>)
// CHECK-NOT: exec.copy
func.func @joined(%x: tensor<6xf32> {nn.name = "x"}, %y: tensor<2x3xf32> {nn.name = "y"}, %z: tensor<26xf32> {nn.name = "z"})
    -> (tensor<2x6xf32> {nn.name = "a"}, tensor<38xf32> {nn.name = "b"}) {
  %a = nn.concat %y, %y dim 1 : tensor<2x3xf32>, tensor<2x3xf32> to tensor<2x6xf32>
  %m = nn.neg %z : tensor<26xf32>
  %n = nn.neg %x : tensor<6xf32>
  %b = nn.concat %x, %m, %n dim 0 : tensor<6xf32>, tensor<26xf32>, tensor<6xf32> to tensor<38xf32>
  return %a, %b : tensor<2x6xf32>, tensor<38xf32>
}

// -----

// Work says whose values it writes: what a plan calls the op. Of several tensors
// also which one, of a fusion the op of each value, and of a cast what it casts,
// or the parameter.
// CHECK: exec.launch @cast on compute{{.*}}exec.makes = "cast of w"
// CHECK: exec.collective all_gather{{.*}}exec.makes = ["fwd layers.0 all_gather of w", "fwd layers.0 all_gather of v"]
// CHECK: exec.launch {{.*}}exec.makes = ["fwd layers.0 add", "fwd layers.0 mul"]
// CHECK: exec.gemm {{.*}}exec.makes = "fwd layers.0 linear"
fsdp.mesh @mesh ["dp" = 2]
nn.parameter @w : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp"}, {}]>}
nn.parameter @v : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp"}, {}]>}
func.func @evaluate(%x: tensor<4x8xbf16> {nn.name = "x"}) -> (tensor<4x8xbf16> {nn.name = "y"}, tensor<4x8xbf16> {nn.name = "z"}) {
  %w = nn.read @w : tensor<4x8xf32>
  %v = nn.read @v : tensor<4x8xf32>
  %c = nn.cast %w : tensor<4x8xf32> to tensor<4x8xbf16>
  %d = nn.cast %v : tensor<4x8xf32> to tensor<4x8xbf16>
  %g:2 = fsdp.all_gather %c, %d on @mesh["dp"] dim 0 {fsdp.origin = #fsdp.origin<"fwd layers.0 all_gather">, fsdp.parameters = [@w, @v]} : tensor<4x8xbf16>, tensor<4x8xbf16> -> tensor<8x8xbf16>, tensor<8x8xbf16>
  %a, %m = nn.fusion (%x) : (tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<4x8xf32>) {
  ^bb0(%i: tensor<4x8xbf16>):
    %s = nn.add %i, %i {fsdp.origin = #fsdp.origin<"fwd layers.0 add">} : tensor<4x8xbf16>
    %t = nn.mul %s, %i {fsdp.origin = #fsdp.origin<"fwd layers.0 mul">} : tensor<4x8xbf16>
    %u = nn.cast %t : tensor<4x8xbf16> to tensor<4x8xf32>
    nn.yield %s, %u : tensor<4x8xbf16>, tensor<4x8xf32>
  }
  %n = nn.cast %m : tensor<4x8xf32> to tensor<4x8xbf16>
  %y = nn.linear %a, %g#0 {fsdp.origin = #fsdp.origin<"fwd layers.0 linear">} : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %z = nn.linear %n, %g#1 {fsdp.origin = #fsdp.origin<"fwd layers.0 linear#2">} : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  return %y, %z : tensor<4x8xbf16>, tensor<4x8xbf16>
}

// -----

// Parameters that a program reads below each other lie so: nothing is copied. @q
// has 128 bytes, which is what ranges are aligned to. The program that reads one of
// them alone has no use for the others.
// CHECK-LABEL: exec.program @train
// CHECK: %q = exec.get @q adjacent [@k, @v] : memref<72xf32>
// CHECK: %[[K:.*]] = exec.view %q[32] : memref<72xf32> to memref<4x8xf32>
// CHECK-NOT: exec.copy
// CHECK: %[[ALL:.*]] = exec.view %q[0] : memref<72xf32> to memref<9x8xf32>
// CHECK: exec.gemm on compute(%x, %[[ALL]] :
// CHECK-NOT: exec.copy
// CHECK: exec.launch @{{.*}} on compute(%[[K]] :
// CHECK-LABEL: exec.program @evaluate
// CHECK: exec.get @k : memref<4x8xf32>
nn.parameter @q : tensor<4x8xf32> init #nn.zeros
nn.parameter @k : tensor<4x8xf32> init #nn.zeros
nn.parameter @v : tensor<1x8xf32> init #nn.zeros
func.func @train(%x: tensor<2x8xf32> {nn.name = "x"}) -> (tensor<2x9xf32> {nn.name = "y"}, tensor<4x8xf32> {nn.name = "z"}) {
  %q = nn.read @q : tensor<4x8xf32>
  %k = nn.read @k : tensor<4x8xf32>
  %v = nn.read @v : tensor<1x8xf32>
  %w = nn.concat %q, %k, %v dim 0 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<1x8xf32> to tensor<9x8xf32>
  %y = nn.linear %x, %w : tensor<2x8xf32>, tensor<9x8xf32> -> tensor<2x9xf32>
  %z = nn.neg %k : tensor<4x8xf32>
  return %y, %z : tensor<2x9xf32>, tensor<4x8xf32>
}
func.func @evaluate() -> (tensor<4x8xf32> {nn.name = "z"}) {
  %k = nn.read @k : tensor<4x8xf32>
  %z = nn.neg %k : tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// -----

// Parts are copied where they cannot lie so: one after 120 bytes, one that is there
// twice, one that lies in another group already, a buffer after a parameter, one
// that changes before its last use, and those of which others than products read
// a part, which may lie in both.
// CHECK-LABEL: exec.program @apart
// CHECK-NOT: adjacent
// CHECK-COUNT-2: exec.copy on
// CHECK-NOT: exec.copy
// CHECK-LABEL: exec.program @twice
// CHECK-NOT: adjacent
// CHECK-COUNT-2: exec.copy on
// CHECK-NOT: exec.copy
// CHECK-LABEL: exec.program @two_groups
// CHECK: exec.get @a adjacent [@b] : memref<64xf32>
// CHECK-NOT: adjacent
// CHECK-COUNT-2: exec.copy on
// CHECK-NOT: exec.copy
// CHECK-LABEL: exec.program @roles
// CHECK-NOT: adjacent
// CHECK-COUNT-2: exec.copy on
// CHECK-NOT: exec.copy
// CHECK-LABEL: exec.program @changed
// CHECK-NOT: adjacent
// CHECK-COUNT-3: exec.copy on
// CHECK-NOT: exec.copy
// CHECK-LABEL: exec.program @again
// CHECK: exec.get @c adjacent [@d] : memref<64xf32>
// CHECK-NOT: exec.copy
// CHECK-LABEL: exec.program @part_of_both
// CHECK-NOT: adjacent
// CHECK-COUNT-3: exec.copy on
// CHECK-NOT: exec.copy
// CHECK-LABEL: exec.program @added
// CHECK-NOT: adjacent
// CHECK-COUNT-2: exec.copy on
// CHECK-NOT: exec.copy
nn.parameter @s : tensor<5x8xf32> init #nn.zeros
nn.parameter @a : tensor<4x8xf32> init #nn.zeros
nn.parameter @b : tensor<4x8xf32> init #nn.zeros
nn.buffer @c : tensor<4x8xf32> init #nn.zeros
nn.buffer @d : tensor<4x8xf32> init #nn.zeros
nn.buffer @e : tensor<8x8xf32> init #nn.zeros
func.func @apart(%x: tensor<2x8xf32> {nn.name = "x"}) -> (tensor<2x9xf32> {nn.name = "y0"}) {
  %s = nn.read @s : tensor<5x8xf32>
  %a = nn.read @a : tensor<4x8xf32>
  %w = nn.concat %s, %a dim 0 : tensor<5x8xf32>, tensor<4x8xf32> to tensor<9x8xf32>
  %y = nn.linear %x, %w : tensor<2x8xf32>, tensor<9x8xf32> -> tensor<2x9xf32>
  return %y : tensor<2x9xf32>
}
func.func @twice(%x: tensor<2x8xf32> {nn.name = "x"}) -> (tensor<2x8xf32> {nn.name = "y1"}) {
  %a = nn.read @a : tensor<4x8xf32>
  %w = nn.concat %a, %a dim 0 : tensor<4x8xf32>, tensor<4x8xf32> to tensor<8x8xf32>
  %y = nn.linear %x, %w : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}
func.func @two_groups(%x: tensor<2x8xf32> {nn.name = "x"}) -> (tensor<2x8xf32> {nn.name = "y2"}, tensor<2x8xf32> {nn.name = "y3"}) {
  %a = nn.read @a : tensor<4x8xf32>
  %b = nn.read @b : tensor<4x8xf32>
  %v = nn.concat %a, %b dim 0 : tensor<4x8xf32>, tensor<4x8xf32> to tensor<8x8xf32>
  %w = nn.concat %b, %a dim 0 : tensor<4x8xf32>, tensor<4x8xf32> to tensor<8x8xf32>
  %y = nn.linear %x, %v : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  %z = nn.linear %x, %w : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  return %y, %z : tensor<2x8xf32>, tensor<2x8xf32>
}
func.func @roles(%x: tensor<2x8xf32> {nn.name = "x"}) -> (tensor<2x8xf32> {nn.name = "y4"}) {
  %s = nn.read @b : tensor<4x8xf32>
  %c = nn.read @c : tensor<4x8xf32>
  %w = nn.concat %s, %c dim 0 : tensor<4x8xf32>, tensor<4x8xf32> to tensor<8x8xf32>
  %y = nn.linear %x, %w : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}
func.func @changed(%x: tensor<2x8xf32> {nn.name = "x"}, %n: tensor<4x8xf32> {nn.name = "n"}) -> (tensor<2x8xf32> {nn.name = "y5"}) {
  %c = nn.read @c : tensor<4x8xf32>
  %d = nn.read @d : tensor<4x8xf32>
  %w = nn.concat %c, %d dim 0 : tensor<4x8xf32>, tensor<4x8xf32> to tensor<8x8xf32>
  nn.write @c, %n : tensor<4x8xf32>
  %y = nn.linear %x, %w : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}
func.func @again(%x: tensor<2x8xf32> {nn.name = "x"}) -> (tensor<2x8xf32> {nn.name = "y6"}) {
  %c = nn.read @c : tensor<4x8xf32>
  %d = nn.read @d : tensor<4x8xf32>
  %c2, %d2 = nn.recompute_from %c, %d : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>, tensor<4x8xf32>
  %w = nn.concat %c2, %d2 dim 0 : tensor<4x8xf32>, tensor<4x8xf32> to tensor<8x8xf32>
  %w2 = nn.recompute_from %w : tensor<8x8xf32> -> tensor<8x8xf32>
  %y = nn.linear %x, %w2 : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}
func.func @part_of_both() -> (tensor<4x8xf32> {nn.name = "y7"}) {
  %c = nn.read @c : tensor<4x8xf32>
  %d = nn.read @d : tensor<4x8xf32>
  %w = nn.concat %c, %d dim 0 : tensor<4x8xf32>, tensor<4x8xf32> to tensor<8x8xf32>
  %p = nn.slice %w [2, 0] : tensor<8x8xf32> to tensor<4x8xf32>
  %y = nn.neg %p : tensor<4x8xf32>
  nn.write @c, %p : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
func.func @added(%n: tensor<4x8xf32> {nn.name = "n"}) {
  %c = nn.read @c : tensor<4x8xf32>
  %d = nn.read @d : tensor<4x8xf32>
  %w = nn.concat %c, %d dim 0 : tensor<4x8xf32>, tensor<4x8xf32> to tensor<8x8xf32>
  nn.accumulate @e, %w : tensor<8x8xf32>
  nn.accumulate @c, %n : tensor<4x8xf32>
  return
}
