// RUN: echo '{"version": 2, "rules": [{"match": "fwd layers.1 {silu,mul}", "recompute": true}]}' > %t.json
// RUN: fsdp-opt %S/Inputs/blocks.mlir --fsdp-address --fsdp-plan="file=%t.json reshard-after-forward=never" --fsdp-remat --cse --canonicalize | FileCheck %s
// RUN: echo '{"version": 2, "rules": [{"match": "fwd layers.1 mul", "recompute": true}, {"match": "fwd layers.1.w1 *", "recompute": true}]}' > %t.linear.json
// RUN: fsdp-opt %S/Inputs/blocks.mlir --fsdp-address --fsdp-plan="file=%t.linear.json reshard-after-forward=never" --fsdp-remat --cse --canonicalize | FileCheck %s --check-prefix=LINEAR

// A silu and its product are computed again right before the backward pass needs
// them: the product from the silu, both from what is kept. Block 0 keeps all.
// CHECK-LABEL: func.func @train
// CHECK: %[[X:.*]] = nn.linear {{.*}}"fwd layers.0.w2 linear"
// CHECK: %[[H:.*]] = nn.linear {{.*}}"fwd layers.1.w1 linear"
// CHECK: nn.silu {{.*}}"fwd layers.1 silu"
// CHECK: nn.seed
// CHECK: "bwd layers.1.w2 dx"
// CHECK-NEXT: %[[H2:.*]] = nn.recompute_from %[[H]]
// CHECK-NEXT: %[[A:.*]] = nn.silu %[[H2]] {fsdp.origin = #fsdp.origin<"again layers.1 silu">, nn.module = "layers.1"}
// CHECK-NEXT: %[[X2:.*]] = nn.recompute_from %[[X]]
// CHECK-NEXT: %[[M:.*]] = nn.mul %[[A]], %[[X2]] {fsdp.origin = #fsdp.origin<"again layers.1 mul">
// CHECK-NEXT: nn.linear_weight_grad %{{.*}}, %[[M]] {{.*}}"bwd layers.1.w2 dw"
// CHECK: nn.mul %{{.*}}, %[[A]] {{.*}}"bwd layers.1 mul#2"
// CHECK: nn.silu_grad %[[H]],
// CHECK-NOT: "again

// What needs a gathered parameter takes the one that is gathered again, and the
// product takes the silu, which is kept.
// LINEAR-LABEL: func.func @train
// LINEAR: %[[A:.*]] = nn.silu {{.*}}"fwd layers.1 silu"
// LINEAR: nn.seed
// LINEAR: %[[A2:.*]] = nn.recompute_from %[[A]]
// LINEAR: nn.mul %[[A2]], %{{.*}}"again layers.1 mul"
// LINEAR: %[[W:.*]] = fsdp.all_gather {{.*}}"again layers.1.w1 all_gather"
// LINEAR: %[[H:.*]] = nn.linear %{{.*}}, %[[W]] {{.*}}"again layers.1.w1 linear"
// LINEAR: nn.silu_grad %[[H]],
// LINEAR-NOT: "again
