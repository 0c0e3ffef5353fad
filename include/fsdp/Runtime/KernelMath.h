//===- KernelMath.h - Scalar functions of emitted kernels -------*- C++ -*-===//
//
// Included by generated CPU code and by the runtime's kernels. Each function
// is one branch-free formula that the host compiler vectorises, for every
// lane and tail alike, so that a value never depends on its position. Build
// with -ffp-contract=off (and -fno-math-errno -fno-trapping-math, which change
// no value but allow vectors): then every instruction set gives the same bits.
//
// Coefficients: exp, log, tanh from Cephes (S. Moshier); erf from N. Juffa.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_KERNELMATH_H
#define FSDP_RUNTIME_KERNELMATH_H

#include <cstdint>
#include <cstring>

// Always inlined: the same header is compiled for several instruction sets,
// and the linker must not pick one copy for all.
#define FSDP_MATH static inline __attribute__((always_inline))

namespace fsdp::rt {

/// A bf16 value in memory.
struct BF16 {
  uint16_t bits;
};

namespace math {

FSDP_MATH uint32_t bitsOf(float x) {
  uint32_t b;
  __builtin_memcpy(&b, &x, sizeof b);
  return b;
}
FSDP_MATH float fromBits(uint32_t b) {
  float x;
  __builtin_memcpy(&x, &b, sizeof x);
  return x;
}

//===----------------------------------------------------------------------===//
// Loads widen to f32, stores round to nearest even
//===----------------------------------------------------------------------===//

FSDP_MATH float widen(float x) { return x; }
FSDP_MATH float widen(BF16 x) { return fromBits(uint32_t(x.bits) << 16); }

FSDP_MATH BF16 toBF16(float x) {
  uint32_t b = bitsOf(x);
  uint32_t rounded = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
  // Rounding could carry a NaN to infinity: keep it, made quiet.
  uint32_t nan = (b >> 16) | 0x40u;
  return {uint16_t((b & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
}
/// The value of `x` after rounding to bf16.
FSDP_MATH float roundBF16(float x) { return widen(toBF16(x)); }

FSDP_MATH void store(float *p, float x) { *p = x; }
FSDP_MATH void store(BF16 *p, float x) { *p = toBF16(x); }

//===----------------------------------------------------------------------===//
// Elementary functions
//===----------------------------------------------------------------------===//

FSDP_MATH float abs(float x) { return fromBits(bitsOf(x) & 0x7fffffffu); }
FSDP_MATH float copysign(float magnitude, float sign) {
  return fromBits((bitsOf(magnitude) & 0x7fffffffu) |
                  (bitsOf(sign) & 0x80000000u));
}
/// A NaN on either side gives NaN.
FSDP_MATH float max(float a, float b) {
  float m = a > b ? a : b;
  return a != a ? a : m;
}
FSDP_MATH float min(float a, float b) {
  float m = a < b ? a : b;
  return a != a ? a : m;
}
FSDP_MATH float sqrt(float x) { return __builtin_sqrtf(x); }
FSDP_MATH float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }

/// e^x, at most 1.5 ulp; subnormal results included.
FSDP_MATH float exp(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  const float magic = 12582912.0f; // 1.5 * 2^23: adding it rounds to integer
  float shifted = x * 1.44269504088896341f + magic;
  float n = shifted - magic;
  // ln 2 in two parts; the product with the first one is exact.
  float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  float y = (p * (r * r) + r) + 1.0f;
  // 2^n as two factors, so that results near both ends of the range pass.
  int32_t exponent = int32_t(bitsOf(shifted) - bitsOf(magic));
  int32_t half = exponent >> 1;
  float first = fromBits(uint32_t(half + 127) << 23);
  float second = fromBits(uint32_t(exponent - half + 127) << 23);
  return y * first * second;
}

/// Natural logarithm, at most 1.5 ulp.
FSDP_MATH float log(float x) {
  // Subnormals are scaled into the normal range.
  bool tiny = x < 1.17549435e-38f;
  float scaled = tiny ? x * 8388608.0f : x;
  uint32_t b = bitsOf(scaled);
  // Mantissa in [sqrt(1/2), sqrt(2)).
  uint32_t offset = b - 0x3f3504f3u;
  float e = float(int32_t(offset) >> 23) - (tiny ? 23.0f : 0.0f);
  float f = fromBits((offset & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  float z = f * f;
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  float y = p * f * z;
  y = y + e * -2.12194440e-4f;
  y = y - 0.5f * z;
  float result = (f + y) + e * 0.693359375f;
  const float infinity = __builtin_inff();
  result = x == infinity ? infinity : result;
  result = x == 0.0f ? -infinity : result;
  return x < 0.0f || x != x ? __builtin_nanf("") : result;
}

/// 1 / (1 + e^-x).
FSDP_MATH float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

/// At most 2 ulp.
FSDP_MATH float tanh(float x) {
  float a = abs(x);
  float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  float small = (p * z) * x + x;
  float large = copysign(1.0f - 2.0f / (exp(a + a) + 1.0f), x);
  large = x != x ? x : large;
  return a < 0.625f ? small : large;
}

/// Error function, at most 2 ulp.
FSDP_MATH float erf(float x) {
  float t = abs(x);
  float s = x * x;
  float p = -5.96761703e-4f;
  p = p * s + 4.99119423e-3f;
  p = p * s - 2.67681349e-2f;
  p = p * s + 1.12819925e-1f;
  p = p * s - 3.76125336e-1f;
  p = p * s + 1.28379166e-1f;
  float small = p * x + x;
  // Beyond 4 the result is 1, and the polynomial would leave its range.
  float c = t > 4.0f ? 4.0f : t;
  float q = -1.72853470e-5f * c + 3.83197126e-4f;
  float u = -3.88396438e-3f * c + 2.42546219e-2f;
  q = q * (c * c) + u;
  q = q * c - 1.06777877e-1f;
  q = q * c - 6.34846687e-1f;
  q = q * c - 1.28717512e-1f;
  q = q * c - c;
  float large = copysign(1.0f - exp(q), x);
  large = x != x ? x : large;
  return t > 0.927734375f ? large : small;
}

//===----------------------------------------------------------------------===//
// Reductions over the columns of a row: element j goes to lane j mod 16 in
// order of j; lanes are then combined as a tree (i with i+8, i+4, i+2, i+1).
//===----------------------------------------------------------------------===//

constexpr int kLanes = 16;
typedef float Lanes __attribute__((vector_size(64)));

struct AddLanes {
  static constexpr float start = 0.0f;
  FSDP_MATH float one(float a, float b) { return a + b; }
  FSDP_MATH void all(Lanes &a, const Lanes &b) { a += b; }
};
struct MaxLanes {
  static constexpr float start = -__builtin_inff();
  FSDP_MATH float one(float a, float b) { return max(a, b); }
  FSDP_MATH void all(Lanes &a, const Lanes &b) {
    Lanes m = a > b ? a : b;
    a = a != a ? a : m;
  }
};

/// Combines expression(j) for j in [0, n). The expression may also store.
template <typename Combine, typename Expression>
FSDP_MATH float reduceLanes(int64_t n, const Expression &expression) {
  Lanes total;
  for (int i = 0; i < kLanes; ++i)
    total[i] = Combine::start;
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    alignas(64) float term[kLanes];
#pragma omp simd
    for (int i = 0; i < kLanes; ++i)
      term[i] = expression(j + i);
    Lanes terms;
    __builtin_memcpy(&terms, term, sizeof terms);
    Combine::all(total, terms);
  }
  alignas(64) float lane[kLanes];
  __builtin_memcpy(lane, &total, sizeof lane);
  for (int i = 0; j + i < n; ++i)
    lane[i] = Combine::one(lane[i], expression(j + i));
  for (int step = kLanes / 2; step > 0; step /= 2)
    for (int i = 0; i < step; ++i)
      lane[i] = Combine::one(lane[i], lane[i + step]);
  return lane[0];
}

template <typename Expression>
FSDP_MATH float sumLanes(int64_t n, const Expression &expression) {
  return reduceLanes<AddLanes>(n, expression);
}
template <typename Expression>
FSDP_MATH float maxLanes(int64_t n, const Expression &expression) {
  return reduceLanes<MaxLanes>(n, expression);
}

//===----------------------------------------------------------------------===//
// Reductions over rows, for every column in [begin, end): rows are cut into
// blocks of 32, the rows of a block are combined in order, then the blocks.
//===----------------------------------------------------------------------===//

constexpr int64_t kRowBlock = 32;

/// out[column] = expression(row, column) combined over the rows.
template <typename Combine, typename T, typename Expression>
FSDP_MATH void reduceRows(int64_t rows, int64_t begin, int64_t end, T *out,
                          const Expression &expression) {
  // Columns are independent, so the width of a strip changes no bit; it keeps
  // both accumulators in the first-level cache.
  constexpr int64_t strip = 512;
  alignas(64) float total[strip], block[strip];
  for (int64_t left = begin; left < end; left += strip) {
    const int64_t width = end - left < strip ? end - left : strip;
    for (int64_t i = 0; i < width; ++i)
      total[i] = Combine::start;
    for (int64_t top = 0; top < rows; top += kRowBlock) {
      const int64_t bottom = top + kRowBlock < rows ? top + kRowBlock : rows;
      for (int64_t i = 0; i < width; ++i)
        block[i] = Combine::start;
      for (int64_t row = top; row < bottom; ++row) {
#pragma omp simd
        for (int64_t i = 0; i < width; ++i)
          block[i] = Combine::one(block[i], expression(row, left + i));
      }
      for (int64_t i = 0; i < width; ++i)
        total[i] = Combine::one(total[i], block[i]);
    }
    for (int64_t i = 0; i < width; ++i)
      store(out + left + i, total[i]);
  }
}

template <typename T, typename Expression>
FSDP_MATH void sumRows(int64_t rows, int64_t begin, int64_t end, T *out,
                       const Expression &expression) {
  reduceRows<AddLanes>(rows, begin, end, out, expression);
}
template <typename T, typename Expression>
FSDP_MATH void maxRows(int64_t rows, int64_t begin, int64_t end, T *out,
                       const Expression &expression) {
  reduceRows<MaxLanes>(rows, begin, end, out, expression);
}

} // namespace math
} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELMATH_H
