//===- Kernels.h - The runtime's own kernels --------------------*- C++ -*-===//
//
// The kernels are compiled once per instruction set (see CMakeLists.txt) and
// chosen when the library is loaded. All versions give the same bits. They run
// on one thread over the range that they are given.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_KERNELS_KERNELS_H
#define FSDP_RUNTIME_KERNELS_KERNELS_H

#include "RankTree.h"
#include "fsdp/Runtime/KernelMath.h"
#include "fsdp/Runtime/Types.h"

namespace fsdp::rt {

/// Scalars of one AdamW step, rounded once from f64.
struct AdamWStep {
  float decay; // lr * weight decay
  float oneMinusBeta1, beta2, oneMinusBeta2;
  float stepSize;  // lr / (1 - beta1^t)
  float rootBias2; // sqrt(1 - beta2^t)
  float eps;
  float coefficient; // of clipping
};

/// One block of attention scores: `rows` queries from `query` on, `cols` keys
/// from `key` on (backward the other way round). Under `causal`, a query sees
/// keys up to itself, of these the last `window` if that is not 0. Rows have
/// room for whole vectors of 16; `scale` is positive. A cap of 0 is none.
struct ScoreBlock {
  int64_t rows, cols, query, key;
  bool causal;
  float scale;
  int64_t window;
  float cap;
  /// Where the documents of the queries from `query` on begin; null: all see
  /// from the first key on. A start after its query is the query.
  const int32_t *starts = nullptr;
};

// See ReferenceAttentionRows.h.
namespace reference {
struct Shape;
template <typename T> struct Tensors;
} // namespace reference
template <typename T> struct ReferenceAttentionKernels {
  using Rows = void (*)(const reference::Shape &, const reference::Tensors<T> &,
                        int64_t begin, int64_t end);
  Rows forward, queryGrads, keyGrads;
};

/// For gradients of type T; all else is f32.
template <typename T> struct OptimizerKernels {
  void (*accumulate)(int64_t n, float *sum, const T *g);
  uint32_t (*absMaxBits)(const T *x, int64_t n);
  void (*sumSquares)(const T *x, int64_t n, double inverse, int64_t *sums);
  void (*adamw)(const AdamWStep &s, int64_t n, float *p, float *m, float *v,
                const T *g);
  /// `copy` becomes p in bf16.
  void (*adamwCopy)(const AdamWStep &s, int64_t n, float *p, float *m, float *v,
                    BF16 *copy, const T *g);
};

struct Kernels {
  // bf16 <-> f32, `rows` rows of `cols` elements at the given strides.
  void (*widen)(const BF16 *in, int64_t inStride, float *out, int64_t outStride,
                int64_t rows, int64_t cols);
  void (*narrow)(const float *in, int64_t inStride, BF16 *out,
                 int64_t outStride, int64_t rows, int64_t cols);

  // Reduction over ranks: pieces[p] of the rank at each position of the group,
  // combined in the order of the tree.
  void (*sumF32)(const void *const *pieces, const RankTree &ranks,
                 int64_t count, void *out);
  void (*sumBF16)(const void *const *pieces, const RankTree &ranks,
                  int64_t count, void *out);
  void (*sumI64)(const void *const *pieces, const RankTree &ranks,
                 int64_t count, void *out);
  void (*maxF32)(const void *const *pieces, const RankTree &ranks,
                 int64_t count, void *out);

  // Attention, forward: scores become probabilities relative to the running
  // maximum (probabilities: the scores' own place for f32, or bf16 at
  // `narrow`); `rescale` gets the factor for what was summed before.
  void (*attentionSoftmax)(const ScoreBlock &b, float *scores, int64_t stride,
                           BF16 *narrow, bool roundToBF16, bool first,
                           float *maximum, float *sum, float *rescale);
  // accumulator = accumulator * rescale + part, per row.
  void (*attentionAccumulate)(int64_t rows, int64_t cols, const float *rescale,
                              const float *part, float *accumulator);
  void (*attentionFinishF32)(int64_t rows, int64_t cols, const float *acc,
                             const float *maximum, const float *sum, float *out,
                             int64_t outStride, float *lse);
  void (*attentionFinishBF16)(int64_t rows, int64_t cols, const float *acc,
                              const float *maximum, const float *sum, BF16 *out,
                              int64_t outStride, float *lse);
  // Attention, backward: rows are keys, columns are queries. `probabilities`
  // holds scores and `gradients` the products dP; both become P and dS.
  void (*attentionBackward)(const ScoreBlock &b, float *probabilities,
                            float *gradients, int64_t stride, BF16 *narrowP,
                            BF16 *narrowS, bool roundToBF16, const float *lse,
                            const float *delta);
  // delta[i] = sum_j out[i][j] * dout[i][j].
  void (*rowDotF32)(int64_t rows, int64_t cols, const float *a, const float *b,
                    int64_t stride, float *out);
  void (*rowDotBF16)(int64_t rows, int64_t cols, const BF16 *a, const BF16 *b,
                     int64_t stride, float *out);

  // Attention without a library.
  ReferenceAttentionKernels<float> referenceF32;
  ReferenceAttentionKernels<BF16> referenceBF16;

  // One token: `heads` heads of `dim` elements, table [dim/2][2] = cos, sin.
  void (*rotaryF32)(const float *x, const float *table, float *y, int64_t heads,
                    int64_t dim, bool halves, bool inverse);
  void (*rotaryBF16)(const BF16 *x, const float *table, BF16 *y, int64_t heads,
                     int64_t dim, bool halves, bool inverse);

  void (*addRowF32)(const float *x, float *sum, int64_t n);
  void (*addRowBF16)(const BF16 *x, float *sum, int64_t n);

  // Cross entropy of one row: log-sum-exp, and (exp(x - lse) - onehot) * g.
  float (*logSumExpF32)(const float *x, int64_t n);
  float (*logSumExpBF16)(const BF16 *x, int64_t n);
  void (*crossEntropyGradF32)(const float *x, int64_t n, float lse,
                              int64_t target, float g, float *out);
  void (*crossEntropyGradBF16)(const BF16 *x, int64_t n, float lse,
                               int64_t target, float g, BF16 *out);

  OptimizerKernels<float> optimizerF32;
  OptimizerKernels<BF16> optimizerBF16;
};

/// The kernels for this CPU.
const Kernels &kernels();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_KERNELS_H
