//===- Device.cpp - Device queries, errors, and what is refused -----------===//
#include "Client.h"

using namespace fsdp::fake;

//===----------------------------------------------------------------------===//
// Devices: one for every rank of a machine
//===----------------------------------------------------------------------===//

static constexpr int kDevices = 8;
static thread_local int device = 0;

extern "C" cudaError_t cudaGetDeviceCount(int *count) {
  *count = kDevices;
  return cudaSuccess;
}
extern "C" cudaError_t cudaSetDevice(int which) {
  if (which < 0 || which >= kDevices)
    return cudaErrorInvalidDevice;
  device = which;
  return cudaSuccess;
}
extern "C" cudaError_t cudaGetDevice(int *which) {
  *which = device;
  return cudaSuccess;
}

/// What the code under test asks for: an H200's numbers.
extern "C" cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr name,
                                              int) {
  switch (name) {
  case cudaDevAttrComputeCapabilityMajor:
    *value = 9;
    return cudaSuccess;
  case cudaDevAttrComputeCapabilityMinor:
    *value = 0;
    return cudaSuccess;
  case cudaDevAttrMultiProcessorCount:
    *value = 132;
    return cudaSuccess;
  default:
    return Client::get().refuse("cudaDeviceGetAttribute does not know "
                                "attribute " +
                                    std::to_string(int(name)),
                                cudaErrorNotSupported);
  }
}

extern "C" cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
extern "C" cudaError_t cudaDriverGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

extern "C" const char *cudaGetErrorString(cudaError_t error) {
  switch (error) {
  case cudaSuccess:
    return "no error";
  case cudaErrorInvalidValue:
    return "invalid argument";
  case cudaErrorMemoryAllocation:
    return "out of memory";
  case cudaErrorInvalidConfiguration:
    return "invalid configuration argument";
  case cudaErrorInvalidDevice:
    return "invalid device ordinal";
  case cudaErrorInvalidDeviceFunction:
    return "invalid device function";
  case cudaErrorNotReady:
    return "device not ready";
  case cudaErrorNotSupported:
    return "the stand-in device does not have this";
  case cudaErrorLaunchFailure:
    return Client::get().lastText().c_str();
  default:
    return "an error that the stand-in device does not make";
  }
}
extern "C" cudaError_t cudaGetLastError() {
  return Client::get().lastError(/*forget=*/true);
}
extern "C" cudaError_t cudaPeekAtLastError() {
  return Client::get().lastError(/*forget=*/false);
}
