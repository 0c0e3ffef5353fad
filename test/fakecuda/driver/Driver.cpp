//===- Driver.cpp - A CUDA driver without a device ------------------------===//
//
// What cuDNN calls of libcuda.so.1 to make a plan for a GPU that is described
// to it: kernels are loaded and nothing can be run.
//
//===----------------------------------------------------------------------===//

/// CUDA_ERROR_STUB_LIBRARY
static constexpr int kNoDriver = 34;
static char one;

extern "C" int cuLibraryLoadData(void **library) {
  *library = &one;
  return 0;
}
extern "C" int cuLibraryGetKernel(void **kernel) {
  *kernel = &one;
  return 0;
}
extern "C" int cuLibraryUnload() { return 0; }

#define FSDP_REFUSE(name)                                                      \
  extern "C" int name() { return kNoDriver; }

FSDP_REFUSE(cuCtxGetCurrent)
FSDP_REFUSE(cuCtxGetLimit)
FSDP_REFUSE(cuCtxPopCurrent)
FSDP_REFUSE(cuCtxPushCurrent)
FSDP_REFUSE(cuDeviceGet)
FSDP_REFUSE(cuDeviceGetCount)
FSDP_REFUSE(cuDriverGetVersion)
FSDP_REFUSE(cuGetErrorName)
FSDP_REFUSE(cuGetErrorString)
FSDP_REFUSE(cuInit)
FSDP_REFUSE(cuKernelGetAttribute)
FSDP_REFUSE(cuKernelSetAttribute)
FSDP_REFUSE(cuLaunchCooperativeKernel)
FSDP_REFUSE(cuLaunchKernel)
FSDP_REFUSE(cuLaunchKernelEx)
FSDP_REFUSE(cuLibraryLoadFromFile)
FSDP_REFUSE(cuLinkAddData)
FSDP_REFUSE(cuLinkComplete)
FSDP_REFUSE(cuLinkCreate)
FSDP_REFUSE(cuLinkDestroy)
FSDP_REFUSE(cuOccupancyMaxPotentialClusterSize)
FSDP_REFUSE(cuStreamGetCtx)
