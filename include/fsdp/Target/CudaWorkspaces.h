//===- CudaWorkspaces.h - Library workspaces on a GPU -----------*- C++ -*-===//
//
// The compiler reserves these bytes in the arena on a machine without a GPU;
// the CUDA runtime checks them against what its libraries want when it makes
// a context.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TARGET_CUDAWORKSPACES_H
#define FSDP_TARGET_CUDAWORKSPACES_H

#include "fsdp/Runtime/Types.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Target/ReferenceAttentionWorkspaces.h"

namespace fsdp::rt::cuda {

/// What NVIDIA recommends for cuBLASLt on Hopper.
inline constexpr int64_t kGemmWorkspaceBytes = int64_t(32) << 20;

/// About what a reduction over ranks receives at once, over all its tensors.
/// Larger ones are exchanged and reduced in rounds, so that the gradient of an
/// embedding does not need its own size again. A round of it takes NVLink far
/// longer than a launch. In two levels it is what partial sums need beside, and
/// over many nodes more: a message to another node has 1 MiB at least.
inline constexpr int64_t kExchangeBytes = int64_t(64) << 20;

/// Elements of every rank's piece of an item that go in one round.
int64_t exchangeElements(const CollectiveDesc &desc, int item, int64_t ranks);
/// Room for what the others send of them.
int64_t collectiveWorkspaceBytes(const CollectiveDesc &desc, int item,
                                 int64_t ranks);

/// Room for cuDNN's own bookkeeping (semaphores, offsets).
inline constexpr int64_t kAttentionSlackBytes = int64_t(4) << 20;

/// Flash attention keeps its sums in registers.
inline int64_t attentionWorkspaceBytes(const AttentionDesc &d) {
  return d.plain ? referenceAttentionWorkspaceBytes(d) : kAttentionSlackBytes;
}

/// Both forms of the deterministic algorithm have sum(out * dout) per query
/// and, for grouped heads, the gradients of k and v per query head before they
/// are added. cuDNN's front end (1.32) takes the form with the gradient of all
/// probabilities, which grows with the square of the sequence, on sm_80 and
/// sm_90. On sm_100 (since cuDNN 9.18), and on sm_90 since cuDNN 9.25 where
/// CUDNN_FRONTEND_ATTN_DP_WORKSPACE_LIMIT is set to less than that, it takes
/// the form with the gradient of q in f32. Older versions ignore the variable.
/// The compiler does not know which cuDNN will be loaded, so there is room for
/// either. Without a fixed order of sums (`fast`) it takes the form that is
/// linear in the sequence, on sm_80 with gradients of k and v in f32. Tiles
/// have at most 128 tokens.
inline int64_t attentionGradWorkspaceBytes(const AttentionDesc &d) {
  if (d.plain)
    return referenceAttentionGradWorkspaceBytes(d);
  CheckedSize queries = roundedUp(d.qLen, 128), keys = roundedUp(d.kvLen, 128);
  CheckedSize linear = queries * d.headDim * sizeOf(DType::F32);
  CheckedSize square = queries * keys * sizeOf(d.type);
  bool isLinear = d.fast || linear.saturated() > square.saturated();
  CheckedSize perHead = isLinear ? linear : square;
  perHead += queries * sizeOf(DType::F32);
  if (d.heads != d.kvHeads)
    perHead += keys * 2 * d.headDim * sizeOf(d.fast ? DType::F32 : d.type);
  return (perHead * d.batch * d.heads + kAttentionSlackBytes).saturated();
}

/// The gradient of an embedding sorts its tokens, whose numbers have 32 bits.
inline constexpr int64_t kMaxSortedTokens = (int64_t(1) << 32) - 1;

/// Two lists of tokens, for the order by class before and after a pass of the
/// sort. Sums stay in registers. Negative for more tokens than can be sorted.
inline int64_t embeddingGradWorkspaceBytes(int64_t rows) {
  if (rows > kMaxSortedTokens)
    return -1;
  return (CheckedSize(rows) * 2 * sizeOf(DType::I32)).saturated();
}

} // namespace fsdp::rt::cuda

#endif // FSDP_TARGET_CUDAWORKSPACES_H
