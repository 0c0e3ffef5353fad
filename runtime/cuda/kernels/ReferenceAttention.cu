//===- ReferenceAttention.cu - Attention without a library ----------------===//
#include "../Device.h"

#include "../ReferenceAttention.h"
#include "runtime/kernels/ReferenceAttentionRows.h"

using namespace fsdp::rt;

namespace fsdp::rt::device {

template <typename T>
__global__ void referenceAttention(reference::Shape s,
                                   reference::Tensors<T> t) {
  const int64_t row = gpu::row();
  if (row < s.batch * s.qLen * s.heads)
    reference::forwardRow(s, t, row);
}

template <typename T>
__global__ void referenceQueryGrad(reference::Shape s,
                                   reference::Tensors<T> t) {
  const int64_t row = gpu::row();
  if (row < s.batch * s.qLen * s.heads)
    reference::queryGradRow(s, t, row);
}

template <typename T>
__global__ void referenceKeyGrad(reference::Shape s, reference::Tensors<T> t) {
  const int64_t row = gpu::row();
  if (row < s.batch * s.kvLen * s.kvHeads)
    reference::keyGradRow(s, t, row);
}

} // namespace fsdp::rt::device

static reference::Shape shapeOf(const AttentionDesc &d) {
  return {d.batch,   d.qLen,         d.kvLen,  d.heads,  d.kvHeads,
          d.headDim, float(d.scale), d.causal, d.window, float(d.cap)};
}

void fsdp::rt::referenceAttention(Context &c, Stream stream,
                                  const AttentionDesc &d, Ptr q, Ptr k, Ptr v,
                                  Ptr starts, Ptr out, Ptr lse) {
  dispatch(d.type, "attention", [&](auto tag) {
    using T = decltype(tag);
    reference::Tensors<T> t{};
    t.q = as<T>(q);
    t.k = as<T>(k);
    t.v = as<T>(v);
    t.result = as<T>(out);
    t.lse = as<float>(lse);
    t.starts = as<int32_t>(starts);
    gpu::startWith(c, stream, "attention", device::referenceAttention<T>,
                   gpu::rowsShape(d.batch * d.qLen * d.heads), shapeOf(d), t);
  });
}

void fsdp::rt::referenceAttentionGrad(Context &c, Stream stream,
                                      const AttentionDesc &d, Ptr q, Ptr k,
                                      Ptr v, Ptr out, Ptr lse, Ptr dout,
                                      Ptr starts, Ptr dq, Ptr dk, Ptr dv,
                                      Ptr workspace) {
  dispatch(d.type, "attention_grad", [&](auto tag) {
    using T = decltype(tag);
    reference::Tensors<T> t{as<T>(q),
                            as<T>(k),
                            as<T>(v),
                            as<T>(out),
                            as<T>(dout),
                            as<float>(lse),
                            as<float>(workspace),
                            as<T>(dq),
                            as<T>(dk),
                            as<T>(dv),
                            as<int32_t>(starts)};
    gpu::startWith(c, stream, "attention_grad", device::referenceQueryGrad<T>,
                   gpu::rowsShape(d.batch * d.qLen * d.heads), shapeOf(d), t);
    // These read what the queries have left.
    gpu::startWith(c, stream, "attention_grad", device::referenceKeyGrad<T>,
                   gpu::rowsShape(d.batch * d.kvLen * d.kvHeads), shapeOf(d),
                   t);
  });
}
