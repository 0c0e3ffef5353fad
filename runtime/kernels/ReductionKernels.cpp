//===- ReductionKernels.cpp - Sums over ranks, and conversions ------------===//
#include "Isa.h"

using namespace fsdp::rt;

namespace {

/// Elements that are reduced at a time: the buffers of all levels of the tree
/// stay in the first-level cache.
constexpr int64_t kBlock = 256;
constexpr int kLevels = 32;

/// The largest power of two below `n`, where the tree along an axis splits.
inline int split(int n) {
  int s = 1;
  while (2 * s < n)
    s *= 2;
  return s;
}

struct Add {
  template <typename T> FSDP_MATH T apply(T a, T b) { return a + b; }
};
struct Max {
  FSDP_MATH float apply(float a, float b) { return math::max(a, b); }
};

FSDP_MATH int64_t load(int64_t x) { return x; }
FSDP_MATH float load(float x) { return x; }
FSDP_MATH float load(BF16 x) { return math::widen(x); }

/// Elements [at, at + n) of every rank's piece.
struct Block {
  const void *const *pieces;
  int64_t at, n;
};

/// Reduces `count` subtrees along axis `axis` of `ranks`, from the one at
/// position `first` on, into buffer[level]; deeper levels use the buffers
/// above.
template <typename Combine, typename In, typename Acc>
void tree(const Block &block, const RankTree &ranks, int axis, int first,
          int count, Acc (*buffer)[kBlock], int level) {
  Acc *__restrict out = buffer[level];
  int64_t n = block.n;
  bool innermost = axis + 1 >= ranks.axes;
  if (count == 1 && !innermost)
    return tree<Combine, In>(block, ranks, axis + 1, first,
                             ranks.axis[axis + 1].size, buffer, level);
  const In *a = static_cast<const In *>(block.pieces[first]) + block.at;
  if (count == 1) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
      out[i] = load(a[i]);
    return;
  }
  int stride = ranks.axis[axis].stride;
  if (count == 2 && innermost) {
    const In *b =
        static_cast<const In *>(block.pieces[first + stride]) + block.at;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
      out[i] = Combine::apply(load(a[i]), load(b[i]));
    return;
  }
  int left = split(count);
  tree<Combine, In>(block, ranks, axis, first, left, buffer, level);
  tree<Combine, In>(block, ranks, axis, first + left * stride, count - left,
                    buffer, level + 1);
  const Acc *__restrict right = buffer[level + 1];
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    out[i] = Combine::apply(out[i], right[i]);
}

/// Reduces all ranks into buffer[0].
template <typename Combine, typename In, typename Acc>
void tree(const Block &block, const RankTree &ranks, Acc (*buffer)[kBlock]) {
  int count = ranks.axes == 0 ? 1 : ranks.axis[0].size;
  tree<Combine, In>(block, ranks, 0, 0, count, buffer, 0);
}

template <typename Combine, typename In, typename Acc>
void reduce(const void *const *pieces, const RankTree &ranks, int64_t count,
            void *result) {
  alignas(64) Acc buffer[kLevels][kBlock];
  auto *out = static_cast<Acc *>(result);
  for (int64_t at = 0; at < count; at += kBlock) {
    int64_t n = count - at < kBlock ? count - at : kBlock;
    tree<Combine, In>({pieces, at, n}, ranks, buffer);
    const Acc *__restrict sum = buffer[0];
    Acc *__restrict to = out + at;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
      to[i] = sum[i];
  }
}

void widenRows(const BF16 *in, int64_t inStride, float *out, int64_t outStride,
               int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) {
    const BF16 *__restrict from = in + r * inStride;
    float *__restrict to = out + r * outStride;
#pragma omp simd
    for (int64_t i = 0; i < cols; ++i)
      to[i] = math::widen(from[i]);
  }
}

void narrowRows(const float *in, int64_t inStride, BF16 *out, int64_t outStride,
                int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) {
    const float *__restrict from = in + r * inStride;
    BF16 *__restrict to = out + r * outStride;
#pragma omp simd
    for (int64_t i = 0; i < cols; ++i)
      to[i] = math::toBF16(from[i]);
  }
}

} // namespace

void fsdp::rt::FSDP_ISA::addReductionKernels(Kernels &k) {
  k.widen = widenRows;
  k.narrow = narrowRows;
  k.sumF32 = reduce<Add, float, float>;
  k.sumBF16 = reduce<Add, BF16, float>;
  k.maxF32 = reduce<Max, float, float>;
  k.sumI64 = reduce<Add, int64_t, int64_t>;
}
