//===- ReferenceAttention.h - Reference attention on a GPU ------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CUDA_REFERENCEATTENTION_H
#define FSDP_RUNTIME_CUDA_REFERENCEATTENTION_H

#include "fsdp/Runtime/Runtime.h"

namespace fsdp::rt {

void referenceAttention(Context &c, Stream stream, const AttentionDesc &d,
                        Ptr q, Ptr k, Ptr v, Ptr starts, Ptr out, Ptr lse);
/// `workspace` has referenceAttentionGradWorkspaceBytes().
void referenceAttentionGrad(Context &c, Stream stream, const AttentionDesc &d,
                            Ptr q, Ptr k, Ptr v, Ptr out, Ptr lse, Ptr dout,
                            Ptr starts, Ptr dq, Ptr dk, Ptr dv, Ptr workspace);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_REFERENCEATTENTION_H
