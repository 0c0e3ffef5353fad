// RUN: fsdp-opt %s --nn-mask-documents | FileCheck %s

// Every causal attention of a program sees from the starts of documents on,
// which are one argument. Other programs and other attention stay.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[STARTS:[^:]*]]: tensor<2x8xi32> {nn.name = "document_starts"})
// CHECK-NEXT: nn.attention %{{.*}} from %[[STARTS]] scale 5.000000e-01 {causal}
// CHECK-SAME: tensor<2x8xi32>
// CHECK-NEXT: nn.attention %{{.*}} from %[[STARTS]] scale 5.000000e-01 {causal, window = 3 : i64}
// CHECK-NEXT: nn.attention %{{[a-z0-9_]*}}, %{{[a-z0-9_]*}}, %{{[a-z0-9_]*}} scale 5.000000e-01 : tensor
func.func @forward(%q: tensor<2x8x4x4xf32> {nn.name = "q"}, %k: tensor<2x8x2x4xf32> {nn.name = "k"}) {
  %a, %la = nn.attention %q, %k, %k scale 0.5 {causal} : tensor<2x8x4x4xf32>, tensor<2x8x2x4xf32>, tensor<2x4x8xf32>
  %b, %lb = nn.attention %a, %k, %k scale 0.5 {causal, window = 3 : i64} : tensor<2x8x4x4xf32>, tensor<2x8x2x4xf32>, tensor<2x4x8xf32>
  %c, %lc = nn.attention %b, %k, %k scale 0.5 : tensor<2x8x4x4xf32>, tensor<2x8x2x4xf32>, tensor<2x4x8xf32>
  return
}

// CHECK-LABEL: func.func @other
// CHECK-SAME: (%{{[a-z0-9]*}}: tensor<2x8xf32>)
func.func @other(%x: tensor<2x8xf32>) {
  return
}
