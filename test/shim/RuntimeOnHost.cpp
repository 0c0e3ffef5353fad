//===- RuntimeOnHost.cpp - The CUDA runtime's kernels on the host ---------===//
//
// Compiled with CudaShim.h and linked into a generated step (with -Bsymbolic):
// the step then uses the CUDA runtime's kernels, and the CPU runtime for
// matmuls, attention, collectives and memory.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/kernels/EmbeddingGrad.cu"
#include "runtime/cuda/kernels/Layout.cu"
#include "runtime/cuda/kernels/Model.cu"
#include "runtime/cuda/kernels/Optimizer.cu"

#include "runtime/cpu/CpuContext.h"

unsigned *fsdp::rt::dataErrorFlags(Context &) {
  static unsigned flags = 0;
  return &flags;
}

fsdp::rt::Coordinate fsdp::rt::placeIn(Context &context, int group) {
  return cpuContext(context).places[size_t(group)];
}

// Calls on the host are observed by nobody, and need have no context.
fsdp::rt::ObservedCall::ObservedCall(Context &context) : context(context) {}
fsdp::rt::ObservedCall::~ObservedCall() = default;
