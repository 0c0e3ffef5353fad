//===- ModelKernels.cpp - Rotary, embedding rows, cross entropy -----------===//
#include "Isa.h"

using namespace fsdp::rt;

namespace {

/// Rotates the pairs (first[i * step], second[i * step]) of one head.
template <typename T>
FSDP_MATH void rotateHead(const T *__restrict first, const T *__restrict second,
                          const float *__restrict table, T *__restrict outFirst,
                          T *__restrict outSecond, int64_t pairs, int64_t step,
                          float sign) {
#pragma omp simd
  for (int64_t i = 0; i < pairs; ++i) {
    float a = math::widen(first[i * step]);
    float b = math::widen(second[i * step]);
    float c = table[2 * i], s = table[2 * i + 1] * sign;
    // Fused by hand: g++-12 fuses such pairs even without contraction.
    math::store(outFirst + i * step, math::fma(a, c, -(b * s)));
    math::store(outSecond + i * step, math::fma(a, s, b * c));
  }
}

template <typename T>
void rotary(const T *x, const float *table, T *y, int64_t heads, int64_t dim,
            bool halves, bool inverse) {
  // The step between the members of neighbouring pairs is 1 or 2; as a
  // constant it lets the loop become vector code.
  float sign = inverse ? -1.0f : 1.0f;
  for (int64_t h = 0; h < heads; ++h) {
    const T *from = x + h * dim;
    T *to = y + h * dim;
    if (halves)
      rotateHead(from, from + dim / 2, table, to, to + dim / 2, dim / 2, 1,
                 sign);
    else
      rotateHead(from, from + 1, table, to, to + 1, dim / 2, 2, sign);
  }
}

template <typename T>
void addRow(const T *__restrict x, float *__restrict sum, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    sum[i] = sum[i] + math::widen(x[i]);
}

template <typename T> float logSumExp(const T *x, int64_t n) {
  float m = math::maxLanes(n, [=](int64_t j) { return math::widen(x[j]); });
  float s = math::sumLanes(
      n, [=](int64_t j) { return math::exp(math::widen(x[j]) - m); });
  return m + math::log(s);
}

template <typename T>
void crossEntropyGrad(const T *__restrict x, int64_t n, float lse,
                      int64_t target, float g, T *__restrict out) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j)
    math::store(out + j, math::exp(math::widen(x[j]) - lse) * g);
  float p = math::exp(math::widen(x[target]) - lse);
  math::store(out + target, (p - 1.0f) * g);
}

} // namespace

void fsdp::rt::FSDP_ISA::addModelKernels(Kernels &k) {
  k.rotaryF32 = rotary<float>;
  k.rotaryBF16 = rotary<BF16>;
  k.addRowF32 = addRow<float>;
  k.addRowBF16 = addRow<BF16>;
  k.logSumExpF32 = logSumExp<float>;
  k.logSumExpBF16 = logSumExp<BF16>;
  k.crossEntropyGradF32 = crossEntropyGrad<float>;
  k.crossEntropyGradBF16 = crossEntropyGrad<BF16>;
}
