// RUN: echo '{"version": 2, "rules": [{"match": "fwd layers.1 all_gather", "start_after": "fwd tok embedding"}, {"match": "fwd layers.0 silu", "recompute": true}]}' > %t.json
// RUN: fsdp-opt %S/Inputs/blocks.mlir --fsdp-address --fsdp-plan="file=%t.json" -o %t.planned.mlir
// RUN: FileCheck %s < %t.planned.mlir

// What the plan decides about an op stands on it, and what of a gather's clone.
// The head stays gathered, so that it has none.
// CHECK-LABEL: func.func @train
// CHECK: fsdp.all_gather {{.*}}fsdp.decision = #fsdp.decision<bucket = "tok", overlap = true, prefetch = 1{{.*}}fsdp.origin = #fsdp.origin<"fwd tok all_gather">
// CHECK: nn.linear {{.*}}fsdp.decision = #fsdp.decision<>, fsdp.origin = #fsdp.origin<"fwd layers.0.w1 linear">
// CHECK: nn.silu {{.*}}fsdp.decision = #fsdp.decision<recompute = true>, fsdp.origin = #fsdp.origin<"fwd layers.0 silu">
// CHECK: fsdp.all_gather {{.*}}fsdp.decision = #fsdp.decision<bucket = "layers.1", overlap = true, prefetch = 1, start_after = "fwd tok embedding", recompute = true, again = <bucket = "layers.1", overlap = true, prefetch = 1>>, fsdp.origin = #fsdp.origin<"fwd layers.1.w1 all_gather">
// CHECK: fsdp.all_gather {{.*}}fsdp.decision = #fsdp.decision<bucket = "head", overlap = true, prefetch = 1>, fsdp.origin = #fsdp.origin<"fwd output all_gather">
// CHECK: nn.seed
// CHECK: fsdp.reduce_scatter {{.*}}fsdp.decision = #fsdp.decision<bucket = "head", overlap = true, defer = 1>

// The clones have theirs: that of a gather, which then is its bucket's, and that
// of a value none.
// RUN: fsdp-opt %t.planned.mlir --fsdp-remat --fsdp-bucket --fsdp-overlap -o %t.scheduled.mlir
// RUN: FileCheck %s --check-prefix=SCHEDULED < %t.scheduled.mlir
// SCHEDULED: fsdp.all_gather {{.*}}fsdp.decision = #fsdp.decision<bucket = "layers.1", overlap = true, prefetch = 1, start_after = "fwd tok embedding">, {{.*}}fsdp.origin = #fsdp.origin<"fwd layers.1 all_gather">
// SCHEDULED: nn.seed
// SCHEDULED: fsdp.all_gather {{.*}}fsdp.decision = #fsdp.decision<bucket = "layers.1", overlap = true, prefetch = 1>, {{.*}}fsdp.origin = #fsdp.origin<"again layers.1 all_gather">
// SCHEDULED: nn.silu {{.*}}{fsdp.origin = #fsdp.origin<"again layers.0 silu">

// Below the schedule nothing has decisions.
// RUN: fsdp-opt %t.scheduled.mlir --exec-lower="target=test" -o %t.exec.mlir
// RUN: FileCheck %s --check-prefix=EXEC --implicit-check-not=fsdp.decision < %t.exec.mlir
// EXEC: exec.program @train

// The decisions are all that is read: what the plan says after fsdp-plan has no
// effect, and neither has it when the plan is gone.
// RUN: sed -e '/^module/s/attributes {.*} {$/{/' %t.planned.mlir > %t.noplan.mlir
// RUN: not grep -q fsdp.plan %t.noplan.mlir
// RUN: fsdp-opt %t.noplan.mlir --fsdp-remat --fsdp-bucket --fsdp-overlap -o %t.noplan.scheduled.mlir
// RUN: sed -e '/^module/s/attributes {.*} {$/{/' %t.scheduled.mlir > %t.scheduled.noplan.mlir
// RUN: cmp %t.noplan.scheduled.mlir %t.scheduled.noplan.mlir

// A decision that is changed in the text is the one that counts.
// RUN: sed -e '/= fsdp.all_gather/s/start_after = "fwd tok embedding"/start_after = "fwd layers.0.w1 linear"/' %t.planned.mlir | fsdp-opt --fsdp-bucket --fsdp-overlap | FileCheck %s --check-prefix=CHANGED
// CHANGED: nn.linear {{.*}}"fwd layers.0.w1 linear"
// CHANGED-NOT: nn.silu
// CHANGED: fsdp.all_gather {{.*}}"fwd layers.1 all_gather"
// RUN: sed -e '/= fsdp.all_gather/s/start_after = "fwd tok embedding"/start_after = "fwd nothing"/' %t.planned.mlir | not fsdp-opt --fsdp-bucket --fsdp-overlap 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING: error: 'fsdp.all_gather' op has the decision 'start_after' = 'fwd nothing', but no op has that address{{$}}
// RUN: sed -e '/= fsdp.all_gather/s/start_after = "fwd tok embedding"/start_after = "fwd tok embeding"/' %t.planned.mlir | not fsdp-opt --fsdp-bucket --fsdp-overlap 2>&1 | FileCheck %s --check-prefix=NEAR
// NEAR: error: 'fsdp.all_gather' op has the decision 'start_after' = 'fwd tok embeding', but no op has that address; did you mean 'fwd tok embedding'?

// Where ops have decisions, all collectives have.
// RUN: sed -e '/= fsdp.all_gather/s/fsdp.decision = #fsdp.decision<bucket = "head", overlap = true, prefetch = 1>, //' %t.planned.mlir | not fsdp-opt --fsdp-bucket 2>&1 | FileCheck %s --check-prefix=SOME
// SOME: error: 'fsdp.all_gather' op has no 'fsdp.decision', though other ops have one; write #fsdp.decision<> on it, or let fsdp-plan decide about all

// fsdp-plan writes them anew, from the rules, and says what it has replaced.
// RUN: fsdp-opt %t.planned.mlir --fsdp-plan -o %t.again.mlir 2>&1 | count 0
// RUN: cmp %t.planned.mlir %t.again.mlir
// RUN: sed -e '/= fsdp.all_gather/s/start_after = "fwd tok embedding"/start_after = "fwd nothing"/' -e 's/\(nn.add .*fsdp.origin = #fsdp.origin<"[^"]*">\)/\1, fsdp.decision = #fsdp.decision<>/' %t.planned.mlir | fsdp-opt --fsdp-plan -o %t.anew.mlir 2>&1 | FileCheck %s --check-prefix=ANEW
// ANEW: warning: fsdp-plan replaced {{[0-9]+}} of the {{[0-9]+}} decisions of ops; write them as rules of the plan, or do not run fsdp-plan again
// ANEW: note: the first one was #fsdp.decision<
// RUN: cmp %t.planned.mlir %t.anew.mlir

// A plan that was written by hand, without fsdp-plan, is all that is decided;
// the first pass that applies it writes it on the ops.
// RUN: fsdp-opt %s --fsdp-bucket | FileCheck %s --check-prefix=HAND
// HAND: fsdp.all_gather {{.*}}{fsdp.decision = #fsdp.decision<overlap = true, start_after = "fwd first silu">
module attributes {fsdp.plan = [{match = ["* w all_gather"], overlap = true, start_after = "fwd first silu"}]} {
  fsdp.mesh @mesh ["dp_shard" = 2]
  nn.parameter @w.weight : tensor<4x8xf32> init #nn.zeros
  func.func @f(%x: tensor<2x8xf32> {nn.name = "x"}) -> (tensor<2x8xf32> {nn.name = "y"}) {
    %s = nn.read @w.weight : tensor<4x8xf32>
    %w = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@w.weight]} : tensor<4x8xf32> -> tensor<8x8xf32>
    %a = nn.silu %x {nn.module = "first"} : tensor<2x8xf32>
    %y = nn.linear %a, %w {nn.module = "last"} : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    return %y : tensor<2x8xf32>
  }
}
