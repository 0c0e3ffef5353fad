//===- CudnnAttention.cpp - Fused attention by cuDNN ----------------------===//
//
// One graph per direction, finalised when the context is made.
//
//===----------------------------------------------------------------------===//
#include "AttentionGraphs.h"
#include "CudaContext.h"
#include "fsdp/Target/CudaWorkspaces.h"

using namespace fsdp;
using namespace fsdp::rt;

namespace fe = cudnn_frontend;
namespace graph = cudnn_frontend::graph;

namespace {

class CudnnAttention : public AttentionPlan {
public:
  CudnnAttention(cudnnHandle_t handle, const AttentionDesc &desc);

  void forward(cudaStream_t stream, Ptr q, Ptr k, Ptr v, Ptr out, Ptr lse,
               Ptr workspace) override;
  void backward(cudaStream_t stream, Ptr q, Ptr k, Ptr v, Ptr out, Ptr lse,
                Ptr dout, Ptr dq, Ptr dk, Ptr dv, Ptr workspace) override;

private:
  using Pointers = std::unordered_map<int64_t, void *>;

  void finish(graph::Graph &g, int64_t reserved, const char *what) const;
  void execute(graph::Graph &g, cudaStream_t stream, Pointers &pointers,
               Ptr workspace, const char *what) const;

  cudnnHandle_t handle;
  graph::Graph forwardGraph, backwardGraph;
};

} // namespace

static void requireGood(fe::error_t status, const char *what) {
  if (status.is_bad())
    throw Error(std::string("cuDNN ") + what + ": " + status.get_message());
}

void CudnnAttention::finish(graph::Graph &g, int64_t reserved,
                            const char *what) const {
  requireGood(g.build(handle, {fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}),
              what);
  int64_t wanted = 0;
  requireGood(g.get_workspace_size(wanted), what);
  if (wanted > reserved)
    throw Error(std::string("cuDNN ") + what + " wants " +
                std::to_string(wanted) +
                " bytes of workspace, the artifact "
                "has " +
                std::to_string(reserved) +
                "; compile with compile.attention = \"plain\"");
}

CudnnAttention::CudnnAttention(cudnnHandle_t handle, const AttentionDesc &desc)
    : handle(handle) {
  describeAttention(forwardGraph, desc);
  finish(forwardGraph, cuda::attentionWorkspaceBytes(desc), "attention");
  describeAttentionGrad(backwardGraph, desc);
  finish(backwardGraph, cuda::attentionGradWorkspaceBytes(desc),
         "attention_grad");
}

void CudnnAttention::execute(graph::Graph &g, cudaStream_t stream,
                             Pointers &pointers, Ptr workspace,
                             const char *what) const {
  check(cudnnSetStream(handle, stream), what);
  fe::error_t status = g.execute(handle, pointers, workspace);
  if (status.is_bad())
    abortWorld(std::string(what) + ": " + status.get_message());
}

void CudnnAttention::forward(cudaStream_t stream, Ptr q, Ptr k, Ptr v, Ptr out,
                             Ptr lse, Ptr workspace) {
  using U = AttentionUid;
  Pointers pointers = {
      {U::Q, q}, {U::K, k}, {U::V, v}, {U::Out, out}, {U::Lse, lse}};
  execute(forwardGraph, stream, pointers, workspace, "attention");
}

void CudnnAttention::backward(cudaStream_t stream, Ptr q, Ptr k, Ptr v, Ptr out,
                              Ptr lse, Ptr dout, Ptr dq, Ptr dk, Ptr dv,
                              Ptr workspace) {
  using U = AttentionUid;
  Pointers pointers = {{U::Q, q},     {U::K, k},     {U::V, v},
                       {U::Out, out}, {U::Lse, lse}, {U::Dout, dout},
                       {U::Dq, dq},   {U::Dk, dk},   {U::Dv, dv}};
  execute(backwardGraph, stream, pointers, workspace, "attention_grad");
}

std::unique_ptr<AttentionPlan> rt::makeAttentionPlan(cudnnHandle_t handle,
                                                     const AttentionDesc &d) {
  if (d.type != DType::BF16)
    throw Error("cuDNN's attention takes bf16; compile with "
                "training.mixed_precision_param = \"bfloat16\" or "
                "compile.attention = \"plain\"");
  if (d.cap != 0)
    throw Error("cuDNN's attention has no cap on scores; compile with "
                "compile.attention = \"plain\"");
  // The first that pads sequences to whole tiles; what else an older library
  // lacks for this attention its front end says.
  constexpr size_t kOldest = 90000;
  if (size_t version = cudnnGetVersion(); version < kOldest)
    throw Error("cuDNN is of version " + std::to_string(version) +
                ", attention needs " + std::to_string(kOldest) +
                " or newer, or compile.attention = \"plain\"");
  return std::make_unique<CudnnAttention>(handle, d);
}
