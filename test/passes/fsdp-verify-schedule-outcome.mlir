// What a schedule computes is what was computed before: each of these changes
// keeps every op verified, every future awaited and every type, and is refused.
// RUN: fsdp-opt %S/Inputs/blocks.mlir --fsdp-address --fsdp-plan --fsdp-remat --fsdp-bucket --fsdp-overlap --fsdp-verify-schedule -o %t.good.mlir
// RUN: fsdp-opt %t.good.mlir --pass-pipeline="builtin.module(func.func(nn-fuse),fsdp-verify-schedule)" -o %t.fused.mlir

// A sum is scaled.
// RUN: sed -e '/bwd layers.1 reduce_scatter/s/scale 1.000000e+00/scale 5.000000e-01/' %t.good.mlir > %t.bad.mlir
// RUN: not fsdp-opt %t.bad.mlir --fsdp-verify-schedule 2>&1 | FileCheck %s --check-prefix=GRADIENT
// GRADIENT: error: program @train does not compute what it did before it was scheduled: nn.gradient of 'layers.1.w1.weight' is something else

// A bucket's results are taken in another order.
// RUN: sed -E '/fwd layers.0.w1 linear/s/(%[0-9]+)#0/\1#1/' %t.good.mlir > %t.bad.mlir
// RUN: not fsdp-opt %t.bad.mlir --fsdp-verify-schedule 2>&1 | FileCheck %s --check-prefix=RESULT
// RESULT: error: {{.*}} does not compute what it did before it was scheduled: {{.*}} is something else

// A kernel does something else.
// RUN: sed -e 's/nn.silu %/nn.sigmoid %/' %t.fused.mlir > %t.bad.mlir
// RUN: not fsdp-opt %t.bad.mlir --fsdp-verify-schedule 2>&1 | FileCheck %s --check-prefix=RESULT

// A gradient is missing.
// RUN: sed -e '/nn.gradient @tok.weight/d' %t.good.mlir > %t.bad.mlir
// RUN: not fsdp-opt %t.bad.mlir --fsdp-verify-schedule 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: {{.*}} writes and returns 6 things, but 7 before it was scheduled

// Labels and places are no part of it.
// RUN: sed -e 's/nn.module = "[^"]*"/nn.module = "other"/; s/serves = "[^"]*"/serves = "other"/' %t.good.mlir | fsdp-opt --fsdp-verify-schedule -o %t.same.mlir
