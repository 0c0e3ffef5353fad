// RUN: fsdp-opt %s --fsdp-plan | FileCheck %s
// RUN: fsdp-opt %s --fsdp-plan="reshard-after-forward=always units=whole" | FileCheck %s --check-prefix=WHOLE
// RUN: fsdp-opt %s --fsdp-plan="bucket=false overlap=false reshard-after-forward=never prefetch=2 reduce-defer=0" | FileCheck %s --check-prefix=OFF
// RUN: echo '{"version": 1, "units": [{"name": "all", "parameters": ["tok_embeddings.weight", "layers.0.w1.weight", "layers.0.norm.weight", "layers.1.w1.weight", "norm.weight", "output.weight"], "forward_prefetch": 3}]}' > %t.json
// RUN: fsdp-opt %s --fsdp-plan="file=%t.json" | FileCheck %s --check-prefix=FILE
// RUN: echo '{"version": 1, "units": [{"name": "all", "parameters": ["norm.weight", "nosuch"]}]}' > %t.bad.json
// RUN: not fsdp-opt %s --fsdp-plan="file=%t.bad.json" 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: echo '{"version": 1, "units": [{"parameters": []}]}' > %t.noname.json
// RUN: not fsdp-opt %s --fsdp-plan="file=%t.noname.json" 2>&1 | FileCheck %s --check-prefix=NONAME
// RUN: echo '{"version": 2, "units": []}' > %t.version.json
// RUN: not fsdp-opt %s --fsdp-plan="file=%t.version.json" 2>&1 | FileCheck %s --check-prefix=VERSION
// RUN: echo '{"version": 1}' > %t.nounits.json
// RUN: not fsdp-opt %s --fsdp-plan="file=%t.nounits.json" 2>&1 | FileCheck %s --check-prefix=NOUNITS
// RUN: not fsdp-opt %s --fsdp-plan="file=%t.absent.json" 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: echo '{"version": 1, "units": [{"name": "all", "parameters": [], "forward_prefech": 3}]}' > %t.key.json
// RUN: not fsdp-opt %s --fsdp-plan="file=%t.key.json" 2>&1 | FileCheck %s --check-prefix=KEY
// RUN: echo '{"version": 1, "units": [], "extra": 3}' > %t.extra.json
// RUN: not fsdp-opt %s --fsdp-plan="file=%t.extra.json" 2>&1 | FileCheck %s --check-prefix=EXTRA
// RUN: echo '{"version": 1, "units": [{"name": "a", "parameters": []}, {"name": "a", "parameters": []}]}' > %t.unit.json
// RUN: not fsdp-opt %s --fsdp-plan="file=%t.unit.json" 2>&1 | FileCheck %s --check-prefix=UNIT
// RUN: echo '{"version": 1, "units": [{"name": "a", "parameters": [], "bucket": 1}]}' > %t.type.json
// RUN: not fsdp-opt %s --fsdp-plan="file=%t.type.json" 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: echo '{"version": 1, "units": [{"name": "a", "parameters": [], "name": "b"}]}' > %t.twice.json
// RUN: not fsdp-opt %s --fsdp-plan="file=%t.twice.json" 2>&1 | FileCheck %s --check-prefix=TWICE

// By rule: the embedding, each block, and [norm, output] as the last unit,
// which stays gathered by default.
// CHECK: fsdp.plan = [
// CHECK-SAME: forward_prefetch = 1 : i64, name = "tok_embeddings", overlap = true, parameters = ["tok_embeddings.weight"], reduce_defer = 1 : i64, reshard_after_forward = true}
// CHECK-SAME: name = "layers.0", overlap = true, parameters = ["layers.0.w1.weight", "layers.0.norm.weight"], reduce_defer = 1 : i64, reshard_after_forward = true}
// CHECK-SAME: name = "layers.1",
// CHECK-SAME: name = "head", overlap = true, parameters = ["norm.weight", "output.weight"], reduce_defer = 1 : i64, reshard_after_forward = false}
// CHECK-NOT: name =

// WHOLE: fsdp.plan = [{backward_prefetch = 1 : i64, bucket = true, forward_prefetch = 1 : i64, name = "model"
// WHOLE-SAME: reshard_after_forward = true}]

// OFF: fsdp.plan = [{backward_prefetch = 2 : i64, bucket = false, forward_prefetch = 2 : i64, name = "tok_embeddings", overlap = false
// OFF-SAME: reduce_defer = 0 : i64, reshard_after_forward = false}

// FILE: fsdp.plan = [{backward_prefetch = 1 : i64, bucket = true, forward_prefetch = 3 : i64, name = "all"

// BAD: error: the plan {{.*}}does not fit the model: unit 'all' names the unknown parameter 'nosuch'
// NONAME: error: plan '{{.*}}.noname.json': missing value at plan.units[0].name
// KEY: error: plan '{{.*}}.key.json': unknown key 'forward_prefech' at plan.units[0]; did you mean 'forward_prefetch'?
// EXTRA: error: plan '{{.*}}.extra.json': unknown key 'extra' at plan
// UNIT: error: plan '{{.*}}.unit.json': an earlier unit is called 'a' too, at plan.units[1].name
// TYPE: error: plan '{{.*}}.type.json': expected boolean at plan.units[0].bucket
// TWICE: error: plan '{{.*}}.twice.json': line 1: the key is given twice at plan.units[0].name
// VERSION: error: plan '{{.*}}.version.json': a plan is an object with "version": 1
// NOUNITS: error: plan '{{.*}}.nounits.json': the plan has no array "units"
// ABSENT: error: cannot read the plan: {{.*}}absent.json
module {
  nn.parameter @tok_embeddings.weight : tensor<16x8xf32> init #nn.zeros
  nn.parameter @layers.0.w1.weight : tensor<8x8xf32> init #nn.zeros
  nn.parameter @layers.0.norm.weight : tensor<8xf32> init #nn.ones
  nn.parameter @layers.1.w1.weight : tensor<8x8xf32> init #nn.zeros
  nn.parameter @norm.weight : tensor<8xf32> init #nn.ones
  nn.parameter @output.weight : tensor<16x8xf32> init #nn.zeros
}
