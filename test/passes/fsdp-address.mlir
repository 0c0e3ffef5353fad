// RUN: fsdp-opt %s --fsdp-address | FileCheck %s
// RUN: fsdp-opt %s --fsdp-address --fsdp-address | FileCheck %s

// Collectives are called after the parameter they move, a bias by its own name;
// those of no parameter and ops that compute after their module, and at the root
// after nothing. Casts, moves, reads and constants have no address.
// CHECK-LABEL: func.func @train
// CHECK-NOT: fsdp.origin
// CHECK: fsdp.all_gather {{.*}}fsdp.origin = #fsdp.origin<"fwd layers.0.wq all_gather">
// CHECK-NEXT: fsdp.all_gather {{.*}}fsdp.origin = #fsdp.origin<"fwd layers.0.wq.bias all_gather">
// CHECK-NEXT: nn.cast %{{[^"]*}} :
// CHECK-NEXT: nn.linear {{.*}}fsdp.origin = #fsdp.origin<"fwd layers.0.wq linear">
// CHECK-NEXT: nn.reshape %{{[^"]*}} :
// The second op of a name is numbered, as the second call of a module is.
// CHECK: nn.silu {{.*}}fsdp.origin = #fsdp.origin<"fwd layers.0 silu">
// CHECK-NEXT: nn.silu {{.*}}fsdp.origin = #fsdp.origin<"fwd layers.0 silu#2">
// CHECK-NEXT: nn.silu {{.*}}fsdp.origin = #fsdp.origin<"fwd layers.0#2 silu">
// CHECK-NEXT: fsdp.all_reduce {{.*}}fsdp.origin = #fsdp.origin<"fwd layers.0 all_reduce">
// CHECK-NEXT: nn.sum {{.*}}fsdp.origin = #fsdp.origin<"fwd sum">
// CHECK-NEXT: nn.seed %{{[^"]*}} :
// CHECK: nn.silu_grad {{.*}}fsdp.origin = #fsdp.origin<"bwd layers.0 silu_grad">
// CHECK-NEXT: nn.linear_input_grad {{.*}}fsdp.origin = #fsdp.origin<"bwd layers.0.wq dx">
// CHECK-NEXT: nn.linear_weight_grad {{.*}}fsdp.origin = #fsdp.origin<"bwd layers.0.wq dw">
// CHECK-NEXT: fsdp.reduce_scatter {{.*}}fsdp.origin = #fsdp.origin<"bwd layers.0.wq reduce_scatter">
// The optimizer is a phase of its own.
// CHECK-NEXT: nn.abs_max {{.*}}fsdp.origin = #fsdp.origin<"update optimizer.gradient_maximum abs_max">
// CHECK-NEXT: nn.gradient
// CHECK-NOT: fsdp.origin
fsdp.mesh @mesh ["dp_shard" = 2]
nn.parameter @layers.0.wq.weight : tensor<8x8xf32> init #nn.zeros
nn.parameter @layers.0.wq.bias : tensor<8xf32> init #nn.zeros
func.func @train(%x: tensor<2x8xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  %s = nn.read @layers.0.wq.weight : tensor<8x8xf32>
  %sb = nn.read @layers.0.wq.bias : tensor<8xf32>
  %p = nn.slice %s [0, 0] : tensor<8x8xf32> to tensor<4x8xf32>
  %q = nn.slice %sb [0] : tensor<8xf32> to tensor<4xf32>
  %w = fsdp.all_gather %p on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@layers.0.wq.weight]} : tensor<4x8xf32> -> tensor<8x8xf32>
  %b = fsdp.all_gather %q on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@layers.0.wq.bias]} : tensor<4xf32> -> tensor<8xf32>
  %wc = nn.cast %w : tensor<8x8xf32> to tensor<8x8xf32>
  %h = nn.linear %x, %wc bias %b {nn.module = "layers.0.wq"} : tensor<2x8xf32>, tensor<8x8xf32>, tensor<8xf32> -> tensor<2x8xf32>
  %r = nn.reshape %h : tensor<2x8xf32> to tensor<16xf32>
  %r2 = nn.reshape %r : tensor<16xf32> to tensor<2x8xf32>
  %a = nn.silu %r2 {nn.module = "layers.0"} : tensor<2x8xf32>
  %a2 = nn.silu %a {nn.module = "layers.0"} : tensor<2x8xf32>
  %a3 = nn.silu %a2 {nn.module = "layers.0#2"} : tensor<2x8xf32>
  %y = fsdp.all_reduce sum %a3 on @mesh["dp_shard"] {nn.module = "layers.0"} : tensor<2x8xf32> -> tensor<2x8xf32>
  %loss = nn.sum %y [0, 1] : tensor<2x8xf32> to tensor<f32>
  %one = nn.seed %loss : tensor<f32>
  %d = nn.broadcast %one [] : tensor<f32> to tensor<2x8xf32>
  %d0 = nn.silu_grad %r2, %d {nn.module = "layers.0"} : tensor<2x8xf32>
  %dx = nn.linear_input_grad %d0, %wc {nn.module = "layers.0.wq"} : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  %dw = nn.linear_weight_grad %d0, %x {nn.module = "layers.0.wq"} : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<8x8xf32>
  %g = fsdp.reduce_scatter sum %dw on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@layers.0.wq.weight]} : tensor<8x8xf32> -> tensor<4x8xf32>
  %m = nn.abs_max %g {nn.module = "optimizer.gradient_maximum"} : tensor<4x8xf32> -> tensor<f32>
  nn.gradient @layers.0.wq.weight, %dw : tensor<8x8xf32>
  return %loss : tensor<f32>
}
