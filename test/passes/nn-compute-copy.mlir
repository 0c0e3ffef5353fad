// RUN: fsdp-opt %s --nn-compute-copy --verify-roundtrip | FileCheck %s
// RUN: fsdp-opt %s --nn-compute-copy --exec-lower="target=test" | FileCheck %s --check-prefix=EXEC
// Parameters that are read in bf16 have copies, which the optimizer writes; the
// one that is read in f32 is updated alone.

// CHECK: nn.buffer @w.compute_copy : tensor<4x8xbf16> init #nn.zeros {nn.compute_copy_of = @w}
// CHECK-NEXT: nn.buffer @frozen.compute_copy : tensor<8xbf16> init #nn.zeros {nn.compute_copy_of = @frozen}
// CHECK-NOT: @wide.compute_copy
module {
  nn.parameter @w : tensor<4x8xf32> init #nn.normal<std = 1.0>
  nn.parameter @wide : tensor<8xf32> init #nn.ones
  nn.parameter @frozen : tensor<8xf32> init #nn.ones {nn.frozen}
  nn.buffer @w.exp_avg : tensor<4x8xf32> init #nn.zeros {nn.state_of = @w}
  nn.buffer @w.exp_avg_sq : tensor<4x8xf32> init #nn.zeros {nn.state_of = @w}
  nn.buffer @wide.exp_avg : tensor<8xf32> init #nn.zeros {nn.state_of = @wide}
  nn.buffer @wide.exp_avg_sq : tensor<8xf32> init #nn.zeros {nn.state_of = @wide}

  // CHECK-LABEL: func.func @train
  // EXEC-LABEL: exec.program @train
  func.func @train(%dw: tensor<4x8xbf16> {nn.name = "dw"}, %dwide: tensor<8xf32> {nn.name = "dwide"},
                   %lr: tensor<f32> {nn.name = "lr"}, %step: tensor<i32> {nn.name = "step"},
                   %clip: tensor<f32> {nn.name = "clip"})
      -> (tensor<4x8xbf16> {nn.name = "y"}, tensor<8xf32> {nn.name = "z"}, tensor<8xbf16> {nn.name = "f"})
      attributes {fsdp.local} {
    // CHECK: %[[W:.*]] = nn.read @w.compute_copy : tensor<4x8xbf16>
    // CHECK-NOT: nn.cast
    %w = nn.read @w : tensor<4x8xf32>
    %c = nn.cast %w : tensor<4x8xf32> to tensor<4x8xbf16>
    // CHECK: nn.add %[[W]], %{{.*}}
    %y = nn.add %c, %dw : tensor<4x8xbf16>
    // CHECK: nn.read @wide : tensor<8xf32>
    %x = nn.read @wide : tensor<8xf32>
    %z = nn.add %x, %dwide : tensor<8xf32>
    // CHECK: nn.read @frozen.compute_copy : tensor<8xbf16>
    %v = nn.read @frozen : tensor<8xf32>
    %f = nn.cast %v : tensor<8xf32> to tensor<8xbf16>
    // CHECK: nn.adamw [@wide] moments [@wide.exp_avg], [@wide.exp_avg_sq](%arg1) lr
    // CHECK-SAME: : tensor<8xf32>
    // CHECK-NEXT: nn.adamw [@w] moments [@w.exp_avg], [@w.exp_avg_sq] copies [@w.compute_copy](%arg0) lr
    // CHECK-SAME: : tensor<4x8xbf16>
    // EXEC: exec.adamw on compute
    // EXEC: exec.adamw_copy on compute(%{{[^:]*}} : memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>, memref<4x8xbf16>, memref<4x8xbf16>, memref<f32>, memref<i32>, memref<f32>)
    // EXEC-SAME: outs(%{{[^:]*}} : memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>, memref<4x8xbf16>)
    nn.adamw [@w, @wide] moments [@w.exp_avg, @wide.exp_avg], [@w.exp_avg_sq, @wide.exp_avg_sq](%dw, %dwide)
        lr %lr step %step clip %clip {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}
        : tensor<4x8xbf16>, tensor<8xf32>
    return %y, %z, %f : tensor<4x8xbf16>, tensor<8xf32>, tensor<8xbf16>
  }

  // Another program reads the same copies.
  // CHECK-LABEL: func.func @evaluate
  func.func @evaluate() -> (tensor<4x8xbf16> {nn.name = "e"}) attributes {fsdp.local} {
    // CHECK: nn.read @w.compute_copy
    %w = nn.read @w : tensor<4x8xf32>
    %c = nn.cast %w : tensor<4x8xf32> to tensor<4x8xbf16>
    return %c : tensor<4x8xbf16>
  }

  // What else writes parameters runs this. Each cast is made where the copy is.
  // CHECK-LABEL: func.func @copy_parameters
  // CHECK: %[[R:.*]] = nn.read @w : tensor<4x8xf32>
  // CHECK-NEXT: %[[C:.*]] = nn.cast %[[R]] : tensor<4x8xf32> to tensor<4x8xbf16>
  // CHECK-NEXT: nn.write @w.compute_copy, %[[C]]
  // CHECK: nn.write @frozen.compute_copy
  // EXEC-LABEL: exec.program @copy_parameters
  // EXEC: %[[TO:.*]] = exec.get @w.compute_copy
  // EXEC: exec.launch @{{.*}} on compute({{.*}}) outs(%[[TO]]
  // EXEC-NOT: exec.copy
}
