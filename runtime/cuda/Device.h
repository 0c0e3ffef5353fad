//===- Device.h - What the CUDA runtime's kernels share ---------*- C++ -*-===//
//
// The kernel files include only this header and use only the names of CUDA
// that test/shim/CudaShim.h defines, so that they too can run on the host.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CUDA_DEVICE_H
#define FSDP_RUNTIME_CUDA_DEVICE_H

#include "fsdp/Artifact/Mesh.h"
#include "fsdp/Runtime/CudaKernels.h"
#include "runtime/core/DataErrors.h"
#include "runtime/core/ObservedCall.h"

namespace fsdp::rt {

/// Kernels and the types of their parameters. Not an anonymous namespace: a
/// kernel has the same name wherever it is compiled.
namespace device {

/// Whether `id` is one of the classes; notes the error if it is not.
FSDP_DEVICE bool inRange(int64_t id, int64_t classes, DataError error,
                         unsigned *flags) {
  if (id >= 0 && id < classes)
    return true;
  atomicOr(flags, unsigned(error));
  return false;
}

} // namespace device

/// Where kernels set bits of DataError, in device memory.
unsigned *dataErrorFlags(Context &c);
/// This rank's place in a group of the artifact.
Coordinate placeIn(Context &c, int group);

[[noreturn]] void abortWorld(const std::string &message, int exitCode);

template <typename T> T *as(Ptr p) { return reinterpret_cast<T *>(p); }

/// True if rows of `bytes` that lie one after another from these places on
/// are vectors of 16 bytes.
template <typename... P> bool areWholeVectors(int64_t bytes, P... places) {
  return bytes % 16 == 0 &&
         ((reinterpret_cast<uintptr_t>(places) | ...) & 15u) == 0;
}

/// Calls body(value of the type) for f32 or bf16, the types of activations.
template <typename Body>
void dispatch(DType type, const char *what, const Body &body) {
  if (type == DType::F32)
    body(float());
  else if (type == DType::BF16)
    body(BF16());
  else
    abortWorld(std::string(what) + " takes f32 or bf16 on the CUDA target", 1);
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_DEVICE_H
