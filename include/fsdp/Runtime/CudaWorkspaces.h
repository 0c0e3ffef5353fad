//===- CudaWorkspaces.h - Library workspaces on a GPU -----------*- C++ -*-===//
//
// The compiler reserves these bytes in the arena on a machine without a GPU;
// the CUDA runtime checks them against what its libraries want when it makes
// a context.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CUDAWORKSPACES_H
#define FSDP_RUNTIME_CUDAWORKSPACES_H

#include "fsdp/Runtime/PlainAttention.h"
#include "fsdp/Support/CheckedSize.h"

namespace fsdp::rt::cuda {

/// What NVIDIA recommends for cuBLASLt on Hopper.
inline constexpr int64_t kGemmWorkspaceBytes = int64_t(32) << 20;

/// Room for cuDNN's own bookkeeping (semaphores, offsets).
inline constexpr int64_t kAttentionSlackBytes = int64_t(4) << 20;

/// Flash attention keeps its sums in registers.
inline int64_t attentionWorkspaceBytes(const AttentionDesc &d) {
  return d.plain ? plainAttentionWorkspaceBytes(d) : kAttentionSlackBytes;
}

/// The gradient of q in f32, sum(out * dout) per query padded to whole tiles
/// of 128, and the gradients of k and v per query head before they are added
/// for grouped heads.
inline int64_t attentionGradWorkspaceBytes(const AttentionDesc &d) {
  if (d.plain)
    return plainAttentionGradWorkspaceBytes(d);
  CheckedSize perHead =
      roundedUp(d.qLen, 128) * (d.headDim + 2) * sizeOf(DType::F32);
  if (d.heads != d.kvHeads)
    perHead += roundedUp(d.kvLen, 128) * 2 * d.headDim * sizeOf(d.type);
  return (perHead * d.batch * d.heads + kAttentionSlackBytes).saturated();
}

} // namespace fsdp::rt::cuda

#endif // FSDP_RUNTIME_CUDAWORKSPACES_H
