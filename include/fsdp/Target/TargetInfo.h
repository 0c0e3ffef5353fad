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

#include "fsdp/Runtime/Types.h"
#include "mlir/IR/Types.h"
#include "llvm/ADT/StringRef.h"
#include <memory>

namespace fsdp {

/// All results are bytes; 0 means that no workspace is needed, and what is
/// negative or above kMaxTensorBytes that the operation is too large.
class TargetInfo {
public:
  virtual ~TargetInfo();

  virtual int64_t gemmWorkspaceBytes(const rt::GemmDesc &desc) const = 0;
  virtual int64_t
  attentionWorkspaceBytes(const rt::AttentionDesc &desc) const = 0;
  virtual int64_t
  attentionGradWorkspaceBytes(const rt::AttentionDesc &desc) const = 0;
  /// Of one tensor of a reduction over `ranks` ranks.
  virtual int64_t collectiveWorkspaceBytes(const rt::CollectiveDesc &desc,
                                           int item, int64_t ranks) const = 0;

  /// Sums are kept in f32: a narrower result needs a table of them.
  int64_t embeddingGradWorkspaceBytes(rt::DType type, int64_t classes,
                                      int64_t cols) const;
};

/// The CPU that the compiler runs on, with `threads` compute threads.
std::unique_ptr<TargetInfo> makeCpuTarget(int threads);

/// Made-up sizes by simple formulas that are the same on every machine, for
/// tests of the compiler's text: matmul 64, attention 4096, its gradient 8192
/// bytes; a collective as on the CPU: every rank's padded piece.
std::unique_ptr<TargetInfo> makeTestTarget();

/// An NVIDIA GPU. The sizes are upper bounds that need no GPU to be known; the
/// runtime refuses to start if a library wants more.
std::unique_ptr<TargetInfo> makeCudaTarget();

/// The target called `name` ("cpu", "cuda" or "test"); null if there is none.
std::unique_ptr<TargetInfo> makeTarget(llvm::StringRef name, int threads);

/// The runtime's name of an element type that a buffer may have.
rt::DType dtypeOf(mlir::Type element);

} // namespace fsdp

#endif // FSDP_TARGET_TARGETINFO_H
