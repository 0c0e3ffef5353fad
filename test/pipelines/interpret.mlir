// What a schedule computes, asked without compiling it.

// By hand: w is split into [2 3] and [4 0], gathered, and multiplied by each rank's x; y's sum over
// the ranks is scattered, padded and given back whole. 2^24 + 1 is no f32.
// RUN: rm -rf %t && mkdir %t
// RUN: python3 %S/Inputs/tensors.py write %t/in w=3:2,3,4 rank0/x=3:1,10,101 rank1/x=3:1,1,16777217
// RUN: fsdp-interpret %s --inputs %t/in --outputs %t/out | FileCheck %s
// RUN: python3 %S/Inputs/tensors.py print %t/out | FileCheck %s --check-prefix=OUT
// RUN: fsdp-interpret %s --inputs %t/in --f32 | FileCheck %s --check-prefix=F32

// CHECK:      @step on 2 ranks, in double precision
// CHECK-NEXT: results:
// CHECK-NEXT:   y      rank 0    3  mean  1.4533e+02 norm  4.0512e+02 : 2 30 404
// CHECK-NEXT:   y      rank 1    3  mean
// CHECK-NEXT: written:
// CHECK-NEXT:   w.grad whole     3  mean
// CHECK-SAME:   : 4 33 6.7109e+07
// OUT:      rank0/y F64 [3] 2.0 30.0 404.0
// OUT-NEXT: rank1/y F64 [3] 2.0 3.0 67108868.0
// OUT-NEXT: w.grad F64 [3] 4.0 33.0 67109272.0
// F32: @step on 2 ranks, rounded to the declared types

// In f32: 404 + 67108864 lies between two numbers and becomes 67109264.
// RUN: fsdp-interpret %s --inputs %t/in --f32 --outputs %t/f32
// RUN: python3 %S/Inputs/tensors.py print %t/f32 | FileCheck %s --check-prefix=ROUNDED
// ROUNDED:      rank1/y F64 [3] 2.0 3.0 67108864.0
// ROUNDED-NEXT: w.grad F64 [3] 4.0 33.0 67109264.0

// A small Llama: the schedule on 2 x 2 ranks computes what the model means.
// RUN: fsdp-trace llama3_debug --seq 4 --set dim=8,n_layers=2,n_heads=4,n_kv_heads=2,vocab_size=11,ffn_dim=10 -o %t/graph
// RUN: fsdp-opt %t/graph --nn-differentiate | fsdp-interpret --seed 1 | tail -n +2 > %t/meant
// RUN: fsdp-opt %t/graph --fsdp-shard="mesh=r=2,s=2 mode=hybrid_shard" --nn-differentiate --fsdp-expand --fsdp-plan --fsdp-remat --fsdp-bucket --fsdp-overlap --nn-fuse -o %t/schedule
// RUN: fsdp-interpret %t/schedule --seed 1 --same-on-all-ranks | tail -n +2 > %t/scheduled
// RUN: grep -c 'grad .* whole' %t/meant
// RUN: grep -cE ' : [^ ]+ [^ ]+ [^ ]+ \.\.\.$' %t/meant
// RUN: diff %t/meant %t/scheduled
// RUN: fsdp-interpret %t/schedule --seed 2 --same-on-all-ranks | tail -n +2 > %t/other
// RUN: not diff %t/meant %t/other
// RUN: fsdp-interpret %t/graph --seed 1 | FileCheck %s --check-prefix=GRAPH
// GRAPH:      @forward on 1 rank, in double precision
// GRAPH:        loss   all ranks scalar
// GRAPH-NEXT:   logits all ranks 1x4x11

// A batch that is sharded over ranks is made up whole, so both compute the same: the
// example of --help, smaller.
// RUN: fsdp-trace llama3_debug --batch 2 --seq 4 --set dim=8,n_layers=1,n_heads=4,n_kv_heads=2,vocab_size=11,ffn_dim=10 -o %t/batch
// RUN: fsdp-opt %t/batch --nn-differentiate | fsdp-interpret --seed 1 | tail -n +2 > %t/batch.meant
// RUN: fsdp-opt %t/batch --fsdp-shard="mesh=dp_shard=2" --nn-differentiate --fsdp-propagate --fsdp-expand --fsdp-plan --fsdp-remat --fsdp-bucket --fsdp-overlap -o %t/batch.schedule
// RUN: fsdp-interpret %t/batch.schedule --seed 1 | tail -n +2 > %t/batch.scheduled
// RUN: grep -c 'grad .* whole' %t/batch.meant
// RUN: diff %t/batch.meant %t/batch.scheduled
// RUN: fsdp-interpret --help | FileCheck %s --check-prefix=HELP
// HELP: fsdp-trace llama3_debug --batch 2
// HELP: fsdp-opt graph.mlir --fsdp-shard="mesh=dp_shard=2" --nn-differentiate \
// HELP-NEXT: --fsdp-propagate --fsdp-expand --fsdp-plan --fsdp-remat --fsdp-bucket \
// HELP-NEXT: --fsdp-overlap \
// HELP-NEXT: fsdp-interpret --seed 1

// What takes more than there is is refused before anything is computed.
// RUN: fsdp-trace llama3_405b | not fsdp-interpret --seed 1 2>&1 | FileCheck %s --check-prefix=SIZE
// SIZE: fsdp-interpret: error: @forward takes at least {{[3-9]\.[0-9]}} TiB on 1 rank, 8 bytes for every element on every rank, which is more than {{[0-9.]+ [GT]iB}}, the memory of this machine; take a smaller model
// RUN: not fsdp-interpret %t/batch.schedule --seed 1 --memory-limit=20KB 2>&1 | FileCheck %s --check-prefix=LIMIT
// LIMIT: error: @train takes at least {{[2-9][0-9]\.[0-9]}} KiB on 2 ranks, {{.*}} which is more than 19.5 KiB of --memory-limit; take
// RUN: not fsdp-interpret %t/batch.schedule --seed 1 --memory-limit=much 2>&1 | FileCheck %s --check-prefix=NO-SIZE
// NO-SIZE: error: --memory-limit: 'much' is no size; write bytes or a unit

// Errors name what is missing and where.
// RUN: not fsdp-interpret %t/schedule 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: fsdp-interpret: error: no input is called 'tokens'
// RUN: not fsdp-interpret %t/schedule --function nix 2>&1 | FileCheck %s --check-prefix=WHICH
// WHICH: fsdp-interpret: error: no program to run: --function takes one of @train, @evaluate
// RUN: python3 %S/Inputs/tensors.py write %t/rank rank2/x=3:1,2,3
// RUN: not fsdp-interpret %s --inputs %t/rank 2>&1 | FileCheck %s --check-prefix=RANK
// RANK: fsdp-interpret: error: '{{.*}}rank': tensor 'rank2/x' is for a rank that the mesh has not
// RUN: python3 %S/Inputs/tensors.py write %t/name v=3:1,2,3
// RUN: not fsdp-interpret %s --inputs %t/name 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: tensor 'v' is no argument of @step and no parameter or buffer of the module
// RUN: python3 %S/Inputs/tensors.py write %t/shape w=2:1,2 x=3:1,2,3
// RUN: not fsdp-interpret %s --inputs %t/shape --outputs %t/none 2>&1 | FileCheck %s --check-prefix=SHAPE
// SHAPE: fsdp-interpret: error: input 'w' is 2, but its declaration is 3
// RUN: not ls %t/none
// RUN: not fsdp-interpret %t/in 2>&1 | FileCheck %s --check-prefix=TEXT
// TEXT: fsdp-interpret: error: {{.*}}in:1:2: the control character \x00 in what should be text
// RUN: not fsdp-interpret %t/absent 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: fsdp-interpret: error: {{.*}}absent

fsdp.mesh @mesh ["s" = 2]
nn.parameter @w : tensor<3xf32> init #nn.normal<std = 1.0>
  {fsdp.placement = #fsdp.placement<[{| "s"}]>}
func.func @step(%x: tensor<3xf32> {nn.name = "x"}) -> (tensor<3xf32> {nn.name = "y"}) attributes {fsdp.local} {
  %shard = nn.read @w : tensor<2xf32>
  %w = fsdp.all_gather %shard on @mesh["s"] dim 0 : tensor<2xf32> -> tensor<3xf32>
  %y = nn.mul %w, %x : tensor<3xf32>
  %future = fsdp.async : !fsdp.future<tensor<2xf32>> {
    %sum = fsdp.reduce_scatter sum %y on @mesh["s"] dim 0 : tensor<3xf32> -> tensor<2xf32>
    fsdp.yield %sum : tensor<2xf32>
  }
  %g = fsdp.await %future : !fsdp.future<tensor<2xf32>> -> tensor<2xf32>
  nn.gradient @w, %g : tensor<2xf32>
  return %y : tensor<3xf32>
}
