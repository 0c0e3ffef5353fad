//===- Library.cpp - Calls of oneDNN in programs --------------------------===//
#include "CpuContext.h"
#include "ReferenceAttention.h"
#include "fsdp/Target/CpuWorkspaces.h"

using namespace fsdp::rt;

void fsdp::rt::gemm(Context &context, Stream stream, int index, Ptr lhs,
                    Ptr rhs, Ptr bias, Ptr out, Ptr workspace) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "a matmul");
  const Gemm &g = *c.gemms[size_t(index)];
  Timeline::Span span(c.timeline, stream, gemmName(g.desc), g.desc.batch,
                      g.desc.m, g.desc.n, g.desc.k);
  g.run(lhs, rhs, bias, out, workspace);
}

void fsdp::rt::gemmAdd(Context &context, Stream stream, int index, Ptr lhs,
                       Ptr rhs, Ptr sum, Ptr workspace) {
  gemm(context, stream, index, lhs, rhs, /*bias=*/nullptr, sum, workspace);
}

void fsdp::rt::attention(Context &context, Stream stream, int index, Ptr q,
                         Ptr k, Ptr v, Ptr starts, Ptr out, Ptr lse,
                         Ptr workspace) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "attention");
  const AttentionDesc &d = c.artifact->attention[index];
  Timeline::Span span(c.timeline, stream, "attention", d.batch, d.heads, d.qLen,
                      d.headDim);
  AttentionArguments arguments = {q, k, v, out, lse, workspace};
  arguments.starts = starts;
  if (d.plain)
    referenceAttention(d, c.threads, arguments);
  else
    c.attentions[size_t(index)]->forward(arguments);
}

void fsdp::rt::attentionGrad(Context &context, Stream stream, int index, Ptr q,
                             Ptr k, Ptr v, Ptr out, Ptr lse, Ptr dout,
                             Ptr starts, Ptr dq, Ptr dk, Ptr dv,
                             Ptr workspace) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "attention");
  const AttentionDesc &d = c.artifact->attention[index];
  Timeline::Span span(c.timeline, stream, "attention_grad", d.batch, d.heads,
                      d.qLen, d.headDim);
  AttentionArguments arguments = {q,    k,  v,  out, lse,   workspace,
                                  dout, dq, dk, dv,  starts};
  if (d.plain)
    referenceAttentionGrad(d, c.threads, arguments);
  else
    c.attentions[size_t(index)]->backward(arguments);
}

int64_t fsdp::rt::gemmWorkspaceBytes(const GemmDesc &desc, int threads) {
  return cpu::gemmWorkspaceBytes(desc, threads);
}
