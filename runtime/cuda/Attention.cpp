//===- Attention.cpp - Fused attention by cuDNN ---------------------------===//
//
// One graph per direction, finalised when the context is made. The backward
// pass is the deterministic algorithm: a run repeats to the bit.
//
//===----------------------------------------------------------------------===//
#include "CudaContext.h"
#include "fsdp/Runtime/CudaWorkspaces.h"
#include <cudnn_frontend.h>

using namespace fsdp;
using namespace fsdp::rt;

namespace fe = cudnn_frontend;
namespace graph = cudnn_frontend::graph;

namespace {

/// What a graph calls its tensors.
enum Uid : int64_t { Q, K, V, Out, Lse, Dout, Dq, Dk, Dv };
using Tensor = std::shared_ptr<graph::Tensor_attributes>;

class CudnnAttention : public AttentionPlan {
public:
  CudnnAttention(cudnnHandle_t handle, const AttentionDesc &desc);

  void forward(cudaStream_t stream, Ptr q, Ptr k, Ptr v, Ptr out, Ptr lse,
               Ptr workspace) override;
  void backward(cudaStream_t stream, Ptr q, Ptr k, Ptr v, Ptr out, Ptr lse,
                Ptr dout, Ptr dq, Ptr dk, Ptr dv, Ptr workspace) override;

private:
  using Pointers = std::unordered_map<int64_t, void *>;

  Tensor heads(graph::Graph &g, Uid uid, bool isKey) const;
  void place(const Tensor &t, Uid uid, bool isKey) const;
  Tensor logSumExp(graph::Graph &g) const;
  void placeLogSumExp(const Tensor &t) const;
  void makeForward();
  void makeBackward();
  void finish(graph::Graph &g, int64_t reserved, const char *what) const;
  void execute(graph::Graph &g, cudaStream_t stream, Pointers &pointers,
               Ptr workspace, const char *what) const;

  cudnnHandle_t handle;
  const AttentionDesc desc;
  graph::Graph forwardGraph, backwardGraph;
};

} // namespace

static void requireGood(fe::error_t status, const char *what) {
  if (status.is_bad())
    throw Error(std::string("cuDNN ") + what + ": " + status.get_message());
}

static void initialize(graph::Graph &g) {
  g.set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
}

/// Sizes in cuDNN's order (batch, head, token, element); the strides say that
/// a token's heads lie together.
void CudnnAttention::place(const Tensor &t, Uid uid, bool isKey) const {
  int64_t length = isKey ? desc.kvLen : desc.qLen;
  int64_t count = isKey ? desc.kvHeads : desc.heads;
  int64_t token = count * desc.headDim;
  t->set_uid(uid)
      .set_dim({desc.batch, count, length, desc.headDim})
      .set_stride({length * token, desc.headDim, token, 1});
}

Tensor CudnnAttention::heads(graph::Graph &g, Uid uid, bool isKey) const {
  Tensor t = g.tensor(graph::Tensor_attributes());
  place(t, uid, isKey);
  return t;
}

void CudnnAttention::placeLogSumExp(const Tensor &t) const {
  t->set_uid(Lse)
      .set_dim({desc.batch, desc.heads, desc.qLen, 1})
      .set_stride({desc.heads * desc.qLen, desc.qLen, 1, 1})
      .set_data_type(fe::DataType_t::FLOAT);
}

Tensor CudnnAttention::logSumExp(graph::Graph &g) const {
  Tensor t = g.tensor(graph::Tensor_attributes());
  placeLogSumExp(t);
  return t;
}

void CudnnAttention::makeForward() {
  graph::Graph &g = forwardGraph;
  initialize(g);
  auto options = graph::SDPA_attributes()
                     .set_name("attention")
                     .set_generate_stats(true)
                     .set_attn_scale(float(desc.scale))
                     .set_causal_mask(desc.causal);
  auto [out, lse] =
      g.sdpa(heads(g, Q, false), heads(g, K, true), heads(g, V, true), options);
  out->set_output(true);
  place(out, Out, false);
  lse->set_output(true);
  placeLogSumExp(lse);
  finish(g, cuda::attentionWorkspaceBytes(desc), "attention");
}

void CudnnAttention::makeBackward() {
  graph::Graph &g = backwardGraph;
  initialize(g);
  auto options = graph::SDPA_backward_attributes()
                     .set_name("attention_grad")
                     .set_attn_scale(float(desc.scale))
                     .set_causal_mask(desc.causal)
                     .set_deterministic_algorithm(true);
  auto [dq, dk, dv] = g.sdpa_backward(
      heads(g, Q, false), heads(g, K, true), heads(g, V, true),
      heads(g, Out, false), heads(g, Dout, false), logSumExp(g), options);
  dq->set_output(true);
  place(dq, Dq, false);
  dk->set_output(true);
  place(dk, Dk, true);
  dv->set_output(true);
  place(dv, Dv, true);
  finish(g, cuda::attentionGradWorkspaceBytes(desc), "attention_grad");
}

void CudnnAttention::finish(graph::Graph &g, int64_t reserved,
                            const char *what) const {
  requireGood(g.build(handle, {fe::HeurMode_t::A}), what);
  int64_t wanted = 0;
  requireGood(g.get_workspace_size(wanted), what);
  if (wanted > reserved)
    throw Error(std::string("cuDNN ") + what + " wants " +
                std::to_string(wanted) +
                " bytes of workspace, the artifact "
                "has " +
                std::to_string(reserved));
}

CudnnAttention::CudnnAttention(cudnnHandle_t handle, const AttentionDesc &desc)
    : handle(handle), desc(desc) {
  makeForward();
  makeBackward();
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
  Pointers pointers = {{Q, q}, {K, k}, {V, v}, {Out, out}, {Lse, lse}};
  execute(forwardGraph, stream, pointers, workspace, "attention");
}

void CudnnAttention::backward(cudaStream_t stream, Ptr q, Ptr k, Ptr v, Ptr out,
                              Ptr lse, Ptr dout, Ptr dq, Ptr dk, Ptr dv,
                              Ptr workspace) {
  Pointers pointers = {{Q, q},       {K, k},   {V, v},   {Out, out}, {Lse, lse},
                       {Dout, dout}, {Dq, dq}, {Dk, dk}, {Dv, dv}};
  execute(backwardGraph, stream, pointers, workspace, "attention_grad");
}

std::unique_ptr<AttentionPlan> rt::makeAttentionPlan(cudnnHandle_t handle,
                                                     const AttentionDesc &d) {
  if (d.type != DType::BF16)
    throw Error("cuDNN's attention takes bf16; compile with "
                "training.mixed_precision_param = \"bfloat16\" or "
                "compile.attention = \"plain\"");
  if (size_t version = cudnnGetVersion(); version < CUDNN_VERSION)
    throw Error("cuDNN is of version " + std::to_string(version) +
                ", this build was made with " + std::to_string(CUDNN_VERSION) +
                "; install that one or a newer one");
  return std::make_unique<CudnnAttention>(handle, d);
}
