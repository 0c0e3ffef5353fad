// RUN: fsdp-opt %s --nn-compute-copy --verify-diagnostics

// expected-error @+1 {{has a program @copy_parameters already}}
module {
  nn.parameter @w : tensor<8xf32> init #nn.ones
  func.func @copy_parameters() {
    return
  }
}
