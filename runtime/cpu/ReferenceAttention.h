//===- PlainAttention.h - Plain attention on the CPU ------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CPU_PLAINATTENTION_H
#define FSDP_RUNTIME_CPU_PLAINATTENTION_H

#include "runtime/onednn/BlockedAttention.h"

namespace fsdp::rt {

/// Rows are independent, so the cut for `threads` changes no bit.
void plainAttention(const AttentionDesc &d, int threads,
                    const AttentionArguments &a);
void plainAttentionGrad(const AttentionDesc &d, int threads,
                        const AttentionArguments &a);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CPU_PLAINATTENTION_H
