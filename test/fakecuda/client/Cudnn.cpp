//===- Cudnn.cpp - cuDNN, which the stand-in does not have ----------------===//
//
// A handle can be made; everything else says its name and fails. Attention is
// done without it, see Attention.cpp.
//
//===----------------------------------------------------------------------===//
#include <cstdio>

/// CUDNN_STATUS_NOT_SUPPORTED
static constexpr int kNotSupported = 3000;

extern "C" int cudnnCreate(void **handle) {
  static char one;
  *handle = &one;
  return 0;
}
extern "C" int cudnnDestroy(void *) { return 0; }
extern "C" const char *cudnnGetErrorString(int) {
  return "the stand-in device has no cuDNN";
}

#define FSDP_REFUSE(name)                                                      \
  extern "C" int name() {                                                      \
    std::fputs("fakecuda: the stand-in device has no " #name "\n", stderr);    \
    return kNotSupported;                                                      \
  }

FSDP_REFUSE(cudnnBackendCreateDescriptor)
FSDP_REFUSE(cudnnBackendDestroyDescriptor)
FSDP_REFUSE(cudnnBackendExecute)
FSDP_REFUSE(cudnnBackendFinalize)
FSDP_REFUSE(cudnnBackendGetAttribute)
FSDP_REFUSE(cudnnBackendSetAttribute)
FSDP_REFUSE(cudnnGetStream)
FSDP_REFUSE(cudnnGetVersion)
FSDP_REFUSE(cudnnSetStream)

extern "C" void cudnnGetLastErrorString(char *text, unsigned long size) {
  std::snprintf(text, size, "%s", cudnnGetErrorString(0));
}
