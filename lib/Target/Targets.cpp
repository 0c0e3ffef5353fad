//===- Targets.cpp - The list of targets, searched ------------------------===//
#include "fsdp/Target/Target.h"

using namespace fsdp::rt;

const std::vector<const Target *> &fsdp::rt::allTargets() {
  static const std::vector<const Target *> all = {
#define FSDP_TARGET(Name) &k##Name##Target,
#include "fsdp/Target/Targets.def"
  };
  return all;
}

const Target *fsdp::rt::findTarget(std::string_view name) {
  for (const Target *target : allTargets())
    if (name == target->name)
      return target;
  return nullptr;
}

std::string fsdp::rt::targetNames() {
  std::string text;
  for (const Target *target : allTargets()) {
    bool isFirst = target == allTargets().front();
    bool isLast = target == allTargets().back();
    text += isFirst ? "" : isLast ? " and " : ", ";
    text += target->name;
  }
  return text;
}

const Target &fsdp::rt::targetOfArchitecture(std::string_view architecture) {
  const Target *found = nullptr;
  std::string_view longest;
  for (const Target *target : allTargets()) {
    if (!target->architecture)
      continue;
    std::string_view prefix = target->architecture;
    bool begins = architecture.substr(0, prefix.size()) == prefix;
    if (begins && (!found || prefix.size() > longest.size())) {
      found = target;
      longest = prefix;
    }
  }
  return *found;
}
