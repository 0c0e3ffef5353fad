// RUN: not fsdp-opt %s --fsdp-shard="mesh=dp_shard" 2>&1 | FileCheck %s --check-prefix=SYNTAX
// RUN: not fsdp-opt %s --fsdp-shard="mesh=dp_shard=0" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not fsdp-opt %s --fsdp-shard="mesh=a=2,a=2" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not fsdp-opt %s --fsdp-shard="mesh=a=2097152" 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not fsdp-opt %s --fsdp-shard="mesh=a=1048576,b=1048576" 2>&1 | FileCheck %s --check-prefix=RANKS
// RUN: not fsdp-opt %s --fsdp-shard="mesh=a=3 node_size=2" 2>&1 | FileCheck %s --check-prefix=NODE
// RUN: not fsdp-opt %s --fsdp-shard="mesh=a=2 reduce_dtype=f16" 2>&1 | FileCheck %s --check-prefix=DTYPE
// RUN: fsdp-opt %s --fsdp-shard="mesh=a=2" | not fsdp-opt --fsdp-shard="mesh=a=2" 2>&1 | FileCheck %s --check-prefix=AGAIN
// RUN: sed -e 's/^func.func @program.*/func.func @program(%x: tensor<3x2xf32>) {/' %s | not fsdp-opt --fsdp-shard="mesh=dp_shard=2" 2>&1 | FileCheck %s --check-prefix=BATCH
// RUN: sed -e 's/^  return/  "func.return"() : () -> () ^other: return/' %s | not fsdp-opt --fsdp-shard="mesh=a=2" 2>&1 | FileCheck %s --check-prefix=BRANCHES
// RUN: not fsdp-opt %s --fsdp-shard="mesh=a=2:date" 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not fsdp-opt %s --fsdp-shard="mesh=a:data=2" 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: fsdp-opt %s --fsdp-shard="mesh=dp_a=2,idle=1" 2>&1 | FileCheck %s --check-prefix=IDLE
// RUN: not fsdp-opt %s --fsdp-shard="mesh=a=2:tensor,b=2:tensor" 2>&1 | FileCheck %s --check-prefix=TENSOR

// Impossible meshes and types end with one message that names them.
// SYNTAX: error: mesh "dp_shard": expected NAME=SIZE with SIZE at least 1, got "dp_shard"
// ZERO: error: mesh "dp_shard=0": expected NAME=SIZE with SIZE at least 1, got "dp_shard=0"
// TWICE: error: 'fsdp.mesh' op has axis "a" twice
// AXIS: error: mesh "a=2097152": mesh axis "a" has 2097152 ranks, more than 1048576
// RANKS: error: 'fsdp.mesh' op has more than 1048576 ranks
// NODE: error: 'fsdp.mesh' op has node_size 2, which does not divide the world size 3
// DTYPE: error: reduce_dtype must be f32 or bf16, got "f16"
// ORDER: error: mesh "a:data=2": the kind of an axis stands after its size, NAME=SIZE:KIND, got "a:data=2"
// IDLE: warning: the 2 ranks of the axis "dp_a" compute the same: it has no kind, and no placement policy names it; write dp_a=2:data to split batches and parameters over it
// IDLE-NOT: warning:
// KIND: error: mesh "a=2:date": the kind of an axis is data or tensor, got "date"; did you mean 'data'?
// TENSOR: error: 'fsdp.mesh' op has 2 tensor axes, "a" and "b" among them, and the tensor-parallel plan is for one; name a placement policy
// AGAIN: error: the module is sharded already: it has an fsdp.mesh
// BATCH: error: argument 0 of @program is a batch of 3, which 2 data-parallel ranks do not divide
// BRANCHES: error: a program is one block without branches
func.func @program() {
  return
}
