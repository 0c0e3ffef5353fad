// The table of an artifact's values: calls in the order of issue, functions
// followed, with what every output is called and where it lies.

// RUN: rm -rf %t && mkdir %t && fsdp-compile %s -o %t/good
// RUN: FileCheck %s --input-file %t/good/values.json
// RUN: sed 's/\[\["first", "second"\]\]/[]/' %s > %t/less.mlir
// RUN: not fsdp-compile %t/less.mlir -o %t/less 2>&1 | FileCheck %s --check-prefix=LESS
// RUN: not ls %t/less
// RUN: sed 's/\[\["first", "second"\]\]/["first", "second"]/' %s > %t/more.mlir
// RUN: not fsdp-compile %t/more.mlir -o %t/more 2>&1 | FileCheck %s --check-prefix=MORE

// CHECK: "format": 1,
// CHECK-NEXT: "manifest": "{{[0-9a-f]+}}",
// CHECK-NEXT: "names": [
// CHECK-NEXT:   "block.0 fill_zero",
// CHECK-NEXT:   "fwd block.0 linear",
// CHECK-NEXT:   "fill_zero",
// CHECK-NEXT:   "first",
// CHECK-NEXT:   "second"
// CHECK-NEXT: ],
// A matrix that is all of a tensor has that one's shape.
// CHECK-NEXT: "types": [
// CHECK-NEXT:   ["f32",2,3,16],
// CHECK-NEXT:   ["f32",6,16],
// CHECK-NEXT:   ["bf16",96]
// CHECK-NEXT: ],
// CHECK-NEXT: "programs": [
// CHECK-NEXT:   {
// CHECK-NEXT:     "name": "train",
// CHECK-NEXT:     "calls": 6,
// CHECK-NEXT:     "values": [
// CHECK-NEXT:       [0,0,0,384],
// CHECK-NEXT:       [1,1,0,384],
// Integers are always finite; of what is outside of a box nobody says anything.
// CHECK-NEXT:       [3,2,1,1152],
// CHECK-NEXT:       [5,3,2,1536],
// CHECK-NEXT:       [5,4,2,1728]
// CHECK-NEXT:     ]
// CHECK-NEXT:   }
// CHECK-NEXT: ]

// LESS: error: 'exec.call' op has in 'exec.makes' no name for the values that work 0 of @f writes; name all of them, or leave the attribute out

// MORE: error: 'exec.call' op has in 'exec.makes' 2 names, but the work of @f is 1; name all of it, or leave the attribute out

module attributes {exec.persistent_bytes = 384 : i64, exec.arena_bytes = 1920 : i64} {

exec.range @n : memref<96xi32> role input at 0

exec.func @f {
^bb0(%x: memref<96xf32>, %a: memref<96xbf16>, %b: memref<96xbf16>):
  exec.narrow on compute (%x, %x : memref<96xf32>, memref<96xf32>) outs(%a, %b : memref<96xbf16>, memref<96xbf16>)
}

exec.program @train arena 1920 attributes {exec.inputs = ["n"], exec.reads = ["n"], exec.writes = []} {
  %n = exec.get @n : memref<96xi32>
  %h = exec.alloc at 384 : memref<2x3x16xf32>
  exec.fill_zero on compute () outs(%h : memref<2x3x16xf32>) {nn.module = "block.0"}
  %m = exec.view %h[0] : memref<2x3x16xf32> to memref<6x16xf32>
  exec.fill_zero on compute () outs(%m : memref<6x16xf32>) {exec.makes = "fwd block.0 linear"}
  %i = exec.alloc at 768 : memref<96xi32>
  exec.copy on compute (%n : memref<96xi32>) outs(%i : memref<96xi32>)
  %y = exec.alloc at 1152 : memref<6x16xf32>
  exec.fill_zero on compute () outs(%y : memref<6x16xf32>)
  exec.copy_box on compute (%m : memref<6x16xf32>) outs(%y : memref<6x16xf32>)
      {in_offsets = array<i64: 0, 0>, out_offsets = array<i64: 1, 0>, shape = array<i64: 3, 16>}
  %x = exec.view %h[0] : memref<2x3x16xf32> to memref<96xf32>
  %a = exec.alloc at 1536 : memref<96xbf16>
  %b = exec.alloc at 1728 : memref<96xbf16>
  exec.call @f(%x, %a, %b) events [] {exec.makes = [["first", "second"]]} : memref<96xf32>, memref<96xbf16>, memref<96xbf16>
}
}
