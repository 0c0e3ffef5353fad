//===- Device.cpp - Device queries, errors, and what is refused -----------===//
#include "Client.h"
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace fsdp::fake;

//===----------------------------------------------------------------------===//
// Devices: one for every rank of a machine
//===----------------------------------------------------------------------===//

static thread_local int device = 0;

/// What a test makes of the machine. Anything but a number ends the program.
static int setting(const char *name, int otherwise) {
  const char *text = std::getenv(name);
  if (!text)
    return otherwise;
  int value = 0;
  const char *end = text + std::strlen(text);
  auto result = std::from_chars(text, end, value);
  if (result.ec == std::errc() && result.ptr == end)
    return value;
  std::fprintf(stderr, "fakecuda: %s = '%s' is no number\n", name, text);
  std::abort();
}

static int deviceCount() { return setting("FSDP_FAKECUDA_DEVICES", 8); }

extern "C" cudaError_t cudaGetDeviceCount(int *count) {
  *count = deviceCount();
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}
extern "C" cudaError_t cudaSetDevice(int which) {
  if (which < 0 || which >= deviceCount())
    return cudaErrorInvalidDevice;
  device = which;
  return cudaSuccess;
}
extern "C" cudaError_t cudaGetDevice(int *which) {
  *which = device;
  return cudaSuccess;
}

/// What the code under test asks for: an H200's numbers, unless a test says
/// otherwise.
extern "C" cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr name,
                                              int which) {
  int capability = setting("FSDP_FAKECUDA_CAPABILITY", 90);
  switch (name) {
  case cudaDevAttrComputeCapabilityMajor:
    *value = capability / 10;
    return cudaSuccess;
  case cudaDevAttrComputeCapabilityMinor:
    *value = capability % 10;
    return cudaSuccess;
  case cudaDevAttrPciDomainId:
  case cudaDevAttrPciDeviceId:
    *value = 0;
    return cudaSuccess;
  case cudaDevAttrPciBusId:
    *value = setting("FSDP_FAKECUDA_FIRST_DEVICE", 0) + which;
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

extern "C" cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties,
                                               int) {
  *properties = {};
  std::strcpy(properties->name, "stand-in");
  return cudaSuccess;
}

extern "C" cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
extern "C" cudaError_t cudaDriverGetVersion(int *version) {
  *version = setting("FSDP_FAKECUDA_DRIVER", CUDART_VERSION);
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
  case cudaErrorNoDevice:
    return "no CUDA-capable device is detected";
  case cudaErrorInvalidDevice:
    return "invalid device ordinal";
  case cudaErrorInvalidDeviceFunction:
    return "invalid device function";
  case cudaErrorNotReady:
    return "device not ready";
  case cudaErrorNotSupported:
    return "the stand-in device does not have this";
  case cudaErrorIllegalState:
    return "the operation cannot be performed in the present state";
  case cudaErrorStreamCaptureUnsupported:
    return "operation not permitted when stream is capturing";
  case cudaErrorStreamCaptureInvalidated:
    return "operation failed due to a previous error during capture";
  case cudaErrorStreamCaptureMerge:
    return "operation would result in a merge of separate capture sequences";
  case cudaErrorStreamCaptureUnmatched:
    return "capture was not ended in the same stream as it began";
  case cudaErrorStreamCaptureUnjoined:
    return "capturing stream has unjoined work";
  case cudaErrorStreamCaptureIsolation:
    return "dependency created on uncaptured work in another stream";
  case cudaErrorStreamCaptureImplicit:
    return "operation would make the legacy stream depend on a capturing "
           "blocking stream";
  case cudaErrorCapturedEvent:
    return "operation not permitted on an event last recorded in a capturing "
           "stream";
  case cudaErrorStreamCaptureWrongThread:
    return "attempt to terminate a thread-local capture sequence from another "
           "thread";
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
