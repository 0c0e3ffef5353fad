//===- AttentionGraphs.h - Fused attention as cuDNN's graphs ----*- C++ -*-===//
//
// What cuDNN is asked for, apart from where it runs: the runtime builds these
// graphs on a GPU, a test builds them without one and looks at what they want.
// The backward pass is the deterministic algorithm, so that a run repeats to
// the bit, unless the descriptor says that it need not be.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CUDA_ATTENTIONGRAPHS_H
#define FSDP_RUNTIME_CUDA_ATTENTIONGRAPHS_H

#include "fsdp/Runtime/Types.h"
#include <cudnn_frontend.h>

namespace fsdp::rt {

/// What the graphs call their tensors.
struct AttentionUid {
  enum : int64_t { Q, K, V, Out, Lse, Dout, Dq, Dk, Dv };
};

namespace attention_graphs {

namespace fe = cudnn_frontend;
namespace graph = cudnn_frontend::graph;
using Tensor = std::shared_ptr<graph::Tensor_attributes>;

inline void initialize(graph::Graph &g) {
  g.set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
}

/// Sizes in cuDNN's order (batch, head, token, element); the strides say that
/// a token's heads lie together.
inline Tensor place(const Tensor &t, const AttentionDesc &desc, int64_t uid) {
  using U = AttentionUid;
  bool isKey = uid == U::K || uid == U::V || uid == U::Dk || uid == U::Dv;
  int64_t length = isKey ? desc.kvLen : desc.qLen;
  int64_t count = isKey ? desc.kvHeads : desc.heads;
  int64_t token = count * desc.headDim;
  t->set_uid(uid)
      .set_dim({desc.batch, count, length, desc.headDim})
      .set_stride({length * token, desc.headDim, token, 1});
  return t;
}

inline Tensor placeLogSumExp(const Tensor &t, const AttentionDesc &desc) {
  t->set_uid(AttentionUid::Lse)
      .set_dim({desc.batch, desc.heads, desc.qLen, 1})
      .set_stride({desc.heads * desc.qLen, desc.qLen, 1, 1})
      .set_data_type(fe::DataType_t::FLOAT);
  return t;
}

inline Tensor newTensor(graph::Graph &g) {
  return g.tensor(graph::Tensor_attributes());
}

/// Of the forward and the backward pass. A window of w shows the keys j of
/// query i with j + w > i.
template <typename OptionsT>
OptionsT masked(OptionsT options, const AttentionDesc &desc) {
  options.set_attn_scale(float(desc.scale)).set_causal_mask(desc.causal);
  if (desc.window != 0)
    options.set_diagonal_band_left_bound(int(desc.window));
  return options;
}

} // namespace attention_graphs

inline void describeAttention(cudnn_frontend::graph::Graph &g,
                              const AttentionDesc &desc) {
  using namespace attention_graphs;
  using U = AttentionUid;
  initialize(g);
  auto heads = [&](int64_t uid) { return place(newTensor(g), desc, uid); };
  auto options = masked(graph::SDPA_attributes(), desc)
                     .set_name("attention")
                     .set_generate_stats(true);
  auto [out, lse] = g.sdpa(heads(U::Q), heads(U::K), heads(U::V), options);
  place(out, desc, U::Out)->set_output(true);
  placeLogSumExp(lse, desc)->set_output(true);
}

inline void describeAttentionGrad(cudnn_frontend::graph::Graph &g,
                                  const AttentionDesc &desc) {
  using namespace attention_graphs;
  using U = AttentionUid;
  initialize(g);
  auto heads = [&](int64_t uid) { return place(newTensor(g), desc, uid); };
  auto options = masked(graph::SDPA_backward_attributes(), desc)
                     .set_name("attention_grad")
                     .set_deterministic_algorithm(!desc.fast);
  auto [dq, dk, dv] = g.sdpa_backward(
      heads(U::Q), heads(U::K), heads(U::V), heads(U::Out), heads(U::Dout),
      placeLogSumExp(newTensor(g), desc), options);
  place(dq, desc, U::Dq)->set_output(true);
  place(dk, desc, U::Dk)->set_output(true);
  place(dv, desc, U::Dv)->set_output(true);
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_ATTENTIONGRAPHS_H
