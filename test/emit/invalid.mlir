// RUN: rm -rf %t && split-file %s %t
// RUN: not fsdp-compile %t/unplanned.mlir --skip-exec-verify --emit=cpp 2>&1 | FileCheck %s --check-prefix=UNPLANNED
// RUN: not fsdp-compile %t/range.mlir --skip-exec-verify --emit=cpp 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not fsdp-compile %t/interval.mlir --skip-exec-verify --emit=cpp 2>&1 | FileCheck %s --check-prefix=INTERVAL
// RUN: not fsdp-compile %t/await.mlir --skip-exec-verify --emit=cpp 2>&1 | FileCheck %s --check-prefix=AWAIT
// RUN: not fsdp-compile %t/initialiser.mlir --skip-exec-verify --emit=cpp 2>&1 | FileCheck %s --check-prefix=INIT
// RUN: not fsdp-compile %t/scalar.mlir --skip-exec-verify --emit=cpp 2>&1 | FileCheck %s --check-prefix=SCALAR

// RUN: not fsdp-compile %t/placement.mlir --skip-exec-verify --emit=cpp 2>&1 | FileCheck %s --check-prefix=PLACEMENT
// RUN: not fsdp-compile %t/no-mesh.mlir --skip-exec-verify --emit=cpp 2>&1 | FileCheck %s --check-prefix=NOMESH
// RUN: not fsdp-compile %t/axis.mlir --skip-exec-verify --emit=cpp 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not fsdp-compile %t/part.mlir --skip-exec-verify --emit=cpp 2>&1 | FileCheck %s --check-prefix=PART
// RUN: not fsdp-compile %t/vector.mlir --skip-exec-verify --emit=cpp 2>&1 | FileCheck %s --check-prefix=VECTOR
// RUN: not fsdp-compile %t/columns.mlir --skip-exec-verify --emit=cuda --cxx g++ 2>&1 | FileCheck %s --check-prefix=COLUMNS

// RUN: not fsdp-compile %t/workspace.mlir --emit=cpp --workspaces=test 2>&1 | FileCheck %s --check-prefix=TEST
// RUN: not fsdp-compile %t/workspace.mlir --emit=cuda --cxx g++ 2>&1 | FileCheck %s --check-prefix=CUDA

// What cannot be spelled is an error at its place, with nothing printed.

// Text that does not say its target must suit the one that it is compiled for.
// TEST: workspace.mlir:6:5: error: 'exec.gemm' op has 0 bytes of workspace, but target test needs 64
// CUDA: workspace.mlir:6:5: error: 'exec.gemm' op has 0 bytes of workspace, but target cuda needs 33554432
//--- workspace.mlir
module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 128 : i64} {
  exec.program @p arena 128 {
    %a = exec.alloc at 0 : memref<4x4xf32>
    %b = exec.alloc at 64 : memref<4x4xf32>
    exec.fill_zero on compute () outs(%a : memref<4x4xf32>)
    exec.gemm on compute (%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%b : memref<4x4xf32>)
  }
}

// UNPLANNED: unplanned.mlir:0:0: error: the module's memory is not planned; run exec-plan-memory first
//--- unplanned.mlir
exec.program @p {
}

// RANGE: range.mlir:2:3: error: 'exec.range' op has no offset; run exec-plan-memory first
//--- range.mlir
module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 64 : i64} {
  exec.range @w : memref<4xf32> role parameter
  exec.program @p {
  }
}

// INIT: initialiser.mlir:2:3: error: 'exec.range' op has an initialiser the runtime does not know: "random"
//--- initialiser.mlir
module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 64 : i64} {
  exec.range @w : memref<4xf32> role parameter at 0 {init = "random"}
  exec.program @p {
  }
}

// PART: part.mlir:3:3: error: 'exec.range' op is 'memref<4xf32>', but a rank's shard of 'tensor<9xf32>' is 'tensor<5xf32>'
//--- part.mlir
module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 64 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 4]
  exec.range @w : memref<4xf32> role parameter at 0 {full = tensor<9xf32>, placement = #fsdp.placement<[{| "dp_shard":(2)2}]>}
  exec.program @p {
  }
}

// INTERVAL: interval.mlir:3:10: error: 'exec.alloc' op has no offset; run exec-plan-memory first
//--- interval.mlir
module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 64 : i64} {
  exec.program @p {
    %a = exec.alloc : memref<4xf32>
    exec.fill_zero on compute () outs(%a : memref<4xf32>)
  }
}

// AWAIT: await.mlir:6:5: error: 'exec.await' op has no spelling in C++
//--- await.mlir
module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 64 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 1]
  exec.program @p {
    %a = exec.alloc at 0 : memref<4xf32>
    %t = exec.collective all_gather on gather (%a : memref<4xf32>) outs(%a : memref<4xf32>) over @mesh["dp_shard"] -> !exec.token
    exec.await %t
  }
}

// SCALAR: scalar.mlir:6:12: error: 'math.sin' op has no spelling in C++
//--- scalar.mlir
module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 64 : i64} {
  exec.kernel @k over(1, 4) access [element, element] outputs 1 {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    exec.map {
      %a = exec.load %x : memref<4xf32> -> f32
      %b = math.sin %a : f32
      exec.store %b, %y : f32, memref<4xf32>
    }
  }
  exec.program @p {
  }
}

// NOMESH: no-mesh.mlir:2:3: error: 'exec.range' op has a placement, but there is no fsdp.mesh
//--- no-mesh.mlir
module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 64 : i64} {
  exec.range @w : memref<4xf32> role parameter at 0 {placement = #fsdp.placement<[{}]>}
  exec.program @p {
  }
}

// AXIS: axis.mlir:3:3: error: 'exec.range' op has a placement #fsdp.placement<[{"tp"}]> over #fsdp.axis_ref<"tp">, which mesh @mesh lacks
//--- axis.mlir
module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 64 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 4]
  exec.range @w : memref<4xf32> role parameter at 0 {full = tensor<8xf32>, placement = #fsdp.placement<[{"tp"}]>}
  exec.program @p {
  }
}

// PLACEMENT: placement.mlir:3:3: error: 'exec.range' op is partial, which the manifest cannot state: #fsdp.placement<[{}], partial = sum {"dp_shard"}>
//--- placement.mlir
module attributes {exec.persistent_bytes = 64 : i64, exec.arena_bytes = 64 : i64} {
  fsdp.mesh @mesh ["dp_shard" = 4]
  exec.range @w : memref<4xf32> role output at 0 {placement = #fsdp.placement<[{}], partial = sum {"dp_shard"}>}
  exec.program @p {
  }
}

// VECTOR: vector.mlir:5:12: error: 'arith.constant' op is not a number
//--- vector.mlir
module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 64 : i64} {
  exec.kernel @k over(1, 4) access [element] outputs 1 {
  ^bb0(%y: memref<4xf32>):
    exec.map {
      %a = arith.constant dense<0.0> : vector<4xf32>
    }
  }
  exec.program @p {
  }
}

// COLUMNS: columns.mlir:9:12: error: 'exec.load' op reads another column of an output, which another thread may not have written yet
//--- columns.mlir
module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 64 : i64} {
  exec.kernel @k over(1, 4) access [element, element] outputs 1 {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    exec.map {
      %i = exec.column
      %a = exec.load %x : memref<4xf32> -> f32
      exec.store %a, %y : f32, memref<4xf32>
      // The column that is read is this thread's, but not every index is.
      %b = exec.load %y at %i : memref<4xf32> -> f32
      exec.store %b, %y : f32, memref<4xf32>
    }
  }
  exec.program @p {
  }
}
