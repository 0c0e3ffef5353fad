//===- Refused.cpp - What the code under test does not reach --------------===//
//
// Functions of the CUDA runtime that cudnn-frontend, NVTX and nvcc's stubs are
// linked with. They say their name and fail. Declared here and not by CUDA's
// headers, since their arguments do not matter.
//
//===----------------------------------------------------------------------===//
namespace fsdp::fake {
int refuseFunction(const char *name, int status);
} // namespace fsdp::fake

/// cudaErrorNotSupported
static constexpr int kNotSupported = 801;

#define FSDP_REFUSE(name)                                                      \
  extern "C" int name() {                                                      \
    return fsdp::fake::refuseFunction(#name, kNotSupported);                   \
  }

FSDP_REFUSE(__cudaGetKernel)
FSDP_REFUSE(__cudaLaunchKernel)
FSDP_REFUSE(__cudaPopCallConfiguration)
FSDP_REFUSE(__cudaPushCallConfiguration)
FSDP_REFUSE(cudaGraphRetainUserObject)
FSDP_REFUSE(cudaKernelSetAttributeForDevice)
FSDP_REFUSE(cudaLibraryGetKernel)
FSDP_REFUSE(cudaLibraryLoadData)
FSDP_REFUSE(cudaLibraryUnload)
FSDP_REFUSE(cudaPointerGetAttributes)
FSDP_REFUSE(cudaThreadExchangeStreamCaptureMode)
FSDP_REFUSE(cudaUserObjectCreate)
FSDP_REFUSE(cudaUserObjectRelease)
