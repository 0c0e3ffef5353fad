//===- PlainAttention.h - Plain attention on a GPU --------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CUDA_PLAINATTENTION_H
#define FSDP_RUNTIME_CUDA_PLAINATTENTION_H

#include "fsdp/Runtime/Runtime.h"

namespace fsdp::rt {

void plainAttention(Context &c, Stream stream, const AttentionDesc &d, Ptr q,
                    Ptr k, Ptr v, Ptr out, Ptr lse);
/// `workspace` has plainAttentionGradWorkspaceBytes().
void plainAttentionGrad(Context &c, Stream stream, const AttentionDesc &d,
                        Ptr q, Ptr k, Ptr v, Ptr out, Ptr lse, Ptr dout, Ptr dq,
                        Ptr dk, Ptr dv, Ptr workspace);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_PLAINATTENTION_H
