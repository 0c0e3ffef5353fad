// RUN: fsdp-opt --exec-outline=min-saved=1 --exec-verify --split-input-file %s | FileCheck %s
// RUN: fsdp-opt --exec-outline=min-saved=1 --mlir-print-debuginfo --mlir-print-local-scope --split-input-file %s | FileCheck %s --check-prefix=NAMES
// RUN: fsdp-opt --exec-outline --exec-verify --split-input-file %s | FileCheck %s --check-prefix=DEFAULT

// The attribute `step` tells the operations of a block apart, as kernels and
// shapes do in a real program.

// Two copies of a block of four operations: a function of 4 and 2 calls in
// place of 8 statements save 2. What differs is an argument, in order of first
// use, once per buffer. %x is at 192 in both copies and holds nothing outside
// of its copy: it stays inside. %c is at 128 in both, but carries something
// from copy to copy, and an interval inside would be another one in each call.

// CHECK-LABEL: exec.func @train_block_0
// CHECK-NEXT: ^bb0(%[[C:.*]]: memref<16xf32>, %[[H:.*]]: memref<32xf32>, %[[W:.*]]: memref<16xf32>):
// CHECK-NEXT: %[[X:.*]] = exec.alloc at 192 "x"
// CHECK-NEXT: exec.copy on compute(%[[C]] : memref<16xf32>) outs(%[[X]]
// CHECK-NEXT: %[[LOW:.*]] = exec.view %[[H]][0] :
// CHECK-NEXT: exec.copy on compute(%[[X]] : memref<16xf32>) outs(%[[LOW]]
// CHECK-NEXT: %[[HIGH:.*]] = exec.view %[[H]][16] :
// CHECK-NEXT: exec.copy on compute(%[[W]] : memref<16xf32>) outs(%[[HIGH]]
// CHECK-NEXT: exec.copy on compute(%[[LOW]] : memref<16xf32>) outs(%[[C]] : memref<16xf32>) {{.*}}
// CHECK-NEXT: }
// CHECK-LABEL: exec.program @train
// CHECK: %[[A:.*]] = exec.get @a
// CHECK: %[[B:.*]] = exec.get @b
// CHECK: %[[CARRIED:.*]] = exec.alloc at 128 "c"
// CHECK: exec.copy
// CHECK: %[[H0:.*]] = exec.alloc at 256 "h0"
// CHECK-NOT: exec.view
// CHECK: exec.call @train_block_0(%[[CARRIED]], %[[H0]], %[[A]]) events [] : memref<16xf32>, memref<32xf32>, memref<16xf32>
// CHECK: %[[H1:.*]] = exec.alloc at 384 "h1"
// CHECK: exec.call @train_block_0(%[[CARRIED]], %[[H1]], %[[B]]) events []
// CHECK-NOT: exec.copy

// By default a function must save eight statements.
// DEFAULT-NOT: exec.func @train_block
// DEFAULT-LABEL: exec.program @train
module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 512 : i64} {
  exec.range @a : memref<16xf32> role parameter at 0
  exec.range @b : memref<16xf32> role parameter at 64
  exec.program @train arena 512 attributes {exec.reads = ["a", "b"], exec.writes = []} {
    %a = exec.get @a : memref<16xf32>
    %b = exec.get @b : memref<16xf32>
    %c = exec.alloc at 128 "c" : memref<16xf32>
    exec.copy on compute (%a : memref<16xf32>) outs(%c : memref<16xf32>)
    %x0 = exec.alloc at 192 "x" : memref<16xf32>
    %h0 = exec.alloc at 256 "h0" : memref<32xf32>
    %low0 = exec.view %h0[0] : memref<32xf32> to memref<16xf32>
    %high0 = exec.view %h0[16] : memref<32xf32> to memref<16xf32>
    exec.copy on compute (%c : memref<16xf32>) outs(%x0 : memref<16xf32>) {step = 1}
    exec.copy on compute (%x0 : memref<16xf32>) outs(%low0 : memref<16xf32>) {step = 2}
    exec.copy on compute (%a : memref<16xf32>) outs(%high0 : memref<16xf32>) {step = 3}
    exec.copy on compute (%low0 : memref<16xf32>) outs(%c : memref<16xf32>) {step = 4}
    %x1 = exec.alloc at 192 "x" : memref<16xf32>
    %h1 = exec.alloc at 384 "h1" : memref<32xf32>
    %low1 = exec.view %h1[0] : memref<32xf32> to memref<16xf32>
    %high1 = exec.view %h1[16] : memref<32xf32> to memref<16xf32>
    exec.copy on compute (%c : memref<16xf32>) outs(%x1 : memref<16xf32>) {step = 1}
    exec.copy on compute (%x1 : memref<16xf32>) outs(%low1 : memref<16xf32>) {step = 2}
    exec.copy on compute (%b : memref<16xf32>) outs(%high1 : memref<16xf32>) {step = 3}
    exec.copy on compute (%low1 : memref<16xf32>) outs(%c : memref<16xf32>) {step = 4}
  }
}

// -----

// Identity, not place, decides. %x is at one place in both copies, but the
// second is read after its copy, through a view: an argument. %y is one
// interval that both copies use, each writing it first: an argument too.
// (%z is at one place and each copy's own: it stays inside.)

// CHECK-LABEL: exec.func @train_block_0
// CHECK-NEXT: ^bb0(%[[X:.*]]: memref<16xf32>, %[[Y:.*]]: memref<16xf32>):
// CHECK: exec.copy {{.*}} outs(%[[X]]
// CHECK: exec.copy {{.*}} outs(%[[Y]]
// CHECK-NEXT: %[[Z:.*]] = exec.alloc at 256
// CHECK-NEXT: exec.copy on compute(%[[Y]] : memref<16xf32>) outs(%[[Z]]
// CHECK-LABEL: exec.program @train
// CHECK: exec.call @train_block_0(%[[X0:.*]], %[[SHARED:.*]]) events
// CHECK: exec.call @train_block_0(%[[X1:.*]], %[[SHARED]]) events
// CHECK: %[[PART:.*]] = exec.view %[[X1]][0]
// CHECK: exec.copy on compute(%[[PART]]
module attributes {exec.persistent_bytes = 128 : i64, exec.arena_bytes = 320 : i64} {
  exec.range @a : memref<16xf32> role parameter at 0
  exec.range @b : memref<8xf32> role parameter at 64
  exec.program @train arena 320 attributes {exec.reads = ["a"], exec.writes = ["a", "b"]} {
    %a = exec.get @a : memref<16xf32>
    %b = exec.get @b : memref<8xf32>
    %y = exec.alloc at 192 : memref<16xf32>
    %x0 = exec.alloc at 128 : memref<16xf32>
    %z0 = exec.alloc at 256 : memref<16xf32>
    exec.copy on compute (%a : memref<16xf32>) outs(%x0 : memref<16xf32>) {step = 1}
    exec.copy on compute (%x0 : memref<16xf32>) outs(%y : memref<16xf32>) {step = 2}
    exec.copy on compute (%y : memref<16xf32>) outs(%z0 : memref<16xf32>) {step = 3}
    exec.copy on compute (%z0 : memref<16xf32>) outs(%a : memref<16xf32>) {step = 4}
    %x1 = exec.alloc at 128 : memref<16xf32>
    %z1 = exec.alloc at 256 : memref<16xf32>
    exec.copy on compute (%a : memref<16xf32>) outs(%x1 : memref<16xf32>) {step = 1}
    exec.copy on compute (%x1 : memref<16xf32>) outs(%y : memref<16xf32>) {step = 2}
    exec.copy on compute (%y : memref<16xf32>) outs(%z1 : memref<16xf32>) {step = 3}
    exec.copy on compute (%z1 : memref<16xf32>) outs(%a : memref<16xf32>) {step = 4}
    %part = exec.view %x1[0] : memref<16xf32> to memref<8xf32>
    exec.copy on compute (%part : memref<8xf32>) outs(%b : memref<8xf32>) {step = 5}
  }
}

// -----

// Events inside a function are numbers in the call's list. The wait and the
// record of each copy belong to it; what a collective serves gets a star where
// the copies differ, and so do the names of buffers and operations.

// NAMES-LABEL: exec.func @train_layers_0
// NAMES-NEXT: ^bb0(%{{.*}}: memref<16xf32> loc("layers.*.w"), %{{.*}}: memref<16xf32> loc("layers.*.full")):
// NAMES: exec.copy {{.*}} {nn.module = "layers.*.use"}
// NAMES: exec.copy {{.*}} {nn.module = "layers.*.update"}

// CHECK-LABEL: exec.func @train_layers_0
// CHECK-NEXT: ^bb0(%[[W:.*]]: memref<16xf32>, %[[F:.*]]: memref<16xf32>):
// CHECK-NEXT: exec.wait 0 on gather
// CHECK-NEXT: exec.collective all_gather on gather(%[[W]] : memref<16xf32>) outs(%[[F]] : memref<16xf32>) over @mesh["dp_shard"] {serves = #fsdp.origin<all "fwd layers.*">}
// CHECK-NEXT: exec.record 1 on gather
// CHECK-NEXT: exec.wait 1 on compute
// CHECK-NEXT: %[[Y:.*]] = exec.get @y
// CHECK-NEXT: exec.copy on compute(%[[F]] : memref<16xf32>) outs(%[[Y]] : memref<16xf32>)
// CHECK-NEXT: exec.copy {{.*}} outs(%[[W]] : memref<16xf32>)
// CHECK-NEXT: exec.record 2 on compute
// CHECK-NEXT: }
// CHECK-LABEL: exec.program @train
// CHECK: exec.record 0 on compute
// CHECK: exec.call @train_layers_0({{.*}}) events [0, 1, 2]
// CHECK: exec.call @train_layers_0({{.*}}) events [2, 3, 4]
// CHECK-NOT: exec.collective

module attributes {exec.persistent_bytes = 192 : i64, exec.arena_bytes = 320 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 1]
  exec.range @layers.9.w : memref<16xf32> role parameter at 0
  exec.range @layers.10.w : memref<16xf32> role parameter at 64
  exec.range @y : memref<16xf32> role output at 128
  exec.program @train arena 320 attributes {exec.reads = ["layers.9.w", "layers.10.w"], exec.writes = ["y", "layers.9.w", "layers.10.w"]} {
    %w0 = exec.get @layers.9.w : memref<16xf32>
    %w1 = exec.get @layers.10.w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    exec.record 0 on compute
    %f0 = exec.alloc at 192 "layers.9.full" : memref<16xf32>
    exec.wait 0 on gather
    exec.collective all_gather on gather (%w0 : memref<16xf32>) outs(%f0 : memref<16xf32>) over @mesh["dp_shard"] {serves = #fsdp.origin<all "fwd layers.9">}
    exec.record 1 on gather
    exec.wait 1 on compute
    exec.copy on compute (%f0 : memref<16xf32>) outs(%y : memref<16xf32>) {nn.module = "layers.9.use"}
    exec.copy on compute (%y : memref<16xf32>) outs(%w0 : memref<16xf32>) {nn.module = "layers.9.update"}
    exec.record 2 on compute
    %f1 = exec.alloc at 256 "layers.10.full" : memref<16xf32>
    exec.wait 2 on gather
    exec.collective all_gather on gather (%w1 : memref<16xf32>) outs(%f1 : memref<16xf32>) over @mesh["dp_shard"] {serves = #fsdp.origin<all "fwd layers.10">}
    exec.record 3 on gather
    exec.wait 3 on compute
    exec.copy on compute (%f1 : memref<16xf32>) outs(%y : memref<16xf32>) {nn.module = "layers.10.use"}
    exec.copy on compute (%y : memref<16xf32>) outs(%w1 : memref<16xf32>) {nn.module = "layers.10.update"}
    exec.record 4 on compute
  }
}

// -----

// What a collective serves is of one phase: copies in two phases are not alike.

// CHECK-NOT: exec.func
// CHECK-LABEL: exec.program @train
// CHECK: exec.collective all_gather {{.*}} {serves = #fsdp.origin<all "fwd layers.9">}
// CHECK: exec.collective all_gather {{.*}} {serves = #fsdp.origin<all "again layers.10">}

module attributes {exec.persistent_bytes = 192 : i64, exec.arena_bytes = 320 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 1]
  exec.range @layers.9.w : memref<16xf32> role parameter at 0
  exec.range @layers.10.w : memref<16xf32> role parameter at 64
  exec.range @y : memref<16xf32> role output at 128
  exec.program @train arena 320 attributes {exec.reads = ["layers.9.w", "layers.10.w"], exec.writes = ["y", "layers.9.w", "layers.10.w"]} {
    %w0 = exec.get @layers.9.w : memref<16xf32>
    %w1 = exec.get @layers.10.w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    exec.record 0 on compute
    %f0 = exec.alloc at 192 "layers.9.full" : memref<16xf32>
    exec.wait 0 on gather
    exec.collective all_gather on gather (%w0 : memref<16xf32>) outs(%f0 : memref<16xf32>) over @mesh["dp_shard"] {serves = #fsdp.origin<all "fwd layers.9">}
    exec.record 1 on gather
    exec.wait 1 on compute
    exec.copy on compute (%f0 : memref<16xf32>) outs(%y : memref<16xf32>) {nn.module = "layers.9.use"}
    exec.copy on compute (%y : memref<16xf32>) outs(%w0 : memref<16xf32>) {nn.module = "layers.9.update"}
    exec.record 2 on compute
    %f1 = exec.alloc at 256 "layers.10.full" : memref<16xf32>
    exec.wait 2 on gather
    exec.collective all_gather on gather (%w1 : memref<16xf32>) outs(%f1 : memref<16xf32>) over @mesh["dp_shard"] {serves = #fsdp.origin<all "again layers.10">}
    exec.record 3 on gather
    exec.wait 3 on compute
    exec.copy on compute (%f1 : memref<16xf32>) outs(%y : memref<16xf32>) {nn.module = "layers.10.use"}
    exec.copy on compute (%y : memref<16xf32>) outs(%w1 : memref<16xf32>) {nn.module = "layers.10.update"}
    exec.record 4 on compute
  }
}

// -----

// Four copies of four operations; between the second and the third operation
// no two copies have the same events. Split there, 2 + 4 + 2 + 4 = 12 statements
// remain of 16; the events at the split stay in the program.

// CHECK-LABEL: exec.func @train_block_0
// CHECK: step = 1
// CHECK-NEXT: step = 2 : i64}{{$}}
// CHECK-NEXT: }
// CHECK-LABEL: exec.func @train_block_1
// CHECK: step = 3
// CHECK-NEXT: step = 4 : i64}{{$}}
// CHECK-NEXT: }
// CHECK-LABEL: exec.program @train
// CHECK: exec.call @train_block_0
// CHECK-NEXT: exec.call @train_block_1
// CHECK: exec.call @train_block_0
// CHECK-NEXT: exec.record 0 on compute
// CHECK-NEXT: exec.call @train_block_1
// CHECK: exec.call @train_block_0
// CHECK-NEXT: exec.wait 0 on compute
// CHECK-NEXT: exec.call @train_block_1
// CHECK: exec.call @train_block_0
// CHECK-NEXT: exec.record 1 on compute
// CHECK-NEXT: exec.wait 1 on compute
// CHECK-NEXT: exec.call @train_block_1
// CHECK-NOT: exec.copy
module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 320 : i64} {
  exec.range @x : memref<16xf32> role input at 0
  exec.program @train arena 320 attributes {exec.inputs = ["x"], exec.reads = ["x"], exec.writes = ["x"]} {
    %x = exec.get @x : memref<16xf32>
    %a0 = exec.alloc at 64 : memref<16xf32>
    exec.copy on compute (%x : memref<16xf32>) outs(%a0 : memref<16xf32>) {step = 1}
    exec.copy on compute (%a0 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 2}
    exec.copy on compute (%x : memref<16xf32>) outs(%a0 : memref<16xf32>) {step = 3}
    exec.copy on compute (%a0 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 4}
    %a1 = exec.alloc at 128 : memref<16xf32>
    exec.copy on compute (%x : memref<16xf32>) outs(%a1 : memref<16xf32>) {step = 1}
    exec.copy on compute (%a1 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 2}
    exec.record 0 on compute
    exec.copy on compute (%x : memref<16xf32>) outs(%a1 : memref<16xf32>) {step = 3}
    exec.copy on compute (%a1 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 4}
    %a2 = exec.alloc at 192 : memref<16xf32>
    exec.copy on compute (%x : memref<16xf32>) outs(%a2 : memref<16xf32>) {step = 1}
    exec.copy on compute (%a2 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 2}
    exec.wait 0 on compute
    exec.copy on compute (%x : memref<16xf32>) outs(%a2 : memref<16xf32>) {step = 3}
    exec.copy on compute (%a2 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 4}
    %a3 = exec.alloc at 256 : memref<16xf32>
    exec.copy on compute (%x : memref<16xf32>) outs(%a3 : memref<16xf32>) {step = 1}
    exec.copy on compute (%a3 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 2}
    exec.record 1 on compute
    exec.wait 1 on compute
    exec.copy on compute (%x : memref<16xf32>) outs(%a3 : memref<16xf32>) {step = 3}
    exec.copy on compute (%a3 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 4}
  }
}

// -----

// Five copies of four operations, one with an event of its own: it stays in
// the program (4 + 4 calls + 4 = 12 statements; split, 2 + 5 + 2 + 5 = 14).

// CHECK-LABEL: exec.func @train_block_0
// CHECK-COUNT-4: exec.copy {{.*$}}
// CHECK-NEXT: }
// CHECK-LABEL: exec.program @train
// CHECK-COUNT-2: exec.call @train_block_0
// CHECK: exec.copy {{.*}} {step = 1 : i64}
// CHECK-NEXT: exec.copy {{.*}} {step = 2 : i64}
// CHECK-NEXT: exec.record 0 on compute
// CHECK-NEXT: exec.copy {{.*}} {step = 3 : i64}
// CHECK-NEXT: exec.copy {{.*}} {step = 4 : i64}
// CHECK-COUNT-2: exec.call @train_block_0
// CHECK-NOT: exec.copy
// It saves 4 * 3 - 4 = 8 statements, which the default limit just allows.
// DEFAULT-LABEL: exec.func @train_block_0
module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 384 : i64} {
  exec.range @x : memref<16xf32> role input at 0
  exec.program @train arena 384 attributes {exec.inputs = ["x"], exec.reads = ["x"], exec.writes = ["x"]} {
    %x = exec.get @x : memref<16xf32>
    %a0 = exec.alloc at 64 : memref<16xf32>
    exec.copy on compute (%x : memref<16xf32>) outs(%a0 : memref<16xf32>) {step = 1}
    exec.copy on compute (%a0 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 2}
    exec.copy on compute (%x : memref<16xf32>) outs(%a0 : memref<16xf32>) {step = 3}
    exec.copy on compute (%a0 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 4}
    %a1 = exec.alloc at 128 : memref<16xf32>
    exec.copy on compute (%x : memref<16xf32>) outs(%a1 : memref<16xf32>) {step = 1}
    exec.copy on compute (%a1 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 2}
    exec.copy on compute (%x : memref<16xf32>) outs(%a1 : memref<16xf32>) {step = 3}
    exec.copy on compute (%a1 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 4}
    %a2 = exec.alloc at 192 : memref<16xf32>
    exec.copy on compute (%x : memref<16xf32>) outs(%a2 : memref<16xf32>) {step = 1}
    exec.copy on compute (%a2 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 2}
    exec.record 0 on compute
    exec.copy on compute (%x : memref<16xf32>) outs(%a2 : memref<16xf32>) {step = 3}
    exec.copy on compute (%a2 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 4}
    %a3 = exec.alloc at 256 : memref<16xf32>
    exec.copy on compute (%x : memref<16xf32>) outs(%a3 : memref<16xf32>) {step = 1}
    exec.copy on compute (%a3 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 2}
    exec.copy on compute (%x : memref<16xf32>) outs(%a3 : memref<16xf32>) {step = 3}
    exec.copy on compute (%a3 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 4}
    %a4 = exec.alloc at 320 : memref<16xf32>
    exec.copy on compute (%x : memref<16xf32>) outs(%a4 : memref<16xf32>) {step = 1}
    exec.copy on compute (%a4 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 2}
    exec.copy on compute (%x : memref<16xf32>) outs(%a4 : memref<16xf32>) {step = 3}
    exec.copy on compute (%a4 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 4}
  }
}

// -----

// A forward block and a backward block, repeated one after the other, and a
// second program that repeats the forward block: it calls the same function.

// CHECK-LABEL: exec.func @train_block_0
// CHECK: step = 1
// CHECK-NEXT: step = 2
// CHECK-NEXT: step = 3 : i64}{{$}}
// CHECK-NEXT: }
// CHECK-LABEL: exec.func @train_block_1
// CHECK: step = 4
// CHECK-NEXT: step = 5
// CHECK-NEXT: step = 6 : i64}{{$}}
// CHECK-NEXT: }
// CHECK-LABEL: exec.program @train
// CHECK-COUNT-2: exec.call @train_block_0
// CHECK-COUNT-2: exec.call @train_block_1
// CHECK-NOT: exec.func
// CHECK-LABEL: exec.program @evaluate
// CHECK-COUNT-2: exec.call @train_block_0
module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 192 : i64} {
  exec.range @x : memref<16xf32> role input at 0
  exec.program @train arena 192 attributes {exec.inputs = ["x"], exec.reads = ["x"], exec.writes = ["x"]} {
    %x = exec.get @x : memref<16xf32>
    %a0 = exec.alloc at 64 : memref<16xf32>
    %a1 = exec.alloc at 128 : memref<16xf32>
    exec.copy on compute (%x : memref<16xf32>) outs(%a0 : memref<16xf32>) {step = 1}
    exec.copy on compute (%a0 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 2}
    exec.copy on compute (%x : memref<16xf32>) outs(%a0 : memref<16xf32>) {step = 3}
    exec.copy on compute (%x : memref<16xf32>) outs(%a1 : memref<16xf32>) {step = 1}
    exec.copy on compute (%a1 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 2}
    exec.copy on compute (%x : memref<16xf32>) outs(%a1 : memref<16xf32>) {step = 3}
    exec.copy on compute (%a1 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 4}
    exec.copy on compute (%x : memref<16xf32>) outs(%a1 : memref<16xf32>) {step = 5}
    exec.copy on compute (%a1 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 6}
    exec.copy on compute (%a0 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 4}
    exec.copy on compute (%x : memref<16xf32>) outs(%a0 : memref<16xf32>) {step = 5}
    exec.copy on compute (%a0 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 6}
  }
  exec.program @evaluate arena 192 attributes {exec.inputs = ["x"], exec.reads = ["x"], exec.writes = ["x"]} {
    %x = exec.get @x : memref<16xf32>
    %a0 = exec.alloc at 64 : memref<16xf32>
    %a1 = exec.alloc at 128 : memref<16xf32>
    exec.copy on compute (%x : memref<16xf32>) outs(%a0 : memref<16xf32>) {step = 1}
    exec.copy on compute (%a0 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 2}
    exec.copy on compute (%x : memref<16xf32>) outs(%a0 : memref<16xf32>) {step = 3}
    exec.copy on compute (%x : memref<16xf32>) outs(%a1 : memref<16xf32>) {step = 1}
    exec.copy on compute (%a1 : memref<16xf32>) outs(%x : memref<16xf32>) {step = 2}
    exec.copy on compute (%x : memref<16xf32>) outs(%a1 : memref<16xf32>) {step = 3}
  }
}

// -----

// What the work of a block makes differs from copy to copy, so the calls say it;
// work without an address is called after its module and itself.
// CHECK: exec.func @train_layers_0
// CHECK-NOT: exec.makes
// CHECK: exec.program @train
// CHECK: exec.call @train_layers_0({{.*}}) events [] {exec.makes = ["fwd layers.0 a", ["p", "q"], "layers.0 copy"]}
// CHECK: exec.call @train_layers_0({{.*}}) events [] {exec.makes = ["fwd layers.1 a", ["r", "s"], "layers.1 copy"]}
module attributes {exec.arena_bytes = 576 : i64, exec.persistent_bytes = 64 : i64} {
  exec.range @x : memref<16xf32> role input at 0
  exec.program @train arena 576 attributes {exec.inputs = ["x"], exec.reads = ["x"], exec.writes = ["x"]} {
    %x = exec.get @x : memref<16xf32>
    %a = exec.alloc at 64 : memref<16xf32>
    %b = exec.alloc at 128 : memref<16xbf16>
    %c = exec.alloc at 192 : memref<16xbf16>
    %d = exec.alloc at 320 : memref<16xf32>
    %e = exec.alloc at 384 : memref<16xbf16>
    %f = exec.alloc at 448 : memref<16xbf16>
    exec.copy on compute (%x : memref<16xf32>) outs(%a : memref<16xf32>) {exec.makes = "fwd layers.0 a", nn.module = "layers.0"}
    exec.narrow on compute (%x, %a : memref<16xf32>, memref<16xf32>) outs(%b, %c : memref<16xbf16>, memref<16xbf16>) {exec.makes = ["p", "q"], nn.module = "layers.0"}
    exec.copy on compute (%a : memref<16xf32>) outs(%x : memref<16xf32>) {nn.module = "layers.0"}
    exec.copy on compute (%x : memref<16xf32>) outs(%d : memref<16xf32>) {exec.makes = "fwd layers.1 a", nn.module = "layers.1"}
    exec.narrow on compute (%x, %d : memref<16xf32>, memref<16xf32>) outs(%e, %f : memref<16xbf16>, memref<16xbf16>) {exec.makes = ["r", "s"], nn.module = "layers.1"}
    exec.copy on compute (%d : memref<16xf32>) outs(%x : memref<16xf32>) {nn.module = "layers.1"}
  }
}

// -----

// The first block writes one buffer twice, the second two buffers at its place: a function that named two buffers
// itself would not have the first block's one, so both are arguments.
// CHECK: exec.func @reuse_layers_0 {
// CHECK-NEXT: ^bb0(%{{.*}}: memref<16xf32>, %{{.*}}: memref<16xf32>):
// CHECK-NOT: exec.alloc
// CHECK: exec.program @reuse
// CHECK: %[[ONE:.*]] = exec.alloc at 64
// CHECK: exec.call @reuse_layers_0(%[[ONE]], %[[ONE]]) events []
// CHECK: %[[TWO:.*]] = exec.alloc at 64
// CHECK: %[[THREE:.*]] = exec.alloc at 64
// CHECK: exec.call @reuse_layers_0(%[[TWO]], %[[THREE]]) events []
module attributes {exec.arena_bytes = 128 : i64, exec.persistent_bytes = 64 : i64} {
  exec.range @x : memref<16xf32> role input at 0
  exec.program @reuse arena 128 attributes {exec.inputs = ["x"], exec.reads = ["x"], exec.writes = ["x"]} {
    %x = exec.get @x : memref<16xf32>
    %a = exec.alloc at 64 : memref<16xf32>
    exec.copy on compute (%x : memref<16xf32>) outs(%a : memref<16xf32>) {step = 0, nn.module = "layers.0"}
    exec.copy on compute (%a : memref<16xf32>) outs(%x : memref<16xf32>) {step = 1, nn.module = "layers.0"}
    exec.copy on compute (%x : memref<16xf32>) outs(%a : memref<16xf32>) {step = 2, nn.module = "layers.0"}
    exec.copy on compute (%a : memref<16xf32>) outs(%x : memref<16xf32>) {step = 3, nn.module = "layers.0"}
    %b = exec.alloc at 64 : memref<16xf32>
    exec.copy on compute (%x : memref<16xf32>) outs(%b : memref<16xf32>) {step = 0, nn.module = "layers.1"}
    exec.copy on compute (%b : memref<16xf32>) outs(%x : memref<16xf32>) {step = 1, nn.module = "layers.1"}
    %c = exec.alloc at 64 : memref<16xf32>
    exec.copy on compute (%x : memref<16xf32>) outs(%c : memref<16xf32>) {step = 2, nn.module = "layers.1"}
    exec.copy on compute (%c : memref<16xf32>) outs(%x : memref<16xf32>) {step = 3, nn.module = "layers.1"}
  }
}

// -----

// Ranges that are read as one are one buffer of a block, and another than the first
// of them alone.
// CHECK-LABEL: exec.func @adjacent_block_0
// CHECK-NEXT: ^bb0(%[[ALL:.*]]: memref<32xf32>, %[[H:.*]]: memref<32xf32>, %[[ONE:.*]]: memref<16xf32>, %[[L:.*]]: memref<16xf32>):
// CHECK-NEXT: exec.copy on compute(%[[ALL]] : memref<32xf32>) outs(%[[H]]
// CHECK-NEXT: exec.copy on compute(%[[ONE]] : memref<16xf32>) outs(%[[L]]
// CHECK-NEXT: %[[HIGH:.*]] = exec.view %[[ALL]][16] :
// CHECK-NEXT: exec.copy on compute(%[[HIGH]] : memref<16xf32>) outs(%[[L]]
// CHECK-LABEL: exec.program @adjacent
// CHECK: exec.call @adjacent_block_0(%a, %{{.*}}, %{{.*}}, %{{.*}})
// CHECK: exec.call @adjacent_block_0(%c, %{{.*}}, %{{.*}}, %{{.*}})
// NAMES-LABEL: exec.func @adjacent_block_0
// DEFAULT-LABEL: exec.program @adjacent
module attributes {exec.persistent_bytes = 256 : i64, exec.arena_bytes = 640 : i64} {
  exec.range @a : memref<16xf32> role parameter at 0
  exec.range @b : memref<16xf32> role parameter at 64
  exec.range @c : memref<16xf32> role parameter at 128
  exec.range @d : memref<16xf32> role parameter at 192
  exec.program @adjacent arena 640 attributes {exec.reads = ["a", "b", "c", "d"], exec.writes = []} {
    %a = exec.get @a adjacent [@b] : memref<32xf32>
    %c = exec.get @c adjacent [@d] : memref<32xf32>
    %a0 = exec.get @a : memref<16xf32>
    %c0 = exec.get @c : memref<16xf32>
    %b = exec.view %a[16] : memref<32xf32> to memref<16xf32>
    %d = exec.view %c[16] : memref<32xf32> to memref<16xf32>
    %h0 = exec.alloc at 256 "h0" : memref<32xf32>
    %l0 = exec.alloc at 384 "l0" : memref<16xf32>
    exec.copy on compute (%a : memref<32xf32>) outs(%h0 : memref<32xf32>) {step = 1}
    exec.copy on compute (%a0 : memref<16xf32>) outs(%l0 : memref<16xf32>) {step = 2}
    exec.copy on compute (%b : memref<16xf32>) outs(%l0 : memref<16xf32>) {step = 3}
    %h1 = exec.alloc at 448 "h1" : memref<32xf32>
    %l1 = exec.alloc at 576 "l1" : memref<16xf32>
    exec.copy on compute (%c : memref<32xf32>) outs(%h1 : memref<32xf32>) {step = 1}
    exec.copy on compute (%c0 : memref<16xf32>) outs(%l1 : memref<16xf32>) {step = 2}
    exec.copy on compute (%d : memref<16xf32>) outs(%l1 : memref<16xf32>) {step = 3}
  }
}
