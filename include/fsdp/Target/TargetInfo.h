//===- TargetInfo.h - What the compiler must know of a target ---*- C++ -*-===//
//
// Sizes of library workspaces, beside the facts. They are fixed when a program
// is compiled, so that the arena holds them and nothing is allocated on the
// step path; they depend on the instruction set and the number of compute
// threads, which are part of the artifact's fingerprint.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TARGET_TARGETINFO_H
#define FSDP_TARGET_TARGETINFO_H

#include "dialects/Exec/RuntimeOps.h"
#include "fsdp/Target/Target.h"
#include "llvm/ADT/StringRef.h"
#include <memory>
#include <string>

namespace fsdp {

class TargetInfo : public exec::WorkspaceSizes {
public:
  explicit TargetInfo(const rt::Target &facts) : facts(facts) {}

  int64_t collectiveWorkspaceBytes(const rt::CollectiveDesc &desc, int item,
                                   int64_t ranks) const final {
    return facts.collectiveWorkspaceBytes(desc, item, ranks);
  }

  const rt::Target &facts;
};

/// Those of one target, by its name in the list. Null with `problem` set where
/// the target cannot be asked. The CPU is that which the compiler runs on, with
/// `threads` compute threads: its sizes are oneDNN's, whose library is loaded
/// for it. Those of GPUs are upper bounds that need no GPU to be known; the
/// runtime refuses to start if a library wants more.
#define FSDP_TARGET(Name)                                                      \
  std::unique_ptr<TargetInfo> make##Name##TargetInfo(int threads,              \
                                                     std::string &problem);
#include "fsdp/Target/Targets.def"

/// That of the target called `name`; null if there is none, and with `problem`
/// set if it cannot be asked.
std::unique_ptr<TargetInfo> makeTarget(llvm::StringRef name, int threads,
                                       std::string &problem);

} // namespace fsdp

#endif // FSDP_TARGET_TARGETINFO_H
