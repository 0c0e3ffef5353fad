// RUN: fsdp-opt %s --nn-accumulate="microbatches=4 keep-gathers=true" --verify-roundtrip | FileCheck %s

// A loss of several terms, each of which is a part of the mean, and a parameter
// that is gathered in two ways: each gather has a buffer.
// CHECK: nn.buffer @w.gathered : tensor<4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{"tp"}]>, nn.state_of = @w}
// CHECK: nn.buffer @w.gathered.2 : tensor<4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{}]>, nn.state_of = @w}
// CHECK-LABEL: func.func @gather
// CHECK: fsdp.redistribute %{{.*}} to <[{"tp"}]>
// CHECK-NEXT: nn.write @w.gathered,
// CHECK: fsdp.redistribute %{{.*}} to <[{}]>
// CHECK-NEXT: nn.write @w.gathered.2,
// CHECK-LABEL: func.func @accumulate
// CHECK: nn.read @w.gathered :
// CHECK: nn.read @w.gathered.2 :
// CHECK: nn.accumulate @loss_sum

fsdp.mesh @mesh ["dp_shard" = 2, "tp" = 2]
nn.parameter @w : tensor<4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{"tp" | "dp_shard"}]>}
func.func @train(%x: tensor<3x4xf32> {fsdp.placement = #fsdp.placement<[{}, {}]>, nn.name = "x"}, %t: tensor<3xi32> {fsdp.placement = #fsdp.placement<[{}]>, nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
  %r = nn.read @w : tensor<4xf32>
  %w = fsdp.redistribute %r on @mesh to <[{"tp"}]> wire f32 : tensor<4xf32> -> tensor<4xf32>
  %v = fsdp.redistribute %r on @mesh to <[{}]> wire f32 : tensor<4xf32> -> tensor<4xf32>
  %ws = nn.broadcast %w [1] : tensor<4xf32> to tensor<3x4xf32>
  %vs = nn.broadcast %v [1] : tensor<4xf32> to tensor<3x4xf32>
  %xw = nn.mul %x, %ws : tensor<3x4xf32>
  %xv = nn.mul %x, %vs : tensor<3x4xf32>
  %a = nn.sum %xw [0, 1] : tensor<3x4xf32> to tensor<f32>
  %b = nn.sum %xv [0, 1] : tensor<3x4xf32> to tensor<f32>
  %n = nn.count_labels %t ignore_index -100 : tensor<3xi32> -> tensor<i64>
  %c = nn.divide_by_count %a, %n : tensor<f32>, tensor<i64>
  %d = nn.divide_by_count %b, %n : tensor<f32>, tensor<i64>
  %half = nn.constant dense<0.5> : tensor<f32>
  %e = nn.mul %half, %d : tensor<f32>
  %f = nn.neg %e : tensor<f32>
  %loss = nn.add %c, %f : tensor<f32>
  %dw = nn.sum %x [0] : tensor<3x4xf32> to tensor<4xf32>
  nn.gradient @w, %dw : tensor<4xf32>
  return %loss : tensor<f32>
}
