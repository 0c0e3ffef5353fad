//===- ProbeKernels.h - Kernels like those of programs ----------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CALIBRATE_PROBEKERNELS_H
#define FSDP_RUNTIME_CALIBRATE_PROBEKERNELS_H

#include "fsdp/Machine/Machine.h"
#include "fsdp/Runtime/Runtime.h"

namespace fsdp::rt {

inline constexpr int64_t kMostProbeBytes = int64_t(1) << 28;
inline constexpr int kProbeKernels = 12;

/// A kernel, on `count` elements of tensors that lie one after
/// another.
struct ProbeKernel {
  const char *name;        ///< As Machine::Kernel has it.
  int64_t bytesPerElement; ///< Read and written.
  void (*run)(Context &c, int64_t count, Ptr in, Ptr out);
};

/// kProbeKernels of them.
const ProbeKernel *probeKernels();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CALIBRATE_PROBEKERNELS_H
