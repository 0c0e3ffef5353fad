// Symbols that examples of the reference mention and do not declare.

fsdp.mesh @mesh ["dp_shard" = 4]

// nn
nn.parameter @norm.weight : tensor<256xf32> init #nn.ones
nn.parameter @w : tensor<4x8xf32> init #nn.zeros
nn.buffer @w.exp_avg : tensor<4x8xf32> init #nn.zeros
nn.buffer @w.exp_avg_sq : tensor<4x8xf32> init #nn.zeros
nn.buffer @norm.weight.grad_sum : tensor<256xf32> init #nn.zeros
nn.buffer @norm.weight.gathered : tensor<256xf32> init #nn.zeros
nn.buffer @loss_sum : tensor<f32> init #nn.zeros
nn.buffer @wq.weight.grad_sum : tensor<16x8xf32> init #nn.zeros

// fsdp
nn.parameter @layers.3.norm.weight : tensor<16x8xf32> init #nn.ones
nn.parameter @layers.3.norm.bias : tensor<7xf32> init #nn.zeros

// exec
exec.range @w : memref<4x8xf32> role parameter
exec.range @v : memref<4x8xf32> role parameter
exec.range @tokens : memref<2x256xi32> role input
exec.range @loss : memref<f32> role output
exec.kernel @silu over(4, 8) access [element, element] outputs 1 {
^bb0(%x: memref<4x8xf32>, %y: memref<4x8xf32>):
  exec.map {
    %a = exec.load %x : memref<4x8xf32> -> f32
    exec.store %a, %y : f32, memref<4x8xf32>
  }
}
exec.func @layer_forward {
^bb0(%x: memref<4x8xf32>, %y: memref<8xf32>):
}
