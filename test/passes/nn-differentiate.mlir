// RUN: fsdp-opt %s --split-input-file --nn-differentiate | FileCheck %s
// RUN: fsdp-opt %s --split-input-file --nn-differentiate --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=LOC

// Two layers. The training program keeps the loss alone, so the negation dies;
// each gradient is complete right after its layer's reverse rule; the input's
// cotangent is not asked for. The evaluation program is the forward as it was.
// CHECK-LABEL: func.func @train
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"})
// CHECK: %[[W0:.*]] = nn.read @w0
// CHECK: %[[H:.*]] = nn.linear %[[X:.*]], %[[W0]]
// CHECK: %[[A:.*]] = nn.silu %[[H]]
// CHECK: %[[W1:.*]] = nn.read @w1
// CHECK: %[[Y:.*]] = nn.linear %[[A]], %[[W1]]
// CHECK-NOT: nn.neg
// CHECK: %[[LOSS:.*]] = nn.mse_loss
// CHECK-NEXT: %[[SEED:.*]] = nn.seed %[[LOSS]]
// CHECK-NEXT: %[[DY:.*]] = nn.mse_loss_grad %[[Y]], %{{.*}}, %[[SEED]] count 32
// CHECK-NEXT: %[[DA:.*]] = nn.linear_input_grad %[[DY]], %[[W1]]
// CHECK-NEXT: %[[DW1:.*]] = nn.linear_weight_grad %[[DY]], %[[A]]
// CHECK-NEXT: nn.gradient @w1, %[[DW1]]
// CHECK-NEXT: %[[DH:.*]] = nn.silu_grad %[[H]], %[[DA]]
// CHECK-NEXT: %[[DW0:.*]] = nn.linear_weight_grad %[[DH]], %[[X]]
// CHECK-NEXT: nn.gradient @w0, %[[DW0]]
// CHECK-NEXT: return %[[LOSS]] : tensor<f32>
// CHECK-LABEL: func.func @evaluate
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss"}, tensor<4x8xf32> {nn.name = "logits"})
// CHECK: nn.neg
// CHECK-NOT: nn.seed

// Ops of the backward pass say which forward op they belong to.
// LOC-LABEL: func.func @train
// LOC: nn.silu_grad {{.*}} loc("layers.0.act")
nn.parameter @w0 : tensor<8x8xf32> init #nn.zeros
nn.parameter @w1 : tensor<8x8xf32> init #nn.zeros
func.func @forward(%x: tensor<4x8xf32> {nn.name = "x"}, %t: tensor<4x8xf32> {nn.name = "t"})
    -> (tensor<f32> {nn.name = "loss"}, tensor<4x8xf32> {nn.name = "logits"}) {
  %w0 = nn.read @w0 : tensor<8x8xf32>
  %h = nn.linear %x, %w0 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %a = nn.silu %h : tensor<4x8xf32> loc("layers.0.act")
  %w1 = nn.read @w1 : tensor<8x8xf32>
  %y = nn.linear %a, %w1 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %u = nn.neg %y : tensor<4x8xf32>
  %loss = nn.mse_loss %y, %t count 32 : tensor<4x8xf32>, tensor<f32>
  return %loss, %u : tensor<f32>, tensor<4x8xf32>
}

// -----

// A tied weight read twice gets one gradient, at its first read: output layer
// first, embedding second (order of arrival). The residual sums the branch of
// the later user (add) before that of the earlier (linear). The frozen weight
// and the parameter outside the loss get no gradient.
// CHECK-LABEL: func.func @train
// CHECK: %[[W:.*]] = nn.read @tied
// CHECK: %[[F:.*]] = nn.read @frozen
// CHECK: %[[S:.*]] = nn.add
// CHECK: %[[COUNT:.*]] = nn.count_labels
// CHECK: %[[SEED:.*]] = nn.seed
// CHECK-NEXT: %[[DSUM:.*]] = nn.divide_by_count %[[SEED]], %[[COUNT]]
// CHECK-NEXT: %[[DROWS:.*]] = nn.broadcast %[[DSUM]]
// CHECK-NEXT: %[[DLOGITS:.*]] = nn.cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}}, %[[DROWS]]
// CHECK-NEXT: %[[DS:.*]] = nn.linear_input_grad %[[DLOGITS]]
// CHECK-NEXT: %[[LATE:.*]] = nn.linear_weight_grad %[[DLOGITS]], %[[S]]
// CHECK-NEXT: %[[BRANCH:.*]] = nn.linear_input_grad %[[DS]], %[[F]]
// CHECK-NEXT: %[[DX:.*]] = nn.add %[[DS]], %[[BRANCH]]
// CHECK-NEXT: %[[EARLY:.*]] = nn.embedding_grad %{{.*}}, %[[DX]]
// CHECK-NEXT: %[[G:.*]] = nn.add %[[LATE]], %[[EARLY]]
// CHECK-NEXT: nn.gradient @tied, %[[G]]
// CHECK-NEXT: return
nn.parameter @tied : tensor<8x8xf32> init #nn.zeros
nn.parameter @frozen : tensor<8x8xf32> init #nn.zeros {nn.frozen}
nn.parameter @unrelated : tensor<8xf32> init #nn.zeros
func.func @forward(%ids: tensor<4xi32> {nn.name = "tokens"}, %t: tensor<4xi32> {nn.name = "targets"})
    -> (tensor<f32> {nn.name = "loss"}) {
  %e = nn.read @tied : tensor<8x8xf32>
  %x = nn.embedding %ids, %e : tensor<4xi32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %f = nn.read @frozen : tensor<8x8xf32>
  %h = nn.linear %x, %f : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %s = nn.add %x, %h : tensor<4x8xf32>
  %w = nn.read @tied : tensor<8x8xf32>
  %y = nn.linear %s, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %rows, %lse = nn.cross_entropy %y, %t ignore_index -100 : tensor<4x8xf32>, tensor<4xi32>, tensor<4xf32>
  %sum = nn.sum %rows [0] : tensor<4xf32> to tensor<f32>
  %count = nn.count_labels %t ignore_index -100 : tensor<4xi32> -> tensor<i64>
  %loss = nn.divide_by_count %sum, %count : tensor<f32>, tensor<i64>
  return %loss : tensor<f32>
}

// -----

// The reverse rule of a parameter's redistribute is the redistribute back: the
// cotangent in the compute type to where the parameter is stored, in f32. Values
// that are placed by hand have cotangents in the same place.
// CHECK-LABEL: func.func @train
// CHECK: %[[DY:.*]] = nn.mse_loss_grad
// CHECK-NEXT: %[[DZ:.*]] = fsdp.redistribute %[[DY]] on @mesh to <[{"dp_shard"}, {}]> : tensor<6x8xbf16> -> tensor<6x8xbf16>
// CHECK-NEXT: %[[DW:.*]] = nn.linear_weight_grad %[[DZ]], {{.*}} -> tensor<8x8xbf16>
// CHECK-NEXT: %[[G:.*]] = fsdp.redistribute %[[DW]] on @mesh to <[{| "dp_shard"}, {}]> wire f32 : tensor<8x8xbf16> -> tensor<8x8xf32>
// CHECK-NEXT: nn.gradient @w, %[[G]] : tensor<8x8xf32>
fsdp.mesh @mesh ["dp_shard" = 3]
nn.parameter @w : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}
func.func @forward(%x: tensor<6x8xbf16> {nn.name = "x"}, %t: tensor<6x8xbf16> {nn.name = "t"})
    -> (tensor<f32> {nn.name = "loss"}) {
  %s = nn.read @w : tensor<8x8xf32>
  %w = fsdp.redistribute %s on @mesh to <[{}, {}]> wire f32 : tensor<8x8xf32> -> tensor<8x8xbf16>
  %z = nn.linear %x, %w : tensor<6x8xbf16>, tensor<8x8xbf16> -> tensor<6x8xbf16>
  %y = fsdp.redistribute %z on @mesh to <[{"dp_shard"}, {}]> : tensor<6x8xbf16> -> tensor<6x8xbf16>
  %loss = nn.mse_loss %y, %t count 48 : tensor<6x8xbf16>, tensor<f32>
  return %loss : tensor<f32>
}
