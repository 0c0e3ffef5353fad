//===- TargetInfo.cpp - What the compiler must know of a target -----------===//
#include "fsdp/Target/TargetInfo.h"

using namespace fsdp;
using llvm::StringRef;

std::unique_ptr<TargetInfo> fsdp::makeTarget(StringRef name, int threads,
                                             std::string &problem) {
#define FSDP_TARGET(Name)                                                      \
  if (name == rt::k##Name##Target.name)                                        \
    return make##Name##TargetInfo(threads, problem);
#include "fsdp/Target/Targets.def"
  return nullptr;
}
