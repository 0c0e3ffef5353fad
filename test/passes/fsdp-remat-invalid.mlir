// RUN: fsdp-opt %S/Inputs/blocks.mlir --fsdp-address --fsdp-plan="reshard-after-forward=never recompute=full" -o %t.mlir
// RUN: fsdp-opt %t.mlir --fsdp-remat -o %t.remat.mlir 2>&1 | count 0

// A plan decides to recompute nothing that the backward pass does without. Who
// writes it on another op hears that nothing comes of it: on a value of the
// forward pass that the loss alone needs, and on one of the backward pass.
// RUN: sed -E 's/(fsdp.origin = #fsdp.origin<"(fwd output linear|bwd layers.1 mul)">)/\1, fsdp.decision = #fsdp.decision<recompute = true>/' %t.mlir | fsdp-opt --fsdp-remat -o %t.edited.mlir 2>&1 | FileCheck %s
// CHECK: warning: 'nn.linear' op has 'recompute' in its 'fsdp.decision', but is not computed again: nothing in the backward pass needs its result; remove 'recompute', or set it on an op of the forward pass that the backward pass uses
// CHECK: note: see current operation: {{.*}}"fwd output linear"
// CHECK: warning: 'nn.mul' op has 'recompute'
// CHECK-NOT: warning:
// RUN: sed 's/fsdp.decision = #fsdp.decision<recompute = true>, //' %t.edited.mlir > %t.a
// RUN: sed 's/fsdp.decision = #fsdp.decision<recompute = true>, //' %t.remat.mlir | diff %t.a -

// A decision that an earlier run of the pass has applied is not in vain.
// RUN: fsdp-opt %S/Inputs/blocks.mlir --fsdp-address --fsdp-plan="reshard-after-forward=always" --fsdp-remat -o %t.once.mlir
// RUN: fsdp-opt %t.once.mlir --fsdp-remat -o %t.twice.mlir 2>&1 | count 0
// RUN: diff %t.once.mlir %t.twice.mlir
