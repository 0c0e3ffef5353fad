// RUN: fsdp-opt %s --nn-precision="wide=norm,layers.*.a_log,output.bias,ln.weight" | FileCheck %s
// RUN: fsdp-opt %s --nn-precision="wide=norm,layers.*.a_log,output.bias,ln.weight" -o %t.once
// RUN: fsdp-opt %t.once --nn-precision="wide=norm,layers.*.a_log,output.bias,ln.weight" | diff %t.once -

// Listed parameters, and those of listed modules, stay f32; a pattern stands
// for any text. An op whose operands may differ takes them so; a matrix product
// with a wide parameter is computed in f32, and so is one with its elements
// moved.

nn.parameter @norm.weight : tensor<4xf32> init #nn.ones
nn.parameter @normal : tensor<4x4xf32> init #nn.ones
nn.parameter @ln.weight : tensor<4xf32> init #nn.ones
nn.parameter @ln.bias : tensor<4xf32> init #nn.zeros
nn.parameter @layers.0.a_log : tensor<4x4xf32> init #nn.ones
nn.parameter @output.weight : tensor<4x4xf32> init #nn.zeros
nn.parameter @output.bias : tensor<4xf32> init #nn.zeros

// CHECK-LABEL: func.func @forward
// CHECK-SAME:    -> tensor<2x4xf32>
func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK: %[[H:.*]] = nn.linear {{.*}} -> tensor<2x4xbf16>
  %normal = nn.read @normal : tensor<4x4xf32>
  %h = nn.linear %x, %normal : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  // CHECK-NEXT: %[[NORM:.*]] = nn.read @norm.weight
  // CHECK-NEXT: %[[N:.*]], %{{.*}} = nn.rms_norm %[[H]], %[[NORM]] eps 1.000000e-05 : tensor<2x4xbf16>, tensor<4xf32>, tensor<2xf32>
  %norm = nn.read @norm.weight : tensor<4xf32>
  %n, %rstd = nn.rms_norm %h, %norm eps 1.0e-05 : tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>
  // CHECK-NEXT: %[[LW:.*]] = nn.read @ln.weight
  // CHECK-NEXT: %[[LB:.*]] = nn.read @ln.bias
  // CHECK-NEXT: %[[LBB:.*]] = nn.cast %[[LB]]
  // CHECK-NEXT: %[[LBF:.*]] = nn.cast %[[LBB]] : tensor<4xbf16> to tensor<4xf32>
  // CHECK-NEXT: %[[L:.*]], %{{.*}}, %{{.*}} = nn.layer_norm %[[N]], %[[LW]], %[[LBF]] eps 1.000000e-05 : tensor<2x4xbf16>, tensor<4xf32>, tensor<2xf32>
  %lw = nn.read @ln.weight : tensor<4xf32>
  %lb = nn.read @ln.bias : tensor<4xf32>
  %l, %mean, %rstd2 = nn.layer_norm %n, %lw, %lb eps 1.0e-05 : tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>
  // CHECK-NEXT: %[[A:.*]] = nn.read @layers.0.a_log
  // CHECK-NEXT: %[[T:.*]] = nn.transpose %[[A]] [1, 0] : tensor<4x4xf32> to tensor<4x4xf32>
  // CHECK-NEXT: %[[LF:.*]] = nn.cast %[[L]] : tensor<2x4xbf16> to tensor<2x4xf32>
  // CHECK-NEXT: %[[M:.*]] = nn.matmul %[[LF]], %[[T]] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %a = nn.read @layers.0.a_log : tensor<4x4xf32>
  %t = nn.transpose %a [1, 0] : tensor<4x4xf32> to tensor<4x4xf32>
  %m = nn.matmul %l, %t : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  // CHECK-NEXT: %[[W:.*]] = nn.read @output.weight
  // CHECK-NEXT: %[[WB:.*]] = nn.cast %[[W]]
  // CHECK-NEXT: %[[B:.*]] = nn.read @output.bias
  // CHECK-NEXT: %[[WF:.*]] = nn.cast %[[WB]] : tensor<4x4xbf16> to tensor<4x4xf32>
  // CHECK-NEXT: nn.linear %[[M]], %[[WF]] bias %[[B]] : tensor<2x4xf32>, tensor<4x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
  %w = nn.read @output.weight : tensor<4x4xf32>
  %b = nn.read @output.bias : tensor<4xf32>
  %y = nn.linear %m, %w bias %b : tensor<2x4xf32>, tensor<4x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
