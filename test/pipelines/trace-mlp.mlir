// RUN: fsdp-trace odsc_mlp --batch 4 --set n_layers=2 | FileCheck %s
// RUN: fsdp-trace odsc_mlp --batch 4 --set n_layers=2 --dtype bf16 | FileCheck %s --check-prefix=BF16

// n x (Linear + ReLU) and a mean squared error over 4 * 16384 = 65536 elements. Uniform on
// +-16384^-1/2 = +-1/128 = +-7.8125e-3.

// CHECK:       nn.parameter @layers.0.weight : tensor<16384x16384xf32> init #nn.uniform<bound = 7.812500e-03>
// CHECK-NEXT:  nn.parameter @layers.0.bias : tensor<16384xf32> init #nn.uniform<bound = 7.812500e-03>
// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[X:.*]]: tensor<4x16384xf32> {nn.name = "x"}, %[[Y:.*]]: tensor<4x16384xf32> {nn.name = "y"})
// CHECK-SAME:    -> (tensor<f32> {nn.name = "loss"}, tensor<4x16384xf32> {nn.name = "prediction"})
// CHECK-NEXT:    %[[W0:.*]] = nn.read @layers.0.weight
// CHECK-NEXT:    %[[B0:.*]] = nn.read @layers.0.bias
// CHECK-NEXT:    %[[H0:.*]] = nn.linear %[[X]], %[[W0]] bias %[[B0]]
// CHECK-NEXT:    %[[R0:.*]] = nn.relu %[[H0]]
// CHECK-NEXT:    %[[W1:.*]] = nn.read @layers.1.weight
// CHECK-NEXT:    %[[B1:.*]] = nn.read @layers.1.bias
// CHECK-NEXT:    %[[H1:.*]] = nn.linear %[[R0]], %[[W1]] bias %[[B1]]
// CHECK-NEXT:    %[[R1:.*]] = nn.relu %[[H1]]
// CHECK-NEXT:    %[[LOSS:.*]] = nn.mse_loss %[[R1]], %[[Y]] count 65536
// CHECK-NEXT:    return %[[LOSS]], %[[R1]]

// Data comes in f32 and the loss is taken in f32.
// BF16:      -> (tensor<f32> {nn.name = "loss"}, tensor<4x16384xf32> {nn.name = "prediction"})
// BF16-NEXT: nn.cast %x {{.*}}: tensor<4x16384xf32> to tensor<4x16384xbf16>
// BF16:      %[[LAST:.*]] = nn.relu %{{.*}} : tensor<4x16384xbf16>
// BF16:      %[[LAST:.*]] = nn.relu %{{.*}} : tensor<4x16384xbf16>
// BF16-NEXT: %[[P:.*]] = nn.cast %[[LAST]] {{.*}}: tensor<4x16384xbf16> to tensor<4x16384xf32>
// BF16-NEXT: nn.mse_loss %[[P]], %y count 65536 {{.*}}: tensor<4x16384xf32>, tensor<f32>
// BF16-NEXT: return %{{.*}}, %[[P]]
