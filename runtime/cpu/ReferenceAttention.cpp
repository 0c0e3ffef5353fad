//===- ReferenceAttention.cpp - Reference attention on the CPU ------------===//
#include "ReferenceAttention.h"
#include "runtime/kernels/ReferenceAttentionRows.h"
#include "runtime/onednn/Parallel.h"

using namespace fsdp::rt;

static reference::Shape shapeOf(const AttentionDesc &d) {
  return {d.batch,   d.qLen,         d.kvLen,  d.heads,  d.kvHeads,
          d.headDim, float(d.scale), d.causal, d.window, float(d.cap)};
}

template <typename T> static T *as(std::byte *p) {
  return reinterpret_cast<T *>(p);
}

template <typename T>
static reference::Tensors<T> tensorsOf(const AttentionArguments &a) {
  return {as<T>(a.q),
          as<T>(a.k),
          as<T>(a.v),
          as<T>(a.out),
          as<T>(a.dout),
          as<float>(a.lse),
          as<float>(a.workspace),
          as<T>(a.dq),
          as<T>(a.dk),
          as<T>(a.dv),
          as<int32_t>(a.starts)};
}

static const ReferenceAttentionKernels<float> &kernelsOf(float) {
  return kernels().referenceF32;
}
static const ReferenceAttentionKernels<BF16> &kernelsOf(BF16) {
  return kernels().referenceBF16;
}

/// Calls run(the kernels of the type, the arguments' tensors, the shape).
template <typename Run>
static void dispatch(const AttentionDesc &d, const AttentionArguments &a,
                     const Run &run) {
  if (d.type == DType::F32)
    run(kernelsOf(float()), tensorsOf<float>(a), shapeOf(d));
  else
    run(kernelsOf(BF16()), tensorsOf<BF16>(a), shapeOf(d));
}

void fsdp::rt::referenceAttention(const AttentionDesc &d, int threads,
                                  const AttentionArguments &a) {
  dispatch(
      d, a, [&](auto &kernels, auto tensors, const reference::Shape &shape) {
        tensors.result = const_cast<decltype(tensors.result)>(tensors.out);
        parallelFor(threads, d.batch * d.qLen * d.heads, d.kvLen * d.headDim, 1,
                    [&](int64_t begin, int64_t end, int) {
                      kernels.forward(shape, tensors, begin, end);
                    });
      });
}

void fsdp::rt::referenceAttentionGrad(const AttentionDesc &d, int threads,
                                      const AttentionArguments &a) {
  dispatch(
      d, a, [&](auto &kernels, auto tensors, const reference::Shape &shape) {
        parallelFor(threads, d.batch * d.qLen * d.heads, d.kvLen * d.headDim, 1,
                    [&](int64_t begin, int64_t end, int) {
                      kernels.queryGrads(shape, tensors, begin, end);
                    });
        // These read what the queries have left.
        parallelFor(threads, d.batch * d.kvLen * d.kvHeads, d.qLen * d.headDim,
                    1, [&](int64_t begin, int64_t end, int) {
                      kernels.keyGrads(shape, tensors, begin, end);
                    });
      });
}
