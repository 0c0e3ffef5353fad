//===- ReferenceAttention.h - Reference attention on the CPU ----*- C++ -*-===//
#ifndef FSDP_RUNTIME_CPU_REFERENCEATTENTION_H
#define FSDP_RUNTIME_CPU_REFERENCEATTENTION_H

#include "runtime/onednn/BlockedAttention.h"

namespace fsdp::rt {

/// Rows are independent, so the split among `threads` changes no bit.
void referenceAttention(const AttentionDesc &d, int threads,
                        const AttentionArguments &a);
void referenceAttentionGrad(const AttentionDesc &d, int threads,
                            const AttentionArguments &a);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CPU_REFERENCEATTENTION_H
