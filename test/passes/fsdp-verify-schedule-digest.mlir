// What a schedule computes is what was computed before: each of these changes
// keeps every op verified, every future awaited and every type, and is refused.
// RUN: fsdp-opt %S/Inputs/blocks.mlir --fsdp-address --fsdp-plan --fsdp-remat --fsdp-bucket --fsdp-overlap --fsdp-verify-schedule -o %t.good.mlir
// RUN: fsdp-opt %t.good.mlir --pass-pipeline="builtin.module(func.func(nn-fuse),fsdp-verify-schedule)" -o %t.fused.mlir

// A sum becomes a maximum.
// RUN: sed -e '/bwd layers.1 reduce_scatter/s/reduce_scatter sum/reduce_scatter max/' %t.good.mlir > %t.bad.mlir
// RUN: not fsdp-opt %t.bad.mlir --fsdp-verify-schedule 2>&1 | FileCheck %s --check-prefix=GRADIENT
// GRADIENT: error: program @train does not compute what it did before scheduling: nn.gradient of 'layers.1.w1.weight' differs

// A bucket's results are taken in another order.
// RUN: sed -E '/fwd layers.0.w1 linear/s/(%[0-9]+)#0/\1#1/' %t.good.mlir > %t.bad.mlir
// RUN: not fsdp-opt %t.bad.mlir --fsdp-verify-schedule 2>&1 | FileCheck %s --check-prefix=RESULT
// RESULT: error: {{.*}} does not compute what it did before scheduling: {{.*}} differs

// A kernel does something else.
// RUN: sed -e 's/nn.silu %/nn.sigmoid %/' %t.fused.mlir > %t.bad.mlir
// RUN: not fsdp-opt %t.bad.mlir --fsdp-verify-schedule 2>&1 | FileCheck %s --check-prefix=RESULT

// A gradient is missing.
// RUN: sed -e '/nn.gradient @tok.weight/d' %t.good.mlir > %t.bad.mlir
// RUN: not fsdp-opt %t.bad.mlir --fsdp-verify-schedule 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: program @train does not compute what it did before scheduling: {{[0-9]+}} effects, not {{[0-9]+}}

// What ranks gathered is the same if it is sharded over some of them and gathered
// again;
// RUN: fsdp-opt %S/Inputs/regathered.mlir --fsdp-address --fsdp-plan -o %t.whole.mlir
// RUN: sed 's/^ *%1 = nn.silu %0/%kept = fsdp.shard_of %0 on @mesh["dp":(2)2] dim 0 : tensor<8x8xf32> -> tensor<4x8xf32>\n%again = fsdp.all_gather %kept on @mesh["dp":(2)2] dim 0 : tensor<4x8xf32> -> tensor<8x8xf32>\n%1 = nn.silu %again/' %t.whole.mlir > %t.again.mlir
// RUN: fsdp-opt %t.again.mlir --fsdp-verify-schedule | FileCheck %s --check-prefix=AGAIN
// AGAIN: fsdp.shard_of
// not over others, which may have gathered something else, nor is what each rank
// has of its own.
// RUN: sed 's/^ *%1 = nn.silu %0/%kept = fsdp.shard_of %0 on @mesh["tp"] dim 0 : tensor<8x8xf32> -> tensor<4x8xf32>\n%again = fsdp.all_gather %kept on @mesh["tp"] dim 0 : tensor<4x8xf32> -> tensor<8x8xf32>\n%1 = nn.silu %again/' %t.whole.mlir > %t.bad.mlir
// RUN: not fsdp-opt %t.bad.mlir --fsdp-verify-schedule 2>&1 | FileCheck %s --check-prefix=FIRST
// FIRST: error: program @f does not compute what it did before scheduling: result 0 differs
// RUN: sed 's/^ *%2 = nn.silu %arg0/%kept = fsdp.shard_of %arg0 on @mesh["dp":(2)2] dim 0 : tensor<8x8xf32> -> tensor<4x8xf32>\n%again = fsdp.all_gather %kept on @mesh["dp":(2)2] dim 0 : tensor<4x8xf32> -> tensor<8x8xf32>\n%2 = nn.silu %again/' %t.whole.mlir > %t.bad.mlir
// RUN: not fsdp-opt %t.bad.mlir --fsdp-verify-schedule 2>&1 | FileCheck %s --check-prefix=SECOND
// SECOND: error: program @f does not compute what it did before scheduling: result 1 differs

// Labels and places are no part of it.
// RUN: sed -e 's/nn.module = "[^"]*"/nn.module = "other"/; s/serves = [^>]*>/serves = #fsdp.origin<all "bwd other">/' %t.good.mlir | fsdp-opt --fsdp-verify-schedule -o %t.same.mlir

// What stands around the programs is: names of inputs,
// RUN: sed -E '/func.func @train/s/nn.name = "t"/nn.name = "other"/' %t.good.mlir > %t.bad.mlir
// RUN: not fsdp-opt %t.bad.mlir --fsdp-verify-schedule 2>&1 | FileCheck %s --check-prefix=ARGUMENT
// ARGUMENT: error: program @train does not compute what it did before scheduling: the name, type or placement of argument 0 differs

// where they lie,
// RUN: fsdp-opt %S/nn-accumulate.mlir --nn-accumulate="microbatches=4" --fsdp-optimizer="function=update" --fsdp-propagate --fsdp-expand --fsdp-address --fsdp-plan --fsdp-remat --fsdp-bucket --fsdp-overlap --fsdp-verify-schedule -o %t.steps.mlir
// RUN: sed -E '/func.func @count/s/fsdp.placement = #fsdp.placement<[^>]*>, //' %t.steps.mlir > %t.bad.mlir
// RUN: not fsdp-opt %t.bad.mlir --fsdp-verify-schedule 2>&1 | FileCheck %s --check-prefix=PLACE
// PLACE: error: program @count does not compute what it did before scheduling: the name, type or placement of argument 0 differs

// the list of the programs of a step,
// RUN: sed -e 's/times 4/times 5/' %t.steps.mlir > %t.bad.mlir
// RUN: not fsdp-opt %t.bad.mlir --fsdp-verify-schedule 2>&1 | FileCheck %s --check-prefix=STEPS
// STEPS: error: the module does not declare what it did before scheduling: the list of programs of a step, 'nn.steps', differs

// what is declared,
// RUN: sed -e 's/nn.buffer @w.grad_sum : tensor<4x2xf32> init #nn.zeros/nn.buffer @w.grad_sum : tensor<4x2xf32> init #nn.normal<std = 0.02>/' %t.steps.mlir > %t.bad.mlir
// RUN: not fsdp-opt %t.bad.mlir --fsdp-verify-schedule 2>&1 | FileCheck %s --check-prefix=DECLARED
// DECLARED: error: the module does not declare what it did before scheduling: the declaration of parameters and buffers differs

// and which programs there are.
// RUN: sed -e '/func.func @update/,/^  }/d' -e 's/, #nn.action<@update times 1>//' %t.steps.mlir > %t.bad.mlir
// RUN: not fsdp-opt %t.bad.mlir --fsdp-verify-schedule 2>&1 | FileCheck %s --check-prefix=PROGRAMS
// PROGRAMS: error: the module does not declare what it did before scheduling: the set of programs differs

// Digests are there for all programs or for none, and without them that is said.
// RUN: sed -E '/func.func @count/s/(, )?fsdp.outcome = array<[^>]*>(, )?//' %t.steps.mlir > %t.bad.mlir
// RUN: not fsdp-opt %t.bad.mlir --fsdp-verify-schedule 2>&1 | FileCheck %s --check-prefix=SOME
// SOME: error: {{.*}} has no 'fsdp.outcome', which other parts of the module have: keep all of them that fsdp-plan has written, or none
// RUN: sed -E 's/fsdp.outcome = array<[^>]*>, (fsdp.plan)/\1/; s/, fsdp.outcome = array<[^>]*>//' %t.steps.mlir | fsdp-opt --fsdp-verify-schedule -o %t.same.mlir 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: warning: no program has 'fsdp.outcome', which fsdp-plan writes: the schedule cannot hang, but its results were compared with nothing
