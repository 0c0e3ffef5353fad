//===- OptimizerKernels.cpp - Sums of gradients, exact norm, AdamW --------===//
#include "Isa.h"

using namespace fsdp::rt;

namespace {

template <typename T>
void accumulate(int64_t n, float *__restrict sum, const T *__restrict x) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    sum[i] = sum[i] + math::widen(x[i]);
}

/// The order of absolute values of floats is that of their bits, and a NaN is
/// above infinity: the integer maximum needs no case for it.
template <typename T> uint32_t absMaxBits(const T *x, int64_t n) {
  uint32_t m = 0;
#pragma omp simd reduction(max : m)
  for (int64_t i = 0; i < n; ++i) {
    uint32_t b = math::bitsOf(math::widen(x[i])) & 0x7fffffffu;
    m = b > m ? b : m;
  }
  return m;
}

/// Elements whose digits are added up in f64, which has vectors in every
/// instruction set: up to 2^29 digits of 24 bits it is exact.
constexpr int64_t kDigitBlock = 4096;

/// Adds the two 24-bit digits of each (x * inverse)^2 to sums[0] and sums[1].
/// `inverse` is a power of two, and |x * inverse| at most 1. Then the square of
/// a 24-bit mantissa is exact in f64, and so is each digit.
template <typename T>
void sumSquares(const T *x, int64_t n, double inverse, int64_t *sums) {
  // The square's first digit is its integer part.
  const double scale = inverse * 0x1p12;
  int64_t high = 0, low = 0;
  for (int64_t begin = 0; begin < n; begin += kDigitBlock) {
    int64_t end = n - begin < kDigitBlock ? n : begin + kDigitBlock;
    double highs = 0, lows = 0;
#pragma omp simd reduction(+ : highs, lows)
    for (int64_t i = begin; i < end; ++i) {
      double s = double(math::widen(x[i])) * scale;
      double y = s * s;
      double h = double(int32_t(y));
      highs += h;
      lows += double(int32_t((y - h) * 0x1p24));
    }
    high += int64_t(highs);
    low += int64_t(lows);
  }
  sums[0] += high;
  sums[1] += low;
}

template <bool HasCopy, typename T>
void update(const AdamWStep &step, int64_t n, float *__restrict parameter,
            float *__restrict first, float *__restrict second,
            BF16 *__restrict copy, const T *__restrict gradient) {
  const AdamWStep s = step;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    float g = math::widen(gradient[i]) * s.coefficient;
    float p = parameter[i];
    p = p - s.decay * p;
    float m = first[i];
    m = m + (g - m) * s.oneMinusBeta1;
    float v = second[i] * s.beta2 + g * g * s.oneMinusBeta2;
    float denominator = math::sqrt(v) / s.rootBias2 + s.eps;
    p = p - s.stepSize * m / denominator;
    parameter[i] = p;
    first[i] = m;
    second[i] = v;
    if constexpr (HasCopy)
      copy[i] = math::toBF16(p);
  }
}

template <typename T>
void adamw(const AdamWStep &step, int64_t n, float *parameter, float *first,
           float *second, const T *gradient) {
  update<false>(step, n, parameter, first, second, nullptr, gradient);
}

template <typename T>
void adamwCopy(const AdamWStep &step, int64_t n, float *parameter, float *first,
               float *second, BF16 *copy, const T *gradient) {
  update<true>(step, n, parameter, first, second, copy, gradient);
}

} // namespace

void fsdp::rt::FSDP_ISA::addOptimizerKernels(Kernels &k) {
  k.optimizerF32 = {accumulate<float>, absMaxBits<float>, sumSquares<float>,
                    adamw<float>, adamwCopy<float>};
  k.optimizerBF16 = {accumulate<BF16>, absMaxBits<BF16>, sumSquares<BF16>,
                     adamw<BF16>, adamwCopy<BF16>};
}
