// RUN: fsdp-opt %S/Inputs/blocks.mlir --fsdp-plan | FileCheck %s
// RUN: fsdp-opt %S/Inputs/blocks.mlir --fsdp-plan="reshard-after-forward=always units=whole" | FileCheck %s --check-prefix=WHOLE
// RUN: fsdp-opt %S/Inputs/blocks.mlir --fsdp-plan="bucket=false overlap=false reshard-after-forward=never prefetch=2 reduce-defer=0" | FileCheck %s --check-prefix=OFF

// By rule: the embedding, each block, and what follows, which stays gathered by
// default because it is used last. Blocks that agree are one rule.
// CHECK: fsdp.plan = [
// CHECK-SAME: {bucket = "tok", match = ["fwd tok all_gather"], merge = true, overlap = true, prefetch = 1 : i64, recompute = true}
// CHECK-SAME: {bucket = "tok", match = ["again tok all_gather"], merge = true, overlap = true, prefetch = 1 : i64}
// CHECK-SAME: {match = ["fwd tok embedding", "fwd layers.*.w1 linear", "fwd layers.* silu", "fwd layers.* mul", "fwd layers.*.w2 linear"], recompute = false}
// CHECK-SAME: {bucket = "layers.*", match = ["fwd layers.*.w1 all_gather", "fwd layers.*.w2 all_gather"], merge = true, overlap = true, prefetch = 1 : i64, recompute = true}
// CHECK-SAME: {bucket = "layers.*", match = ["again layers.*.w1 all_gather", "again layers.*.w2 all_gather"], merge = true, overlap = true, prefetch = 1 : i64}
// CHECK-SAME: {bucket = "head", match = ["fwd output all_gather"], merge = true, overlap = true, prefetch = 1 : i64, recompute = false}
// CHECK-SAME: {bucket = "head", match = ["again output all_gather"],
// CHECK-SAME: {bucket = "head", defer = 1 : i64, match = ["bwd output reduce_scatter"], merge = true, overlap = true}
// CHECK-SAME: {bucket = "layers.*", defer = 1 : i64, match = ["bwd layers.*.w2 reduce_scatter", "bwd layers.*.w1 reduce_scatter"], merge = true, overlap = true}
// CHECK-SAME: {bucket = "tok", defer = 1 : i64, match = ["bwd tok reduce_scatter"], merge = true, overlap = true}
// CHECK-NOT: match =

// WHOLE: {bucket = "model", match = ["fwd tok all_gather", "fwd layers.*.w1 all_gather", "fwd layers.*.w2 all_gather", "fwd output all_gather"], merge = true, overlap = true, prefetch = 1 : i64, recompute = true}
// OFF: {bucket = "layers.*", match = ["fwd layers.*.w1 all_gather", "fwd layers.*.w2 all_gather"], merge = false, overlap = false, prefetch = 2 : i64, recompute = false}
// OFF: {bucket = "layers.*", defer = 0 : i64,

// What is computed again in blocks: what one pass over kept values gives, or all
// but what the next block takes. Gathers are reshard-after-forward's.
// RUN: fsdp-opt %S/Inputs/blocks.mlir --fsdp-plan=recompute=free | FileCheck %s --check-prefix=FREE
// RUN: fsdp-opt %S/Inputs/blocks.mlir --fsdp-plan="recompute=full reshard-after-forward=never" | FileCheck %s --check-prefix=FULL
// FREE: {match = ["fwd tok embedding", "fwd layers.*.w1 linear", "fwd layers.*.w2 linear"], recompute = false}
// FREE-SAME: {match = ["fwd layers.* silu", "fwd layers.* mul"], recompute = true}
// FREE-SAME: {bucket = "head", match = ["fwd output all_gather"], merge = true, overlap = true, prefetch = 1 : i64, recompute = false}
// FULL: {match = ["fwd tok embedding", "fwd layers.*.w2 linear"], recompute = false}
// FULL-SAME: {match = ["fwd layers.*.w1 linear", "fwd layers.* silu", "fwd layers.* mul"], recompute = true}
// FULL-NOT: all_gather"], {{[^}]*}}recompute = true

// Three lines change three things; what one block does otherwise follows what
// all do.
// RUN: echo '{"version": 2, "rules": [{"match": "fwd layers.1 all_gather", "start_after": "fwd tok embedding"}, {"match": "bwd {layers.0,tok} reduce_scatter", "bucket": "last"}, {"match": "fwd layers.*.w2 all_gather", "bucket": "w2 of *"}]}' > %t.three.json
// RUN: fsdp-opt %S/Inputs/blocks.mlir --fsdp-plan="file=%t.three.json" | FileCheck %s --check-prefix=THREE
// THREE: {bucket = "layers.*", match = ["fwd layers.*.w1 all_gather"], merge = true, overlap = true, prefetch = 1 : i64, recompute = true}
// THREE-SAME: {bucket = "w2 of *", match = ["fwd layers.*.w2 all_gather"], merge = true, overlap = true, prefetch = 1 : i64, recompute = true}
// THREE-SAME: {bucket = "layers.*", match = ["fwd layers.1.w1 all_gather"], merge = true, overlap = true, prefetch = 1 : i64, recompute = true, start_after = "fwd tok embedding"}
// THREE-SAME: {bucket = "last", defer = 1 : i64, match = ["bwd layers.0.w2 reduce_scatter", "bwd layers.0.w1 reduce_scatter"], merge = true, overlap = true}

// What is printed is a plan, also in full and on the module.
// RUN: fsdp-opt %S/Inputs/blocks.mlir --fsdp-address --fsdp-plan="file=%t.three.json" -o %t.planned.mlir
// RUN: fsdp-opt %t.planned.mlir --fsdp-plan -o %t.again.mlir
// RUN: cmp %t.planned.mlir %t.again.mlir

// A file of version 1 is refused with the command that makes rules of it: its
// units are buckets, and settings of single ones stand over those of most.
// RUN: echo '{"version": 1, "units": [{"name": "all", "parameters": ["tok.weight", "layers.0.w1.weight", "layers.0.w2.weight", "layers.1.w1.weight", "layers.1.w2.weight", "output.weight"], "forward_prefetch": 3, "bucket": false}]}' > %t.json
// RUN: python3 %source/tools/convert-plan.py %t.json > %t.rules.json
// RUN: fsdp-opt %S/Inputs/blocks.mlir --fsdp-plan="file=%t.rules.json" | FileCheck %s --check-prefix=FILE
// FILE: {bucket = "all", match = ["fwd tok all_gather", "fwd layers.*.w1 all_gather", "fwd layers.*.w2 all_gather", "fwd output all_gather"], merge = false, overlap = true, prefetch = 3 : i64, recompute = true}
// FILE: {bucket = "all", match = ["again tok all_gather", "again layers.*.w1 all_gather", "again layers.*.w2 all_gather", "again output all_gather"], merge = false, overlap = true, prefetch = 1 : i64}
// RUN: python3 %source/tools/convert-plan.py %S/Inputs/units.json > %t.rules.json
// RUN: fsdp-opt %S/Inputs/blocks.mlir --fsdp-plan="file=%t.rules.json" | FileCheck %s --check-prefix=UNITS
// UNITS: {bucket = "tok", match = ["fwd tok all_gather"], merge = true, overlap = false, prefetch = 1 : i64, recompute = true}
// UNITS-SAME: {bucket = "tok", match = ["again tok all_gather"], merge = true, overlap = false, prefetch = 1 : i64}
// UNITS-SAME: {match = ["fwd tok embedding", "fwd layers.*.w1 linear", "fwd layers.* silu", "fwd layers.* mul", "fwd layers.*.w2 linear"], recompute = false}
// UNITS-SAME: {bucket = "layers.*", match = ["fwd layers.*.w1 all_gather", "fwd layers.*.w2 all_gather"], merge = true, overlap = true, prefetch = 1 : i64, recompute = true}
// UNITS-SAME: {bucket = "layers.*", match = ["again layers.*.w1 all_gather", "again layers.*.w2 all_gather"], merge = true, overlap = true, prefetch = 0 : i64}
// UNITS-SAME: {bucket = "layers.1.w1 (unit)", match = ["fwd output all_gather"], merge = true, overlap = true, prefetch = 2 : i64, recompute = false}
// UNITS-SAME: {bucket = "layers.1.w1 (unit)", match = ["again output all_gather"], merge = true, overlap = true, prefetch = 1 : i64}
// UNITS-SAME: {bucket = "layers.1.w1 (unit)", defer = 1 : i64, match = ["bwd output reduce_scatter"], merge = true, overlap = true}
// UNITS-SAME: {bucket = "layers.*", defer = 1 : i64, match = ["bwd layers.*.w2 reduce_scatter", "bwd layers.*.w1 reduce_scatter"], merge = true, overlap = true}
// UNITS-SAME: {bucket = "tok", defer = 1 : i64, match = ["bwd tok reduce_scatter"], merge = true, overlap = false}
// UNITS-SAME: {bucket = "layers.*", match = ["again layers.1.w1 all_gather", "again layers.1.w2 all_gather"], merge = true, overlap = true, prefetch = 1 : i64}
// UNITS-SAME: {bucket = "layers.*", defer = 2 : i64, match = ["bwd layers.0.w2 reduce_scatter", "bwd layers.0.w1 reduce_scatter"], merge = true, overlap = true}
// RUN: not python3 %source/tools/convert-plan.py %t.rules.json 2>&1 | FileCheck %s --check-prefix=CONVERTED
// CONVERTED: convert-plan.py: error: '{{.*}}.rules.json' is no plan of version 1

// RUN: python3 %S/Inputs/bad_plans.py %S/Inputs/blocks.mlir %t.bad.json | FileCheck %s --check-prefix=BAD
// BAD: plan : version: expected 2
// BAD-NEXT: plan : the field 'rules' is missing
// BAD-NEXT: plan : unknown key 'extra'
// BAD-NEXT: plan : rules[0]: unknown key 'prefech'; did you mean 'prefetch'?
// BAD-NEXT: plan : rules[0]: overlap: expected true or false
// BAD-NEXT: plan : rules[0]: overlap: expected true or false
// BAD-NEXT: plan : rules[0]: match: expected an array
// BAD-NEXT: plan : rules[0]: the field 'match' is missing
// BAD-NEXT: plan : rules[0]: match: a rule needs an address or a glob
// BAD-NEXT: plan : rules[0]: the rule decides nothing about what it matches
// BAD-NEXT: plan : rules[0]: expected an object
// BAD-NEXT: plan : rules[0]: prefetch: expected an integer from 0 to 2^62
// BAD-NEXT: plan : rules[0]: defer: expected an integer from 0 to 2^62
// BAD-NEXT: the plan does not fit the model: rules[0]: match: 'fwd [tok' is not a glob: invalid glob pattern, unmatched '['
// BAD-NEXT: plan : line 1, column 64: rules[0]: 'match' appears twice
// BAD-NEXT: the plan does not fit the model: rules[0]: match: nothing to decide about matches 'fwd layers.O.w1 all_gather'; did you mean 'fwd layers.0.w1 all_gather'?
// BAD-NEXT: the plan does not fit the model: rules[0]: match: nothing to decide about matches 'bwd tok all_gather'; did you mean 'fwd tok all_gather'?
// BAD-NEXT: the plan does not fit the model: rules[0]: start_after: no op has the address 'fwd layers.0.w1 lineer'; did you mean 'fwd layers.0.w1 linear'?
// BAD-NEXT: the plan does not fit the model: rules[0]: await_before: no op has the address 'fwd nothing'
// BAD-NEXT: the plan does not fit the model: rules[0]: prefetch: it is about gathers, which the rule matches none of
// BAD-NEXT: the plan does not fit the model: rules[0]: defer: it is about reductions, which the rule matches none of
// BAD-NEXT: the plan does not fit the model: rules[0]: recompute: it is about values of the forward pass that the backward pass needs, which the rule matches none of
// BAD-NEXT: the plan does not fit the model: rules[0]: overlap: it is about collectives, which the rule matches none of
// BAD-NEXT: the plan does not fit the model: rules[0]: bucket: it is about collectives that move parameters, which the rule matches none of
// BAD-NEXT: the plan does not fit the model: rules[0]: bucket: the star stands for the number of a block, but 'fwd tok all_gather' lies in none
// BAD-NEXT: the plan does not fit the model: 'fwd layers.0.w1 all_gather' and 'fwd layers.0.w2 all_gather' are in the bucket 'layers.0', but the rules decide differently about them; decide about 'fwd layers.0 all_gather', or put one of them into another bucket
// BAD-NEXT: plan : the plan has version 1, with units instead of rules; convert it with 'python3 tools/convert-plan.py OLD.json > NEW.json'
// BAD-NEXT: cannot read the plan: cannot open input file : No such file or directory
// BAD-NOT: {{.}}
// RUN: not fsdp-opt %S/Inputs/blocks.mlir --fsdp-plan="file=/dev/zero" 2>&1 | FileCheck %s --check-prefix=DEVICE
// DEVICE: error: plan '/dev/zero' is not a regular file; copy it into one
