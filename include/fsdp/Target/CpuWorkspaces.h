//===- CpuWorkspaces.h - Library workspaces on the CPU ----------*- C++ -*-===//
//
// The compiler reserves these bytes in the arena. Those of products and of
// attention only oneDNN knows, so the compiler loads the small library that
// asks it, libfsdp_cpu_workspaces.so, when a program is for the CPU.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TARGET_CPUWORKSPACES_H
#define FSDP_TARGET_CPUWORKSPACES_H

#include "fsdp/Runtime/Types.h"
#include "fsdp/Support/CheckedSize.h"

namespace fsdp::rt::cpu {

/// Workspace of a matmul on this machine's instruction set, with `threads`
/// compute threads; -1 if the library cannot do it. Needs no context.
int64_t gemmWorkspaceBytes(const GemmDesc &desc, int threads);
/// As gemmWorkspaceBytes.
int64_t attentionWorkspaceBytes(const AttentionDesc &d, int threads);
int64_t attentionGradWorkspaceBytes(const AttentionDesc &d, int threads);

/// The gradient of an embedding in bf16 has lists of the tokens of each class,
/// and adds up a row in f32 at a time. First come `cols` sums for each thread,
/// then `classes` and `rows` numbers of tokens. Negative for more tokens than
/// have numbers.
inline int64_t embeddingGradWorkspaceBytes(int64_t rows, int64_t classes,
                                           int64_t cols, int threads) {
  if (rows > INT32_MAX)
    return -1;
  CheckedSize sums = CheckedSize(cols) * threads * sizeOf(DType::F32);
  CheckedSize numbers = (CheckedSize(classes) + rows) * sizeOf(DType::I32);
  return (sums + numbers).saturated();
}

/// What the library has under the name fsdp_cpu_workspaces.
struct Workspaces {
  int64_t (*gemm)(const GemmDesc &desc, int threads);
  int64_t (*attention)(const AttentionDesc &desc, int threads);
  int64_t (*attentionGrad)(const AttentionDesc &desc, int threads);
};

} // namespace fsdp::rt::cpu

/// Looked up by dlsym().
extern "C" const fsdp::rt::cpu::Workspaces fsdp_cpu_workspaces;

#endif // FSDP_TARGET_CPUWORKSPACES_H
