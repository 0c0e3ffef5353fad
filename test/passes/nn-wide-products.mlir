// RUN: fsdp-opt %s --nn-wide-products --verify-roundtrip | FileCheck %s
// RUN: sed "/^.. Left as/,$d" %s | fsdp-opt --nn-wide-products --exec-lower="target=test" | FileCheck %s --check-prefix=EXEC
// Products of one input become one: those of a gated feed-forward, transposed,
// and those of queries, keys and values.

// A batch of 2 x 16 rows of 32 columns, 64 wide between. Parts of the product
// are slices of it, and the gradients of both parts are one product each.
// CHECK-LABEL: func.func @gate
func.func @gate(%x: tensor<2x16x32xf32> {nn.name = "x"}, %w1: tensor<64x32xf32> {nn.name = "w1"},
                %w2: tensor<32x64xf32> {nn.name = "w2"}, %w3: tensor<64x32xf32> {nn.name = "w3"},
                %dy: tensor<2x16x32xf32> {nn.name = "dy"})
    -> (tensor<2x16x32xf32> {nn.name = "y"}, tensor<2x16x32xf32> {nn.name = "dx"}, tensor<64x32xf32> {nn.name = "dw1"},
        tensor<32x64xf32> {nn.name = "dw2"}, tensor<64x32xf32> {nn.name = "dw3"}) attributes {fsdp.local} {
  // CHECK-SAME: %[[X:arg0]]: tensor<2x16x32xf32>
  // CHECK: %[[W1:.*]] = nn.neg %arg1
  // CHECK: %[[W3:.*]] = nn.neg %arg3
  // CHECK: %[[W:.*]] = nn.concat %[[W1]], %[[W3]] dim 0 : tensor<64x32xf32>, tensor<64x32xf32> to tensor<128x32xf32>
  // CHECK: %[[ROWS:.*]] = nn.reshape %[[X]] : tensor<2x16x32xf32> to tensor<32x32xf32>
  // CHECK: %[[P:.*]] = nn.matmul %[[W]], %[[ROWS]] {transpose_rhs} : tensor<128x32xf32>, tensor<32x32xf32> -> tensor<128x32xf32>
  // CHECK: %[[G:.*]] = nn.slice %[[P]] [0, 0] : tensor<128x32xf32> to tensor<64x32xf32>
  // CHECK: %[[U:.*]] = nn.slice %[[P]] [64, 0] : tensor<128x32xf32> to tensor<64x32xf32>
  // CHECK: %[[S:.*]] = nn.silu %[[G]] : tensor<64x32xf32>
  // CHECK: %[[H:.*]] = nn.mul %[[S]], %[[U]] : tensor<64x32xf32>
  // CHECK: nn.matmul %[[H]], %arg2 {transpose_lhs, transpose_rhs} : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<32x32xf32>
  %v1 = nn.neg %w1 : tensor<64x32xf32>
  %v3 = nn.neg %w3 : tensor<64x32xf32>
  %g = nn.linear %x, %v1 : tensor<2x16x32xf32>, tensor<64x32xf32> -> tensor<2x16x64xf32>
  %s = nn.silu %g : tensor<2x16x64xf32>
  %u = nn.linear %x, %v3 : tensor<2x16x32xf32>, tensor<64x32xf32> -> tensor<2x16x64xf32>
  %h = nn.mul %s, %u : tensor<2x16x64xf32>
  %y = nn.linear %h, %w2 : tensor<2x16x64xf32>, tensor<32x64xf32> -> tensor<2x16x32xf32>
  // CHECK: %[[DH:.*]] = nn.matmul %arg2, %{{.*}} {transpose_lhs, transpose_rhs} : tensor<32x64xf32>, tensor<32x32xf32> -> tensor<64x32xf32>
  // CHECK: nn.matmul %{{.*}}, %[[H]] {transpose_lhs, transpose_rhs} : tensor<32x32xf32>, tensor<64x32xf32> -> tensor<32x64xf32>
  // CHECK: %[[DU:.*]] = nn.mul %[[DH]], %[[S]]
  // CHECK: %[[DG:.*]] = nn.silu_grad %[[G]]
  // CHECK: %[[D:.*]] = nn.concat %[[DG]], %[[DU]] dim 0 : tensor<64x32xf32>, tensor<64x32xf32> to tensor<128x32xf32>
  // CHECK: %[[DX:.*]] = nn.matmul %[[D]], %[[W]] {transpose_lhs}
  // CHECK: %[[DW:.*]] = nn.matmul %[[D]], %{{.*}} : tensor<128x32xf32>, tensor<32x32xf32> -> tensor<128x32xf32>
  // CHECK: nn.reshape %[[DX]] : tensor<32x32xf32> to tensor<2x16x32xf32>
  // CHECK: nn.slice %[[DW]] [0, 0] : tensor<128x32xf32> to tensor<64x32xf32>
  // CHECK: nn.slice %[[DW]] [64, 0] : tensor<128x32xf32> to tensor<64x32xf32>
  // CHECK-NOT: nn.linear
  // CHECK: return
  %dh = nn.linear_input_grad %dy, %w2 : tensor<2x16x32xf32>, tensor<32x64xf32> -> tensor<2x16x64xf32>
  %dw2 = nn.linear_weight_grad %dy, %h : tensor<2x16x32xf32>, tensor<2x16x64xf32> -> tensor<32x64xf32>
  %ds = nn.mul %dh, %u : tensor<2x16x64xf32>
  %du = nn.mul %dh, %s : tensor<2x16x64xf32>
  %dx3 = nn.linear_input_grad %du, %v3 : tensor<2x16x64xf32>, tensor<64x32xf32> -> tensor<2x16x32xf32>
  %dv3 = nn.linear_weight_grad %du, %x : tensor<2x16x64xf32>, tensor<2x16x32xf32> -> tensor<64x32xf32>
  %dw3 = nn.neg %dv3 : tensor<64x32xf32>
  %dg = nn.silu_grad %g, %ds : tensor<2x16x64xf32>
  %dx1 = nn.linear_input_grad %dg, %v1 : tensor<2x16x64xf32>, tensor<64x32xf32> -> tensor<2x16x32xf32>
  %dv1 = nn.linear_weight_grad %dg, %x : tensor<2x16x64xf32>, tensor<2x16x32xf32> -> tensor<64x32xf32>
  %dw1 = nn.neg %dv1 : tensor<64x32xf32>
  %dx = nn.add %dx3, %dx1 : tensor<2x16x32xf32>
  return %y, %dx, %dw1, %dw2, %dw3 : tensor<2x16x32xf32>, tensor<2x16x32xf32>, tensor<64x32xf32>, tensor<32x64xf32>, tensor<64x32xf32>
}

// Nothing is copied: weights and gradients are produced side by side, and parts
// are read where they lie.
// EXEC-LABEL: exec.program @gate
// EXEC-NOT: exec.copy
// EXEC: exec.launch @neg on compute(%w1 : {{.*}}) outs(%[[LOW:.*]] :
// EXEC: exec.launch @neg on compute(%w3 : {{.*}}) outs(%[[HIGH:.*]] :
// EXEC-COUNT-6: exec.gemm
// EXEC-NOT: exec.gemm
// EXEC-NOT: exec.copy

// Four query heads and two of keys and values.
// CHECK-LABEL: func.func @heads
// EXEC-LABEL: exec.program @heads
func.func @heads(%x: tensor<1x8x32xf32> {nn.name = "input"}, %wq: tensor<64x32xf32> {nn.name = "wq"},
                 %wk: tensor<32x32xf32> {nn.name = "wk"}, %wv: tensor<32x32xf32> {nn.name = "wv"},
                 %t: tensor<8x8x2xf32> {nn.name = "t"}, %do: tensor<1x8x4x16xf32> {nn.name = "do"})
    -> (tensor<1x8x4x16xf32> {nn.name = "o"}, tensor<1x8x32xf32> {nn.name = "dinput"}, tensor<64x32xf32> {nn.name = "dwq"},
        tensor<32x32xf32> {nn.name = "dwk"}, tensor<32x32xf32> {nn.name = "dwv"}) attributes {fsdp.local} {
  // CHECK: %[[W:.*]] = nn.concat %arg1, %arg2, %arg3 dim 0
  // CHECK: %[[P:.*]] = nn.linear %arg0, %[[W]] : tensor<1x8x32xf32>, tensor<128x32xf32> -> tensor<1x8x128xf32>
  // CHECK: %[[ALL:.*]] = nn.reshape %[[P]] : tensor<1x8x128xf32> to tensor<1x8x8x16xf32>
  // CHECK: %[[Q:.*]], %[[K:.*]], %[[V:.*]] = nn.split_heads halves %[[ALL]], %arg4
  // CHECK: nn.attention %[[Q]], %[[K]], %[[V]]
  // CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = nn.attention_grad
  // CHECK: nn.join_heads halves %[[DQ]], %[[DK]], %[[DV]], %arg4
  // CHECK: %[[D:.*]] = nn.reshape
  // The weights are arguments, so they are copied once more: a copy lives for
  // one product.
  // CHECK: %[[AGAIN:.*]] = nn.concat %arg1, %arg2, %arg3 dim 0
  // CHECK: nn.linear_input_grad %[[D]], %[[AGAIN]]
  // CHECK: %[[DW:.*]] = nn.linear_weight_grad %[[D]], %arg0
  // CHECK: nn.slice %[[DW]] [0, 0] : tensor<128x32xf32> to tensor<64x32xf32>
  // CHECK: nn.slice %[[DW]] [64, 0] : tensor<128x32xf32> to tensor<32x32xf32>
  // CHECK: nn.slice %[[DW]] [96, 0] : tensor<128x32xf32> to tensor<32x32xf32>
  // CHECK-NOT: nn.rotary
  // CHECK: return
  // EXEC: exec.split_heads
  // EXEC: exec.join_heads
  %q0 = nn.linear %x, %wq : tensor<1x8x32xf32>, tensor<64x32xf32> -> tensor<1x8x64xf32>
  %q1 = nn.reshape %q0 : tensor<1x8x64xf32> to tensor<1x8x4x16xf32>
  %q = nn.rotary halves %q1, %t : tensor<1x8x4x16xf32>, tensor<8x8x2xf32>
  %k0 = nn.linear %x, %wk : tensor<1x8x32xf32>, tensor<32x32xf32> -> tensor<1x8x32xf32>
  %k1 = nn.reshape %k0 : tensor<1x8x32xf32> to tensor<1x8x2x16xf32>
  %k = nn.rotary halves %k1, %t : tensor<1x8x2x16xf32>, tensor<8x8x2xf32>
  %v0 = nn.linear %x, %wv : tensor<1x8x32xf32>, tensor<32x32xf32> -> tensor<1x8x32xf32>
  %v = nn.reshape %v0 : tensor<1x8x32xf32> to tensor<1x8x2x16xf32>
  %o, %lse = nn.attention %q, %k, %v scale 0.25 {causal} : tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x4x8xf32>
  %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %o, %lse, %do scale 0.25 {causal} : tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x4x8xf32>
  %dv0 = nn.reshape %dv : tensor<1x8x2x16xf32> to tensor<1x8x32xf32>
  %dxv = nn.linear_input_grad %dv0, %wv : tensor<1x8x32xf32>, tensor<32x32xf32> -> tensor<1x8x32xf32>
  %dwv = nn.linear_weight_grad %dv0, %x : tensor<1x8x32xf32>, tensor<1x8x32xf32> -> tensor<32x32xf32>
  %dk1 = nn.rotary halves %dk, %t {inverse} : tensor<1x8x2x16xf32>, tensor<8x8x2xf32>
  %dk0 = nn.reshape %dk1 : tensor<1x8x2x16xf32> to tensor<1x8x32xf32>
  %dxk = nn.linear_input_grad %dk0, %wk : tensor<1x8x32xf32>, tensor<32x32xf32> -> tensor<1x8x32xf32>
  %dwk = nn.linear_weight_grad %dk0, %x : tensor<1x8x32xf32>, tensor<1x8x32xf32> -> tensor<32x32xf32>
  %dxvk = nn.add %dxv, %dxk : tensor<1x8x32xf32>
  %dq1 = nn.rotary halves %dq, %t {inverse} : tensor<1x8x4x16xf32>, tensor<8x8x2xf32>
  %dq0 = nn.reshape %dq1 : tensor<1x8x4x16xf32> to tensor<1x8x64xf32>
  %dxq = nn.linear_input_grad %dq0, %wq : tensor<1x8x64xf32>, tensor<64x32xf32> -> tensor<1x8x32xf32>
  %dwq = nn.linear_weight_grad %dq0, %x : tensor<1x8x64xf32>, tensor<1x8x32xf32> -> tensor<64x32xf32>
  %dx = nn.add %dxvk, %dxq : tensor<1x8x32xf32>
  return %o, %dx, %dwq, %dwk, %dwv : tensor<1x8x4x16xf32>, tensor<1x8x32xf32>, tensor<64x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>
}

// Left as they are: a product with a bias; parts that a norm reads, or that
// leave the program; one product of several that has a gradient; a product
// whose weight depends on the other; gradients of one cotangent, which would
// be in no place; one weight for two products; two gradients of one weight.
// CHECK-LABEL: func.func @bias
// CHECK-NOT: nn.concat
// CHECK: return
func.func @bias(%x: tensor<4x8xf32>, %w1: tensor<8x8xf32>, %b: tensor<8xf32>, %w3: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %g = nn.linear %x, %w1 bias %b : tensor<4x8xf32>, tensor<8x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %u = nn.linear %x, %w3 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %h = nn.mul %g, %u : tensor<4x8xf32>
  %y = nn.linear %h, %w3 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @norm
// CHECK-NOT: nn.concat
// CHECK: return
func.func @norm(%x: tensor<4x8xf32>, %w1: tensor<8x8xf32>, %n: tensor<8xf32>, %w3: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %g = nn.linear %x, %w1 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %u = nn.linear %x, %w3 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %m, %rstd = nn.rms_norm %u, %n eps 1.0e-05 : tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>
  %h = nn.mul %g, %m : tensor<4x8xf32>
  %y = nn.linear %h, %w3 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @leaves
// CHECK-NOT: nn.concat
// CHECK: return
func.func @leaves(%x: tensor<4x8xf32>, %w1: tensor<8x8xf32>, %w3: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %g = nn.linear %x, %w1 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %u = nn.linear %x, %w3 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %h = nn.mul %g, %u : tensor<4x8xf32>
  return %h : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @one_gradient
// CHECK-NOT: nn.concat
// CHECK: return
func.func @one_gradient(%x: tensor<4x8xf32>, %w1: tensor<8x8xf32>, %w2: tensor<8x8xf32>, %w3: tensor<8x8xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %g = nn.linear %x, %w1 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %u = nn.linear %x, %w3 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %h = nn.mul %g, %u : tensor<4x8xf32>
  %y = nn.linear %h, %w2 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %dx = nn.linear_input_grad %h, %w1 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  return %y, %dx : tensor<4x8xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: func.func @dependent
// CHECK-NOT: nn.concat
// CHECK: return
func.func @dependent(%x: tensor<8x8xf32>, %w1: tensor<8x8xf32>, %w2: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %g = nn.linear %x, %w1 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %w3 = nn.linear %g, %w2 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %u = nn.linear %x, %w3 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %h = nn.mul %g, %u : tensor<8x8xf32>
  %y = nn.linear %h, %w2 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @sum
// CHECK-NOT: nn.concat
// CHECK: return
func.func @sum(%x: tensor<8x8xf32>, %w1: tensor<8x8xf32>, %w2: tensor<8x8xf32>, %w3: tensor<8x8xf32>, %dy: tensor<8x8xf32>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %g = nn.linear %x, %w1 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %u = nn.linear %x, %w3 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %h = nn.add %g, %u : tensor<8x8xf32>
  %y = nn.linear %h, %w2 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %dh = nn.linear_input_grad %dy, %w2 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %dx1 = nn.linear_input_grad %dh, %w1 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %dx3 = nn.linear_input_grad %dh, %w3 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %dx = nn.add %dx1, %dx3 : tensor<8x8xf32>
  return %y, %dx : tensor<8x8xf32>, tensor<8x8xf32>
}

// CHECK-LABEL: func.func @foreign_cotangent
// CHECK-NOT: nn.concat
// CHECK: return
func.func @foreign_cotangent(%x: tensor<8x8xf32>, %w1: tensor<8x8xf32>, %w2: tensor<8x8xf32>, %w3: tensor<8x8xf32>, %dg: tensor<8x8xf32>, %dy: tensor<8x8xf32>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %g = nn.linear %x, %w1 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %u = nn.linear %x, %w3 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %h = nn.mul %g, %u : tensor<8x8xf32>
  %y = nn.linear %h, %w2 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %dh = nn.linear_input_grad %dy, %w2 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %du = nn.mul %dh, %g : tensor<8x8xf32>
  %dx1 = nn.linear_input_grad %dg, %w1 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %dx3 = nn.linear_input_grad %du, %w3 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %dx = nn.add %dx1, %dx3 : tensor<8x8xf32>
  return %y, %dx : tensor<8x8xf32>, tensor<8x8xf32>
}

// CHECK-LABEL: func.func @one_weight
// CHECK-NOT: nn.concat
// CHECK: return
func.func @one_weight(%x: tensor<8x8xf32>, %w1: tensor<8x8xf32>, %w2: tensor<8x8xf32>, %w3: tensor<8x8xf32>, %dg: tensor<8x8xf32>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %g = nn.linear %x, %w1 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %g2 = nn.linear %x, %w1 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %h = nn.mul %g, %g2 : tensor<8x8xf32>
  %y = nn.linear %h, %w2 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %s = nn.silu %dg : tensor<8x8xf32>
  %dx = nn.linear_input_grad %s, %w1 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %y, %dx : tensor<8x8xf32>, tensor<8x8xf32>
}

// CHECK-LABEL: func.func @two_gradients
// CHECK-NOT: nn.concat
// CHECK: return
func.func @two_gradients(%x: tensor<8x8xf32>, %w1: tensor<8x8xf32>, %w2: tensor<8x8xf32>, %w3: tensor<8x8xf32>, %dy: tensor<8x8xf32>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %g = nn.linear %x, %w1 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %u = nn.linear %x, %w3 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %h = nn.mul %g, %u : tensor<8x8xf32>
  %y = nn.linear %h, %w2 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %dh = nn.linear_input_grad %dy, %w2 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %dg = nn.mul %dh, %u : tensor<8x8xf32>
  %du = nn.mul %dh, %g : tensor<8x8xf32>
  %dw1 = nn.linear_weight_grad %dg, %x : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %dw1b = nn.linear_weight_grad %dg, %x : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %dx1 = nn.linear_input_grad %dg, %w1 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %dx3 = nn.linear_input_grad %du, %w3 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %dx = nn.add %dx1, %dx3 : tensor<8x8xf32>
  return %y, %dx, %dw1, %dw1b : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// Gates one after the other: the input of the second is the output of the
// first.
// CHECK-LABEL: func.func @chain
// CHECK-COUNT-2: nn.concat
// CHECK-NOT: nn.linear
// CHECK: return
func.func @chain(%x: tensor<4x8xf32>, %w1: tensor<8x8xf32>, %w2: tensor<8x8xf32>, %w3: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %g = nn.linear %x, %w1 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %u = nn.linear %x, %w3 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %h = nn.mul %g, %u : tensor<4x8xf32>
  %y = nn.linear %h, %w2 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %g2 = nn.linear %y, %w1 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %u2 = nn.linear %y, %w3 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %h2 = nn.mul %g2, %u2 : tensor<4x8xf32>
  %z = nn.linear %h2, %w2 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// Queries that a norm reads, or that another table rotates, stay.
// CHECK-LABEL: func.func @other_heads
// CHECK-NOT: nn.concat
// CHECK: return
func.func @other_heads(%x: tensor<1x8x16xf32>, %wq: tensor<16x16xf32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>,
                       %n: tensor<16xf32>, %t: tensor<8x8x2xf32>, %s: tensor<8x8x2xf32>)
    -> (tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>) {
  %q0 = nn.linear %x, %wq : tensor<1x8x16xf32>, tensor<16x16xf32> -> tensor<1x8x16xf32>
  %q1 = nn.reshape %q0 : tensor<1x8x16xf32> to tensor<1x8x1x16xf32>
  %m, %rstd = nn.rms_norm %q1, %n eps 1.0e-05 : tensor<1x8x1x16xf32>, tensor<16xf32>, tensor<1x8x1xf32>
  %q = nn.rotary halves %m, %t : tensor<1x8x1x16xf32>, tensor<8x8x2xf32>
  %k0 = nn.linear %x, %wk : tensor<1x8x16xf32>, tensor<16x16xf32> -> tensor<1x8x16xf32>
  %k1 = nn.reshape %k0 : tensor<1x8x16xf32> to tensor<1x8x1x16xf32>
  %k = nn.rotary halves %k1, %t : tensor<1x8x1x16xf32>, tensor<8x8x2xf32>
  %v0 = nn.linear %x, %wv : tensor<1x8x16xf32>, tensor<16x16xf32> -> tensor<1x8x16xf32>
  %v = nn.reshape %v0 : tensor<1x8x16xf32> to tensor<1x8x1x16xf32>
  %o, %lse = nn.attention %q, %k, %v scale 0.25 {causal} : tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>, tensor<1x1x8xf32>
  %p0 = nn.linear %x, %wv : tensor<1x8x16xf32>, tensor<16x16xf32> -> tensor<1x8x16xf32>
  %p1 = nn.reshape %p0 : tensor<1x8x16xf32> to tensor<1x8x1x16xf32>
  %p = nn.rotary halves %p1, %s : tensor<1x8x1x16xf32>, tensor<8x8x2xf32>
  %o2, %lse2 = nn.attention %p, %k, %v scale 0.25 {causal} : tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>, tensor<1x1x8xf32>
  return %o, %o2 : tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>
}

// A forward pass alone.
// CHECK-LABEL: func.func @forward_heads
// CHECK: nn.split_heads adjacent
// CHECK-NOT: nn.rotary
// CHECK: return
func.func @forward_heads(%x: tensor<1x8x16xf32>, %wq: tensor<16x16xf32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>, %t: tensor<8x8x2xf32>)
    -> tensor<1x8x1x16xf32> {
  %q0 = nn.linear %x, %wq : tensor<1x8x16xf32>, tensor<16x16xf32> -> tensor<1x8x16xf32>
  %q1 = nn.reshape %q0 : tensor<1x8x16xf32> to tensor<1x8x1x16xf32>
  %q = nn.rotary adjacent %q1, %t : tensor<1x8x1x16xf32>, tensor<8x8x2xf32>
  %k0 = nn.linear %x, %wk : tensor<1x8x16xf32>, tensor<16x16xf32> -> tensor<1x8x16xf32>
  %k1 = nn.reshape %k0 : tensor<1x8x16xf32> to tensor<1x8x1x16xf32>
  %k = nn.rotary adjacent %k1, %t : tensor<1x8x1x16xf32>, tensor<8x8x2xf32>
  %v0 = nn.linear %x, %wv : tensor<1x8x16xf32>, tensor<16x16xf32> -> tensor<1x8x16xf32>
  %v = nn.reshape %v0 : tensor<1x8x16xf32> to tensor<1x8x1x16xf32>
  %o, %lse = nn.attention %q, %k, %v scale 0.25 {causal} : tensor<1x8x1x16xf32>, tensor<1x8x1x16xf32>, tensor<1x1x8xf32>
  return %o : tensor<1x8x1x16xf32>
}
