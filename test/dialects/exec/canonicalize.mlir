// RUN: fsdp-opt %s --canonicalize | FileCheck %s

exec.range @x : memref<4x8xf32> role input
exec.range @y : memref<4xf32> role output

// A view of a view is one view: 8 elements, then 4 more. A view of everything
// under the same shape is its source. Work is never removed, an unused
// interval is.
// CHECK-LABEL: exec.program @views
exec.program @views {
  // CHECK-NEXT: %x = exec.get @x
  %x = exec.get @x : memref<4x8xf32>
  %y = exec.get @y : memref<4xf32>
  %all = exec.view %x[0] : memref<4x8xf32> to memref<4x8xf32>
  %rows = exec.view %all[8] : memref<4x8xf32> to memref<2x8xf32>
  // CHECK-NEXT: %y = exec.get @y
  // CHECK-NEXT: %[[V:.*]] = exec.view %x[12] : memref<4x8xf32> to memref<4xf32>
  %part = exec.view %rows[4] : memref<2x8xf32> to memref<4xf32>
  %unused = exec.alloc : memref<8xf32>
  // CHECK-NEXT: exec.copy on compute(%[[V]] : memref<4xf32>) outs(%y : memref<4xf32>)
  exec.copy on compute (%part : memref<4xf32>) outs(%y : memref<4xf32>)
  // CHECK-NEXT: }
}
