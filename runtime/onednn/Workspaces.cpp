//===- Workspaces.cpp - What oneDNN's calls need besides operands ---------===//
#include "BlockedAttention.h"
#include "Gemm.h"
#include "fsdp/Target/CpuWorkspaces.h"
#include "fsdp/Target/ReferenceAttentionWorkspaces.h"
#include <stdexcept>

using namespace fsdp::rt;

int64_t fsdp::rt::cpu::gemmWorkspaceBytes(const GemmDesc &desc, int threads) {
  try {
    return Gemm::workspaceBytes(desc, threads);
  } catch (const std::runtime_error &) {
    return -1;
  }
}

int64_t fsdp::rt::cpu::attentionWorkspaceBytes(const AttentionDesc &d,
                                               int threads) {
  if (d.plain)
    return referenceAttentionWorkspaceBytes(d);
  try {
    return BlockedAttention(d, threads).forwardWorkspaceBytes();
  } catch (const std::runtime_error &) {
    return -1;
  }
}

int64_t fsdp::rt::cpu::attentionGradWorkspaceBytes(const AttentionDesc &d,
                                                   int threads) {
  if (d.plain)
    return referenceAttentionGradWorkspaceBytes(d);
  try {
    return BlockedAttention(d, threads).backwardWorkspaceBytes();
  } catch (const std::runtime_error &) {
    return -1;
  }
}
