//===- Backends.cpp - The targets that programs run on --------------------===//
#include "fsdp/Target/Backends.h"

using namespace fsdp;

const Backend *fsdp::backendOf(const rt::Target &target) {
#define FSDP_PLANNED_TARGET(Name)
#define FSDP_TARGET(Name)                                                      \
  if (target == rt::k##Name##Target) {                                         \
    static const std::unique_ptr<Backend> backend = make##Name##Backend();     \
    return backend.get();                                                      \
  }
#include "fsdp/Target/Targets.def"
  return nullptr;
}
