//===- TargetInfo.h - What the compiler must know of a target ---*- C++ -*-===//
//
// Sizes of library workspaces. They are fixed when a program is compiled, so
// that the arena holds them and nothing is allocated on the step path; they
// depend on the instruction set and the number of compute threads, which are
// part of the artifact's fingerprint.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TARGET_TARGETINFO_H
#define FSDP_TARGET_TARGETINFO_H

#include "dialects/Exec/RuntimeOps.h"
#include "llvm/ADT/StringRef.h"
#include <memory>
#include <string>

namespace fsdp {

using TargetInfo = exec::WorkspaceSizes;

/// The target called `name`; null if there is none, and with `problem` set if
/// it cannot be asked. "cpu" is the CPU that the compiler runs on, with
/// `threads` compute threads; its sizes are oneDNN's, whose library is loaded
/// for it. "cuda" is an NVIDIA GPU: upper bounds that need no GPU to be known;
/// the runtime refuses to start if a library wants more. "test" has made-up
/// sizes by simple formulas that are the same on every machine, for tests of
/// the compiler's text: matmul 64, attention 4096, its gradient 8192 bytes; a
/// collective as on the CPU: every rank's padded piece.
std::unique_ptr<TargetInfo> makeTarget(llvm::StringRef name, int threads,
                                       std::string &problem);

} // namespace fsdp

#endif // FSDP_TARGET_TARGETINFO_H
