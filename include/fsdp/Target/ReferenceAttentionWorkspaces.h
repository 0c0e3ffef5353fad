//===- ReferenceAttentionWorkspaces.h - Room it needs -----------*- C++ -*-===//
//
// One kernel of shared code that gives the same bits on both targets, in f32
// and bf16: what a GPU computes in f32, where cuDNN has no attention, and what
// to compare with elsewhere. A score is computed again wherever it is used, so
// memory grows with the sequence and not with its square.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TARGET_REFERENCEATTENTIONWORKSPACES_H
#define FSDP_TARGET_REFERENCEATTENTIONWORKSPACES_H

#include "fsdp/Runtime/Types.h"
#include "fsdp/Support/CheckedSize.h"

namespace fsdp::rt {

/// The elements of a head that one row of threads keeps in registers.
inline constexpr int64_t kReferenceHeadDim = 256;

/// Workspace in bytes; -1 if heads are too large.
inline int64_t referenceAttentionWorkspaceBytes(const AttentionDesc &d) {
  return d.headDim <= kReferenceHeadDim ? 0 : -1;
}

/// The sum of out * dout of every query and head.
inline int64_t referenceAttentionGradWorkspaceBytes(const AttentionDesc &d) {
  if (d.headDim > kReferenceHeadDim)
    return -1;
  CheckedSize sums = sizeOf(DType::F32);
  return (sums * d.batch * d.heads * d.qLen).saturated();
}

} // namespace fsdp::rt

#endif // FSDP_TARGET_REFERENCEATTENTIONWORKSPACES_H
