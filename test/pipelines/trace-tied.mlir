// RUN: fsdp-trace llama3_debug --seq 8 --set n_layers=1 --set tied=true | FileCheck %s
// RUN: fsdp-trace llama3_1b --seq 8 --set n_layers=1 | FileCheck %s --check-prefix=1B

// A tied model has one table, which it reads twice, and no output layer. The
// table starts as the output layer would: 256^-1/2 = 1/16, cut at 3.

// CHECK:     nn.parameter @tok_embeddings.weight : tensor<2048x256xf32> init #nn.normal<std = 6.250000e-02, cut = 3.000000e+00>
// CHECK-NOT: @output.weight
// CHECK-LABEL: func.func @forward
// CHECK:       %[[TABLE:.*]] = nn.read @tok_embeddings.weight {nn.module = "tok_embeddings"}
// CHECK-NEXT:  nn.embedding %{{.*}}, %[[TABLE]] {nn.module = "tok_embeddings"}
// CHECK:       %[[NORM:.*]], %{{.*}} = nn.rms_norm %{{.*}}, %{{.*}} eps
// CHECK:       %[[NORM:.*]], %{{.*}} = nn.rms_norm %{{.*}}, %{{.*}} eps
// CHECK:       %[[NORM:.*]], %{{.*}} = nn.rms_norm %{{.*}}, %{{.*}} eps
// CHECK-NEXT:  %[[AGAIN:.*]] = nn.read @tok_embeddings.weight {nn.module = "tok_embeddings#2"}
// CHECK-NEXT:  nn.linear %[[NORM]], %[[AGAIN]] {nn.module = "tok_embeddings#2"} : tensor<1x8x256xf32>, tensor<2048x256xf32> -> tensor<1x8x2048xf32>
// CHECK-NEXT:  nn.cross_entropy
// CHECK-NOT:   nn.read

// 1B and 3B are tied as registered.
// 1B-NOT: @output.weight
