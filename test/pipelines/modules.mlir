// RUN: fsdp-opt %s --fsdp-shard="mesh=dp_shard=2" --nn-differentiate --cse -o %t.shard
// RUN: FileCheck %s --check-prefix=DIFF < %t.shard
// RUN: fsdp-opt %t.shard --fsdp-optimizer --fsdp-propagate --fsdp-expand -o %t.placed
// RUN: FileCheck %s --check-prefix=PLACED < %t.placed
// RUN: fsdp-opt %t.placed --fsdp-plan="reshard-after-forward=always" --fsdp-remat --fsdp-bucket --fsdp-overlap -o %t.scheduled
// RUN: fsdp-opt %t.scheduled --pass-pipeline="builtin.module(func.func(nn-fuse))" -o %t.fused
// RUN: FileCheck %s --check-prefix=SCHEDULED < %t.fused
// RUN: fsdp-opt %t.fused --exec-lower="target=test" | FileCheck %s --check-prefix=EXEC

// The module of an op survives every pass, each of which reads and writes text:
// no location carries a name here.

// Sharding and the reverse pass.
// DIFF-LABEL: func.func @train
// DIFF:      nn.read @layers.0.wq.weight {nn.module = "layers.0.wq"}
// DIFF-NEXT: fsdp.redistribute {{.*}} {nn.module = "layers.0.wq"}
// DIFF:      nn.seed {{.*}} {nn.module = "loss"}
// DIFF:      nn.silu_grad {{.*}} {nn.module = "layers.0"}
// DIFF:      nn.linear_weight_grad {{.*}} {nn.module = "layers.0.wk"}
// DIFF:      fsdp.redistribute {{.*}} {nn.module = "layers.0.wk"}
// DIFF-NEXT: nn.gradient @layers.0.wk.weight, {{.*}} {nn.module = "layers.0.wk"}

// Collectives and the optimizer.
// PLACED-LABEL: func.func @train
// PLACED:      fsdp.all_gather {{.*}}nn.module = "layers.0.wq", serves = #fsdp.origin<all "fwd layers.0.wq">
// PLACED:      fsdp.all_reduce {{.*}}nn.module = "loss", serves = #fsdp.origin<all "fwd loss">
// PLACED:      fsdp.reduce_scatter {{.*}}nn.module = "layers.0.wk", serves = #fsdp.origin<all "bwd layers.0.wk">
// PLACED:      fsdp.all_reduce max {{.*}}nn.module = "optimizer.gradient_maximum", serves = #fsdp.origin<all "update optimizer.gradient_maximum">
// PLACED:      fsdp.all_reduce sum {{.*}}nn.module = "optimizer.gradient_norm", serves = #fsdp.origin<all "update optimizer.gradient_norm">
// PLACED:      nn.clip_coefficient {{.*}}nn.module = "optimizer"
// PLACED:      nn.adamw {{.*}}nn.module = "optimizer"

// A bucket is of the block that its members have in common, and so are its
// start and its wait; a clone is of the module it gathers for. A fusion is of
// what its members have in common.
// SCHEDULED-LABEL: func.func @train
// SCHEDULED:      fsdp.async {nn.module = "layers.0"}
// SCHEDULED-NEXT: fsdp.all_gather {{.*}}nn.module = "layers.0", serves = #fsdp.origin<all "fwd layers.0">
// SCHEDULED:      fsdp.await {{.*}}{nn.module = "layers.0"}
// SCHEDULED:      nn.recompute_from {{.*}}{nn.module = "layers.0.w{{[qk]}}"}
// SCHEDULED:      fsdp.all_gather {{.*}}nn.module = "layers.0.wk", serves = #fsdp.origin<all "again layers.0">
// SCHEDULED:      nn.silu_grad {{.*}}{nn.module = "layers.0"}
// SCHEDULED-LABEL: func.func @evaluate
// SCHEDULED:      nn.fusion{{.*}}{nn.module = "layers.0"}

// Work and labels.
// EXEC-LABEL: exec.program @train
// EXEC:      exec.alloc "layers.0.wq: linear"
// EXEC:      exec.gemm {{.*}}{nn.module = "layers.0.wq"
// EXEC:      exec.adamw {{.*}}nn.module = "optimizer"

nn.parameter @layers.0.wq.weight : tensor<8x8xf32> init #nn.zeros
nn.parameter @layers.0.wk.weight : tensor<8x8xf32> init #nn.zeros
func.func @forward(%x: tensor<4x8xf32> {nn.name = "x"}, %y: tensor<4x8xf32> {nn.name = "y"}) -> (tensor<f32> {nn.name = "loss"}) {
  %wq = nn.read @layers.0.wq.weight {nn.module = "layers.0.wq"} : tensor<8x8xf32>
  %q = nn.linear %x, %wq {nn.module = "layers.0.wq"} : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %wk = nn.read @layers.0.wk.weight {nn.module = "layers.0.wk"} : tensor<8x8xf32>
  %k = nn.linear %q, %wk {nn.module = "layers.0.wk"} : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %s = nn.silu %k {nn.module = "layers.0"} : tensor<4x8xf32>
  %h = nn.add %s, %q {nn.module = "layers.0"} : tensor<4x8xf32>
  %loss = nn.mse_loss %h, %y count 32 {nn.module = "loss"} : tensor<4x8xf32>, tensor<f32>
  return %loss : tensor<f32>
}
