// RUN: fsdp-opt --exec-batch-casts --split-input-file --verify-diagnostics %s

exec.range @a : memref<8xf32> role parameter at 0
exec.kernel @cast over(1, 8) access [element, element] outputs 1 {
^bb0(%x: memref<8xf32>, %y: memref<8xbf16>):
  exec.map {
    %0 = exec.load %x : memref<8xf32> -> f32
    exec.store %0, %y : f32, memref<8xbf16>
  }
}
// The second cast may write where the first one's result was.
// expected-error @below {{'exec.program' op has its arena already; exec-batch-casts comes before exec-plan-memory}}
exec.program @planned arena 128 {
  %a = exec.get @a : memref<8xf32>
  %b = exec.alloc at 64 : memref<8xbf16>
  exec.launch @cast on compute (%a : memref<8xf32>) outs(%b : memref<8xbf16>)
  %c = exec.alloc at 64 : memref<8xbf16>
  exec.launch @cast on compute (%a : memref<8xf32>) outs(%c : memref<8xbf16>)
}

// -----

exec.program @placed {
  // expected-error @below {{'exec.alloc' op has its offset already; exec-batch-casts comes before exec-plan-memory}}
  %b = exec.alloc at 64 : memref<8xbf16>
}
