// RUN: fsdp-compile %s --skip-exec-verify --emit=cpp | FileCheck %s

// The manifest says of every dimension which axes shard it: a whole axis by its
// name, a part of one by the ranks before it and its own.

module attributes {exec.persistent_bytes = 256 : i64, exec.arena_bytes = 256 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 4, "tp" = 2]
  // CHECK: {"name":"w","role":"parameter","dtype":"f32","shape":[2,5],"offset":0,"bytes":40,"full":[10,5],"init":null,
  // CHECK-SAME: "placement":{"dims":[{"compute":["tp"],"storage":[{"axis":"dp_shard","pre":1,"size":2},{"axis":"dp_shard","pre":2,"size":2}]},{"compute":[],"storage":[]}]}}
  exec.range @w : memref<2x5xf32> role parameter at 0 {full = tensor<10x5xf32>,
      placement = #fsdp.placement<[{"tp" | "dp_shard":(1)2, "dp_shard":(2)2}, {}]>}
  // CHECK: {"name":"loss",{{.*}}"shape":[],{{.*}}"full":[],{{.*}}"placement":{"dims":[]}}
  exec.range @loss : memref<f32> role output at 64 {full = tensor<f32>, placement = #fsdp.placement<[]>}
  // CHECK: {"name":"own",{{.*}}"full":null,"init":null,"placement":null}
  exec.range @own : memref<f32> role output at 128
  exec.program @p arena 256 {
  }
}
