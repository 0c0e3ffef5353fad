// Two blocks between a table and a head, on two ranks, as fsdp-expand leaves such
// a program: what the tests of the plan schedule.
fsdp.mesh @mesh ["dp_shard" = 2]
nn.parameter @tok.weight : tensor<16x8xf32> init #nn.zeros
nn.parameter @layers.0.w1.weight : tensor<8x8xf32> init #nn.zeros
nn.parameter @layers.0.w2.weight : tensor<8x8xf32> init #nn.zeros
nn.parameter @layers.1.w1.weight : tensor<8x8xf32> init #nn.zeros
nn.parameter @layers.1.w2.weight : tensor<8x8xf32> init #nn.zeros
nn.parameter @output.weight : tensor<8x8xf32> init #nn.zeros
func.func @train(%t: tensor<2xi32> {nn.name = "t"}) -> (tensor<f32> {nn.name = "loss"}) {
  %st = nn.read @tok.weight : tensor<16x8xf32>
  %pt = nn.slice %st [0, 0] : tensor<16x8xf32> to tensor<8x8xf32>
  %wt = fsdp.all_gather %pt on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@tok.weight], serves = #fsdp.origin<all "fwd tok">} : tensor<8x8xf32> -> tensor<16x8xf32>
  %x0 = nn.embedding %t, %wt {nn.module = "tok"} : tensor<2xi32>, tensor<16x8xf32> -> tensor<2x8xf32>
  %s01 = nn.read @layers.0.w1.weight : tensor<8x8xf32>
  %p01 = nn.slice %s01 [0, 0] : tensor<8x8xf32> to tensor<4x8xf32>
  %w01 = fsdp.all_gather %p01 on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@layers.0.w1.weight], serves = #fsdp.origin<all "fwd layers.0.w1">} : tensor<4x8xf32> -> tensor<8x8xf32>
  %s02 = nn.read @layers.0.w2.weight : tensor<8x8xf32>
  %p02 = nn.slice %s02 [0, 0] : tensor<8x8xf32> to tensor<4x8xf32>
  %w02 = fsdp.all_gather %p02 on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@layers.0.w2.weight], serves = #fsdp.origin<all "fwd layers.0.w2">} : tensor<4x8xf32> -> tensor<8x8xf32>
  %h0 = nn.linear %x0, %w01 {nn.module = "layers.0.w1"} : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  %a0 = nn.silu %h0 {nn.module = "layers.0"} : tensor<2x8xf32>
  %m0 = nn.mul %a0, %x0 {nn.module = "layers.0"} : tensor<2x8xf32>
  %x1 = nn.linear %m0, %w02 {nn.module = "layers.0.w2"} : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  %s11 = nn.read @layers.1.w1.weight : tensor<8x8xf32>
  %p11 = nn.slice %s11 [0, 0] : tensor<8x8xf32> to tensor<4x8xf32>
  %w11 = fsdp.all_gather %p11 on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@layers.1.w1.weight], serves = #fsdp.origin<all "fwd layers.1.w1">} : tensor<4x8xf32> -> tensor<8x8xf32>
  %s12 = nn.read @layers.1.w2.weight : tensor<8x8xf32>
  %p12 = nn.slice %s12 [0, 0] : tensor<8x8xf32> to tensor<4x8xf32>
  %w12 = fsdp.all_gather %p12 on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@layers.1.w2.weight], serves = #fsdp.origin<all "fwd layers.1.w2">} : tensor<4x8xf32> -> tensor<8x8xf32>
  %h1 = nn.linear %x1, %w11 {nn.module = "layers.1.w1"} : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  %a1 = nn.silu %h1 {nn.module = "layers.1"} : tensor<2x8xf32>
  %m1 = nn.mul %a1, %x1 {nn.module = "layers.1"} : tensor<2x8xf32>
  %x2 = nn.linear %m1, %w12 {nn.module = "layers.1.w2"} : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  %so = nn.read @output.weight : tensor<8x8xf32>
  %po = nn.slice %so [0, 0] : tensor<8x8xf32> to tensor<4x8xf32>
  %wo = fsdp.all_gather %po on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@output.weight], serves = #fsdp.origin<all "fwd output">} : tensor<4x8xf32> -> tensor<8x8xf32>
  %y = nn.linear %x2, %wo {nn.module = "output"} : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  %loss = nn.sum %y [0, 1] {nn.module = "loss"} : tensor<2x8xf32> to tensor<f32>
  %one = nn.seed %loss : tensor<f32>
  %dy = nn.broadcast %one [] : tensor<f32> to tensor<2x8xf32>
  %dx2 = nn.linear_input_grad %dy, %wo {nn.module = "output"} : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  %go = nn.linear_weight_grad %dy, %x2 {nn.module = "output"} : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<8x8xf32>
  %ro = fsdp.reduce_scatter sum %go on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@output.weight], serves = #fsdp.origin<all "bwd output">} : tensor<8x8xf32> -> tensor<4x8xf32>
  %dm1 = nn.linear_input_grad %dx2, %w12 {nn.module = "layers.1.w2"} : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  %g12 = nn.linear_weight_grad %dx2, %m1 {nn.module = "layers.1.w2"} : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<8x8xf32>
  %r12 = fsdp.reduce_scatter sum %g12 on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@layers.1.w2.weight], serves = #fsdp.origin<all "bwd layers.1.w2">} : tensor<8x8xf32> -> tensor<4x8xf32>
  %da1 = nn.mul %dm1, %x1 {nn.module = "layers.1"} : tensor<2x8xf32>
  %dz1 = nn.mul %dm1, %a1 {nn.module = "layers.1"} : tensor<2x8xf32>
  %dh1 = nn.silu_grad %h1, %da1 {nn.module = "layers.1"} : tensor<2x8xf32>
  %di1 = nn.linear_input_grad %dh1, %w11 {nn.module = "layers.1.w1"} : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  %g11 = nn.linear_weight_grad %dh1, %x1 {nn.module = "layers.1.w1"} : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<8x8xf32>
  %r11 = fsdp.reduce_scatter sum %g11 on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@layers.1.w1.weight], serves = #fsdp.origin<all "bwd layers.1.w1">} : tensor<8x8xf32> -> tensor<4x8xf32>
  %dx1 = nn.add %di1, %dz1 {nn.module = "layers.1"} : tensor<2x8xf32>
  %dm0 = nn.linear_input_grad %dx1, %w02 {nn.module = "layers.0.w2"} : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  %g02 = nn.linear_weight_grad %dx1, %m0 {nn.module = "layers.0.w2"} : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<8x8xf32>
  %r02 = fsdp.reduce_scatter sum %g02 on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@layers.0.w2.weight], serves = #fsdp.origin<all "bwd layers.0.w2">} : tensor<8x8xf32> -> tensor<4x8xf32>
  %da0 = nn.mul %dm0, %x0 {nn.module = "layers.0"} : tensor<2x8xf32>
  %dz0 = nn.mul %dm0, %a0 {nn.module = "layers.0"} : tensor<2x8xf32>
  %dh0 = nn.silu_grad %h0, %da0 {nn.module = "layers.0"} : tensor<2x8xf32>
  %di0 = nn.linear_input_grad %dh0, %w01 {nn.module = "layers.0.w1"} : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  %g01 = nn.linear_weight_grad %dh0, %x0 {nn.module = "layers.0.w1"} : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<8x8xf32>
  %r01 = fsdp.reduce_scatter sum %g01 on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@layers.0.w1.weight], serves = #fsdp.origin<all "bwd layers.0.w1">} : tensor<8x8xf32> -> tensor<4x8xf32>
  %dx0 = nn.add %di0, %dz0 {nn.module = "layers.0"} : tensor<2x8xf32>
  %gt = nn.embedding_grad %t, %dx0 {nn.module = "tok"} : tensor<2xi32>, tensor<2x8xf32> -> tensor<16x8xf32>
  %rt = fsdp.reduce_scatter sum %gt on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@tok.weight], serves = #fsdp.origin<all "bwd tok">} : tensor<16x8xf32> -> tensor<8x8xf32>
  %ft = nn.pad %rt [0, 0] : tensor<8x8xf32> to tensor<16x8xf32>
  nn.gradient @tok.weight, %ft : tensor<16x8xf32>
  %f01 = nn.pad %r01 [0, 0] : tensor<4x8xf32> to tensor<8x8xf32>
  nn.gradient @layers.0.w1.weight, %f01 : tensor<8x8xf32>
  %f02 = nn.pad %r02 [0, 0] : tensor<4x8xf32> to tensor<8x8xf32>
  nn.gradient @layers.0.w2.weight, %f02 : tensor<8x8xf32>
  %f11 = nn.pad %r11 [0, 0] : tensor<4x8xf32> to tensor<8x8xf32>
  nn.gradient @layers.1.w1.weight, %f11 : tensor<8x8xf32>
  %f12 = nn.pad %r12 [0, 0] : tensor<4x8xf32> to tensor<8x8xf32>
  nn.gradient @layers.1.w2.weight, %f12 : tensor<8x8xf32>
  %fo = nn.pad %ro [0, 0] : tensor<4x8xf32> to tensor<8x8xf32>
  nn.gradient @output.weight, %fo : tensor<8x8xf32>
  return %loss : tensor<f32>
}
