// RUN: fsdp-trace llama3_debug --seq 8 --set n_layers=1 --dtype bf16 | FileCheck %s
// RUN: fsdp-trace llama3_debug --seq 8 --set n_layers=1 | fsdp-opt --nn-precision | FileCheck %s

// Mixed precision: parameters stay f32 and are cast where they are used;
// activations and logits are bf16; the table of angles, the statistics of norms
// and attention and the loss are f32.

// CHECK:     nn.parameter @tok_embeddings.weight : tensor<2048x256xf32>
// CHECK-NOT: nn.parameter {{.*}}bf16
// CHECK-LABEL: func.func @forward
// CHECK-SAME:  -> (tensor<f32> {nn.name = "loss"}, tensor<1x8x2048xbf16> {nn.name = "logits"})
// CHECK-NEXT:  %[[ROPE:.*]] = nn.read @rope_table {nn.module = "rope_table"} : tensor<8x8x2xf32>
// CHECK-NEXT:  %[[TABLE:.*]] = nn.read @tok_embeddings.weight {{.*}}: tensor<2048x256xf32>
// CHECK-NEXT:  %[[CAST:.*]] = nn.cast %[[TABLE]] {nn.module = "tok_embeddings"} : tensor<2048x256xf32> to tensor<2048x256xbf16>
// CHECK-NEXT:  nn.embedding %{{.*}}, %[[CAST]] {{.*}}: tensor<1x8xi32>, tensor<2048x256xbf16> -> tensor<1x8x256xbf16>
// CHECK-NEXT:  %[[W:.*]] = nn.read @layers.0.attention_norm.weight {{.*}}: tensor<256xf32>
// CHECK-NEXT:  %[[WB:.*]] = nn.cast %[[W]] {nn.module = "layers.0.attention_norm"} : tensor<256xf32> to tensor<256xbf16>
// CHECK-NEXT:  nn.rms_norm %{{.*}}, %[[WB]] eps 1.000000e-05 {{.*}}: tensor<1x8x256xbf16>, tensor<256xbf16>, tensor<1x8xf32>
// CHECK:       nn.rotary adjacent %{{.*}}, %[[ROPE]] {{.*}}: tensor<1x8x16x16xbf16>, tensor<8x8x2xf32>
// CHECK:       nn.attention {{.*}} : tensor<1x8x16x16xbf16>, tensor<1x8x16x16xbf16>, tensor<1x16x8xf32>
// CHECK:       nn.silu %{{.*}} : tensor<1x8x768xbf16>
// CHECK:       nn.cross_entropy {{.*}} : tensor<1x8x2048xbf16>, tensor<1x8xi32>, tensor<1x8xf32>
