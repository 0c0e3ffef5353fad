//===- Model.cu - Rotary, embedding, cross entropy ------------------------===//
#include "../Device.h"

using namespace fsdp::rt;
using namespace fsdp::rt::device;

//===----------------------------------------------------------------------===//
// Rotary
//===----------------------------------------------------------------------===//

namespace fsdp::rt::device {

struct RotaryShape {
  int64_t sequence, heads, dim;
  bool halves;
  float sign;
};

/// A row is a head of a token, a column a pair of it.
template <typename T>
__global__ void rotaryPairs(int64_t rows, RotaryShape s, const T *x,
                            const float *table, T *y) {
  gpu::elements(rows, s.dim / 2, [&](int64_t row, int64_t pair) {
    const int64_t token = row / s.heads % s.sequence;
    const int64_t first = row * s.dim + (s.halves ? pair : 2 * pair);
    const int64_t second = first + (s.halves ? s.dim / 2 : 1);
    const float *angle = table + token * s.dim + 2 * pair;
    const float a = math::widen(x[first]), b = math::widen(x[second]);
    const float cosine = angle[0], sine = angle[1] * s.sign;
    // Fused as on the CPU.
    math::store(y + first, math::fma(a, cosine, -(b * sine)));
    math::store(y + second, math::fma(a, sine, b * cosine));
  });
}

} // namespace fsdp::rt::device

void fsdp::rt::rotary(Context &c, Stream stream, DType type, int64_t batch,
                      int64_t sequence, int64_t heads, int64_t headDim,
                      bool halves, bool inverse, Ptr x, Ptr table, Ptr y) {
  int64_t rows = batch * sequence * heads;
  RotaryShape shape{sequence, heads, headDim, halves, inverse ? -1.0f : 1.0f};
  dispatch(type, "rotary", [&](auto tag) {
    using T = decltype(tag);
    gpu::startWith(c, stream, "rotary", rotaryPairs<T>,
                   gpu::elementsCut(rows * headDim / 2), rows, shape, as<T>(x),
                   as<float>(table), as<T>(y));
  });
}

//===----------------------------------------------------------------------===//
// Embedding
//===----------------------------------------------------------------------===//

namespace fsdp::rt::device {

FSDP_DEVICE bool inRange(int64_t id, int64_t classes, DataError error,
                         unsigned *flags) {
  if (id >= 0 && id < classes)
    return true;
  atomicOr(flags, unsigned(error));
  return false;
}

template <typename T>
__global__ void embeddingRows(int64_t rows, int64_t classes, int64_t cols,
                              const int32_t *ids, const T *table, T *out,
                              unsigned *flags) {
  gpu::elements(rows, cols, [&](int64_t row, int64_t col) {
    const int64_t id = ids[row];
    out[row * cols + col] = inRange(id, classes, kTokenOutOfRange, flags)
                                ? table[id * cols + col]
                                : T{};
  });
}

} // namespace fsdp::rt::device

void fsdp::rt::embedding(Context &c, Stream stream, DType type, int64_t rows,
                         int64_t classes, int64_t cols, Ptr ids, Ptr table,
                         Ptr out) {
  dispatch(type, "embedding", [&](auto tag) {
    using T = decltype(tag);
    gpu::startWith(c, stream, "embedding", embeddingRows<T>,
                   gpu::elementsCut(rows * cols), rows, classes, cols,
                   as<int32_t>(ids), as<T>(table), as<T>(out),
                   dataErrorFlags(c));
  });
}

namespace fsdp::rt::device {

/// One block per token. The first token of a class adds the rows of all its
/// tokens in order, in f32, and rounds once; the others have nothing to do.
template <typename T>
__global__ void embeddingGradRows(int64_t rows, int64_t classes, int64_t cols,
                                  const int32_t *ids, const T *dy, T *out,
                                  unsigned *flags) {
  const int64_t token = blockIdx.x;
  const int32_t id = ids[token];
  if (!inRange(id, classes, kTokenOutOfRange, flags))
    return;
  for (int64_t earlier = 0; earlier < token; ++earlier)
    if (ids[earlier] == id)
      return;
  for (int64_t col = threadIdx.x; col < cols; col += gpu::kThreads) {
    float total = 0.0f;
    for (int64_t row = token; row < rows; ++row)
      if (ids[row] == id)
        total = total + math::widen(dy[row * cols + col]);
    math::store(out + id * cols + col, total);
  }
}

} // namespace fsdp::rt::device

void fsdp::rt::embeddingGrad(Context &c, Stream stream, DType type,
                             int64_t rows, int64_t classes, int64_t cols,
                             Ptr ids, Ptr dy, Ptr out, Ptr) {
  fillZero(c, stream, out, classes * cols * sizeOf(type));
  dispatch(type, "embedding", [&](auto tag) {
    using T = decltype(tag);
    gpu::startWith(c, stream, "embedding_grad", embeddingGradRows<T>,
                   {rows, gpu::kThreads, 1, true}, rows, classes, cols,
                   as<int32_t>(ids), as<T>(dy), as<T>(out), dataErrorFlags(c));
  });
}

//===----------------------------------------------------------------------===//
// Cross entropy
//===----------------------------------------------------------------------===//

namespace fsdp::rt::device {

template <typename T>
__global__ void crossEntropyRows(int64_t rows, int64_t classes,
                                 int64_t ignoreIndex, const T *logits,
                                 const int32_t *targets, float *losses,
                                 float *lse, unsigned *flags) {
  const int64_t row = gpu::row();
  if (row >= rows)
    return;
  const T *x = logits + row * classes;
  const float m =
      math::maxLanes(classes, [&](int64_t j) { return math::widen(x[j]); });
  const float s = math::sumLanes(
      classes, [&](int64_t j) { return math::exp(math::widen(x[j]) - m); });
  const float total = m + math::log(s);
  if (gpu::lane() != 0)
    return;
  const int32_t target = targets[row];
  const bool counts = target != ignoreIndex &&
                      inRange(target, classes, kTargetOutOfRange, flags);
  lse[row] = total;
  losses[row] = counts ? total - math::widen(x[target]) : 0.0f;
}

} // namespace fsdp::rt::device

void fsdp::rt::crossEntropy(Context &c, Stream stream, DType type, int64_t rows,
                            int64_t classes, int64_t ignoreIndex, Ptr logits,
                            Ptr targets, Ptr losses, Ptr lse) {
  dispatch(type, "cross entropy", [&](auto tag) {
    using T = decltype(tag);
    gpu::startWith(c, stream, "cross_entropy", crossEntropyRows<T>,
                   gpu::rowsCut(rows), rows, classes, ignoreIndex,
                   as<T>(logits), as<int32_t>(targets), as<float>(losses),
                   as<float>(lse), dataErrorFlags(c));
  });
}

namespace fsdp::rt::device {

template <typename T>
__global__ void
crossEntropyGradRows(int64_t rows, int64_t classes, int64_t ignoreIndex,
                     const T *logits, const int32_t *targets, const float *lse,
                     const float *dlosses, T *out, unsigned *flags) {
  const int64_t row = gpu::row();
  if (row >= rows)
    return;
  const float g = dlosses[row];
  const int32_t target = targets[row];
  const bool counts = target != ignoreIndex &&
                      inRange(target, classes, kTargetOutOfRange, flags);
  const T *x = logits + row * classes;
  T *to = out + row * classes;
  for (int64_t j = gpu::lane(); j < classes; j += math::kLanes) {
    const float p = math::exp(math::widen(x[j]) - lse[row]);
    math::store(to + j, !counts ? 0.0f : (j == target ? p - 1.0f : p) * g);
  }
}

} // namespace fsdp::rt::device

void fsdp::rt::crossEntropyGrad(Context &c, Stream stream, DType type,
                                int64_t rows, int64_t classes,
                                int64_t ignoreIndex, Ptr logits, Ptr targets,
                                Ptr lse, Ptr dlosses, Ptr out) {
  dispatch(type, "cross entropy", [&](auto tag) {
    using T = decltype(tag);
    gpu::startWith(c, stream, "cross_entropy_grad", crossEntropyGradRows<T>,
                   gpu::rowsCut(rows), rows, classes, ignoreIndex,
                   as<T>(logits), as<int32_t>(targets), as<float>(lse),
                   as<float>(dlosses), as<T>(out), dataErrorFlags(c));
  });
}

namespace fsdp::rt::device {

/// Adds the labels of this block to `count`: integers, so the order of the
/// blocks does not matter.
__global__ void labelsOfBlock(int64_t rows, int64_t ignoreIndex,
                              const int32_t *targets,
                              unsigned long long *count) {
  __shared__ unsigned labels;
  if (threadIdx.x == 0)
    labels = 0;
  __syncthreads();
  unsigned mine = 0;
  gpu::elements(rows, 1, [&](int64_t row, int64_t) {
    mine += targets[row] != ignoreIndex;
  });
  atomicAdd(&labels, mine);
  __syncthreads();
  if (threadIdx.x == 0)
    atomicAdd(count, (unsigned long long)(labels));
}

} // namespace fsdp::rt::device

void fsdp::rt::countLabels(Context &c, Stream stream, int64_t rows,
                           int64_t parts, int64_t ignoreIndex, Ptr targets,
                           Ptr counts) {
  fillZero(c, stream, counts, parts * int64_t(sizeof(int64_t)));
  int64_t each = rows / parts;
  // The threads of a block wait for each other.
  gpu::Cut cut = gpu::elementsCut(each);
  cut.independent = false;
  // A rank counts one part, its own; more of them only where nothing is cut.
  for (int64_t part = 0; part < parts; ++part)
    gpu::startWith(c, stream, "count_labels", labelsOfBlock, cut, each,
                   ignoreIndex, as<int32_t>(targets) + part * each,
                   as<unsigned long long>(counts) + part);
}
