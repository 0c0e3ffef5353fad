// RUN: fsdp-opt --exec-batch-casts %s | FileCheck %s

exec.range @a : memref<4x8xf32> role parameter
exec.range @b : memref<8xf32> role parameter

// Nobody launches it any more.
// CHECK-NOT: exec.kernel @cast over(1, 8)
exec.kernel @cast over(1, 8) access [element, element] outputs 1 {
^bb0(%x: memref<8xf32>, %y: memref<8xbf16>):
  exec.map {
    %0 = exec.load %x : memref<8xf32> -> f32
    exec.store %0, %y : f32, memref<8xbf16>
  }
}
// CHECK: exec.kernel @cast_2
exec.kernel @cast_2 over(4, 8) access [element, element] outputs 1 {
^bb0(%x: memref<4x8xf32>, %y: memref<4x8xbf16>):
  exec.map {
    %0 = exec.load %x : memref<4x8xf32> -> f32
    exec.store %0, %y : f32, memref<4x8xbf16>
  }
}

// No casts of all elements to bf16.
exec.kernel @widen over(1, 8) access [element, element] outputs 1 {
^bb0(%x: memref<8xbf16>, %y: memref<8xf32>):
  exec.map {
    %0 = exec.load %x : memref<8xbf16> -> f32
    exec.store %0, %y : f32, memref<8xf32>
  }
}
exec.kernel @rows over(4, 8) access [column, element] outputs 1 {
^bb0(%x: memref<8xf32>, %y: memref<4x8xbf16>):
  exec.map {
    %0 = exec.load %x : memref<8xf32> -> f32
    exec.store %0, %y : f32, memref<4x8xbf16>
  }
}
exec.kernel @twice over(1, 8) access [element, element] outputs 1 {
^bb0(%x: memref<8xf32>, %y: memref<8xbf16>):
  exec.map {
    %0 = exec.load %x : memref<8xf32> -> f32
    %1 = arith.addf %0, %0 : f32
    exec.store %1, %y : f32, memref<8xbf16>
  }
}

// What only names bytes is no work: the three are one, where the last was.
// CHECK-LABEL: exec.program @row
// CHECK: %[[A:.*]] = exec.get @a
// CHECK: %[[B:.*]] = exec.get @b
// CHECK-NOT: exec.launch
// CHECK: exec.narrow on compute(%[[A]], %[[B]], %[[A]] : memref<4x8xf32>, memref<8xf32>, memref<4x8xf32>) outs(%[[C:.*]], %[[D:.*]], %[[E:.*]] : memref<4x8xbf16>, memref<8xbf16>, memref<4x8xbf16>) {nn.module = "layers.1"}
// CHECK: exec.copy
exec.program @row {
  %a = exec.get @a : memref<4x8xf32>
  %c = exec.alloc : memref<4x8xbf16>
  exec.launch @cast_2 on compute (%a : memref<4x8xf32>) outs(%c : memref<4x8xbf16>) {nn.module = "layers.1.attention.wq"}
  %b = exec.get @b : memref<8xf32>
  %d = exec.alloc : memref<8xbf16>
  exec.launch @cast on compute (%b : memref<8xf32>) outs(%d : memref<8xbf16>) {nn.module = "layers.1.norm"}
  %e = exec.alloc : memref<4x8xbf16>
  exec.launch @cast_2 on compute (%a : memref<4x8xf32>) outs(%e : memref<4x8xbf16>) {nn.module = "layers.1.attention.wk"}
  %f = exec.alloc : memref<4x8xbf16>
  exec.copy on compute (%c : memref<4x8xbf16>) outs(%f : memref<4x8xbf16>)
}

// One alone stays a kernel; other work is between the rows.
// CHECK-LABEL: exec.program @alone
// CHECK: exec.launch @cast_2
// CHECK-NEXT: exec.copy
// CHECK-NEXT: exec.narrow
// CHECK-NEXT: exec.launch @widen
// CHECK-NEXT: exec.launch @rows
// CHECK-NEXT: exec.launch @twice
// CHECK-NEXT: }
exec.program @alone {
  %a = exec.get @a : memref<4x8xf32>
  %b = exec.get @b : memref<8xf32>
  %c = exec.alloc : memref<4x8xbf16>
  %d = exec.alloc : memref<8xbf16>
  %e = exec.alloc : memref<4x8xbf16>
  %f = exec.alloc : memref<8xf32>
  exec.launch @cast_2 on compute (%a : memref<4x8xf32>) outs(%c : memref<4x8xbf16>)
  exec.copy on compute (%c : memref<4x8xbf16>) outs(%e : memref<4x8xbf16>)
  exec.launch @cast on compute (%b : memref<8xf32>) outs(%d : memref<8xbf16>)
  exec.launch @cast_2 on compute (%a : memref<4x8xf32>) outs(%e : memref<4x8xbf16>)
  exec.launch @widen on compute (%d : memref<8xbf16>) outs(%f : memref<8xf32>)
  exec.launch @rows on compute (%b : memref<8xf32>) outs(%e : memref<4x8xbf16>)
  exec.launch @twice on compute (%b : memref<8xf32>) outs(%d : memref<8xbf16>)
}
