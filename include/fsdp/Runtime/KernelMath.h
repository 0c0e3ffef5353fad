//===- KernelMath.h - Scalar functions of emitted kernels -------*- C++ -*-===//
//
// Included by generated code and by the runtime's kernels. Each function
// is one branch-free formula that the host compiler vectorises, for every
// lane and tail alike, so that a value never depends on its position. Build
// with -ffp-contract=off (and -fno-math-errno -fno-trapping-math, which change
// no value but allow vectors): then every instruction set gives the same bits.
// A fused multiply-add is always spelled fma(); CPUs without it (before 2013)
// get the same bits from the C library, slowly.
//
// Coefficients: exp, log, tanh from Cephes (S. Moshier); erf from N. Juffa.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_KERNELMATH_H
#define FSDP_RUNTIME_KERNELMATH_H

#include <cstdint>
#include <cstring>
#include <utility>

// Always inlined: the same header is compiled for several instruction sets,
// and the linker must not pick one copy for all. CudaKernels.h defines
// FSDP_CUDA_CODE: the same functions on a GPU (built with -fmad=false).
#ifdef FSDP_CUDA_CODE
#define FSDP_MATH static __host__ __device__ __forceinline__
#else
#define FSDP_MATH static inline __attribute__((always_inline))
#endif

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
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  // One instruction, the same but for NaNs, of which a GPU has one: 0x7fff.
  BF16 narrow;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(x));
  return narrow;
#else
  uint32_t b = bitsOf(x);
  uint32_t rounded = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
  // Rounding could carry a NaN to infinity: keep it, made quiet.
  uint32_t nan = (b >> 16) | 0x40u;
  return {uint16_t((b & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
#endif
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

/// a * b + c, rounded once.
FSDP_MATH float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}

/// e^x, at most 1 ulp. Results outside the normal range are 0 (x < -87.33) or
/// infinity (x > 88.37).
FSDP_MATH float exp(float x) {
  // Adding 1.5 * 2^23 rounds to an integer n; the 127 on top makes the low
  // bits of the sum the biased exponent of 2^n.
  const float magic = 12582912.0f + 127.0f;
  float shifted = fma(x, 1.44269504088896341f, magic);
  float n = shifted - magic;
  float r = fma(n, -0.693359375f, x);
  r = fma(n, 2.12194440e-4f, r);
  float p = 1.9875691500e-4f;
  p = fma(p, r, 1.3981999507e-3f);
  p = fma(p, r, 8.3334519073e-3f);
  p = fma(p, r, 4.1665795894e-2f);
  p = fma(p, r, 1.6666665459e-1f);
  p = fma(p, r, 5.0000001201e-1f);
  float y = fma(p, r * r, r) + 1.0f;
  float result = y * fromBits(bitsOf(shifted) << 23);
  result = x > 88.37f ? __builtin_inff() : result;
  return x < -87.33f ? 0.0f : result;
}

/// Natural logarithm, at most 1 ulp.
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
  p = fma(p, f, -1.1514610310e-1f);
  p = fma(p, f, 1.1676998740e-1f);
  p = fma(p, f, -1.2420140846e-1f);
  p = fma(p, f, 1.4249322787e-1f);
  p = fma(p, f, -1.6668057665e-1f);
  p = fma(p, f, 2.0000714765e-1f);
  p = fma(p, f, -2.4999993993e-1f);
  p = fma(p, f, 3.3333331174e-1f);
  float y = p * f * z;
  y = fma(e, -2.12194440e-4f, y);
  y = fma(z, -0.5f, y);
  float result = fma(e, 0.693359375f, f + y);
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
  p = fma(p, z, 2.06390887954e-2f);
  p = fma(p, z, -5.37397155531e-2f);
  p = fma(p, z, 1.33314422036e-1f);
  p = fma(p, z, -3.33332819422e-1f);
  float small = fma(p * z, x, x);
  float large = copysign(1.0f - 2.0f / (exp(a + a) + 1.0f), x);
  large = x != x ? x : large;
  return a < 0.625f ? small : large;
}

/// Error function, at most 2 ulp.
FSDP_MATH float erf(float x) {
  float t = abs(x);
  float s = x * x;
  float p = -5.96761703e-4f;
  p = fma(p, s, 4.99119423e-3f);
  p = fma(p, s, -2.67681349e-2f);
  p = fma(p, s, 1.12819925e-1f);
  p = fma(p, s, -3.76125336e-1f);
  p = fma(p, s, 1.28379166e-1f);
  float small = fma(p, x, x);
  // Beyond 4 the result is 1, and the polynomial would leave its range.
  float c = t > 4.0f ? 4.0f : t;
  float q = fma(-1.72853470e-5f, c, 3.83197126e-4f);
  float u = fma(-3.88396438e-3f, c, 2.42546219e-2f);
  q = fma(q, c * c, u);
  q = fma(q, c, -1.06777877e-1f);
  q = fma(q, c, -6.34846687e-1f);
  q = fma(q, c, -1.28717512e-1f);
  q = fma(q, c, -c);
  float large = copysign(1.0f - exp(q), x);
  large = x != x ? x : large;
  return t > 0.927734375f ? large : small;
}

//===----------------------------------------------------------------------===//
// Reductions over the columns of a row: element j goes to lane j mod 16 in
// order of j; lanes are then combined as a tree (i with i+8, i+4, i+2, i+1).
//===----------------------------------------------------------------------===//

constexpr int kLanes = 16;

//===----------------------------------------------------------------------===//
// Reductions over the rows of a column: rows are split into blocks of 32; the
// rows of a block are combined in order, then the blocks in order.
//===----------------------------------------------------------------------===//

constexpr int64_t kRowBlock = 32;

struct AddRows {
  static constexpr float start = 0.0f;
  FSDP_MATH float combine(float a, float b) { return a + b; }
};
struct MaxRows {
  static constexpr float start = -__builtin_inff();
  FSDP_MATH float combine(float a, float b) { return max(a, b); }
};

/// The most columns of a RowOfLanes.
constexpr int kRowColumns = 256;

#ifndef FSDP_CUDA_CODE
//===----------------------------------------------------------------------===//
// Reductions over columns, vectorised by the host compiler
//===----------------------------------------------------------------------===//

// GCC splits a vector that is longer than the CPU's: where it is compared, into
// single elements, and between operations it is kept in memory. So lanes are
// several vectors of the length that the instruction set has.
#if defined(__AVX512F__)
constexpr int kVectorLanes = 16;
#elif defined(__AVX__)
constexpr int kVectorLanes = 8;
#else
constexpr int kVectorLanes = 4;
#endif
using Vector = float __attribute__((vector_size(kVectorLanes * sizeof(float))));
constexpr int kVectors = kLanes / kVectorLanes;

/// Lane i is element i mod kVectorLanes of vector i / kVectorLanes. A type for
/// each instruction set, so that no two share a function.
template <int Count> struct LanesOf { Vector vector[Count]; };
using Lanes = LanesOf<kVectors>;

/// Expressions are evaluated in blocks of this many columns: a loop of their
/// own, which the compiler vectorises whatever they compute.
constexpr int64_t kReduceBlock = 256;

/// term[i] = expression(j + i) for i in [0, n). The expression may also store.
template <typename Expression>
FSDP_MATH void evaluate(float *__restrict term, int64_t j, int64_t n,
                        const Expression &expression) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    term[i] = expression(j + i);
}

FSDP_MATH void loadLanes(Lanes &lanes, const float *p) {
  for (int i = 0; i < kVectors; ++i)
    __builtin_memcpy(&lanes.vector[i], p + i * kVectorLanes, sizeof(Vector));
}

/// Adds p[0..n) to the lanes, element i to lane i mod 16.
FSDP_MATH void addIntoLanes(Lanes &total, const float *p, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Lanes terms;
    loadLanes(terms, p + i);
    for (int v = 0; v < kVectors; ++v)
      total.vector[v] += terms.vector[v];
  }
  if (i == n)
    return;
  alignas(64) float lane[kLanes];
  __builtin_memcpy(lane, &total, sizeof lane);
  for (int64_t k = i; k < n; ++k)
    lane[k - i] += p[k];
  loadLanes(total, lane);
}

/// Element i of `to` is element i + Step of `from`, for i < Step.
template <int Step, int... I>
FSDP_MATH void shiftVector(Vector &to, const Vector &from,
                           std::integer_sequence<int, I...>) {
  to = __builtin_shufflevector(from, from, ((I + Step) % kVectorLanes)...);
}

/// Lane 0 becomes the tree over the lanes: `into` takes what stands Step lanes
/// on, then Step / 2, to 1.
template <int Step, typename Into>
FSDP_MATH void foldLanes(Lanes &total, const Into &into) {
  if constexpr (Step >= kVectorLanes) {
    constexpr int kHalf = Step / kVectorLanes;
    for (int i = 0; i < kHalf; ++i)
      into(total.vector[i], total.vector[i + kHalf]);
  } else {
    Vector other;
    shiftVector<Step>(other, total.vector[0],
                      std::make_integer_sequence<int, kVectorLanes>());
    into(total.vector[0], other);
  }
  if constexpr (Step > 1)
    foldLanes<Step / 2>(total, into);
}

FSDP_MATH float totalOfLanes(const Lanes &lanes) {
  Lanes total = lanes;
  foldLanes<kLanes / 2>(total,
                        [](Vector &to, const Vector &from) { to += from; });
  return total.vector[0][0];
}

/// The sum of p[0..n).
FSDP_MATH float sumOf(const float *p, int64_t n) {
  Lanes total = {};
  addIntoLanes(total, p, n);
  return totalOfLanes(total);
}

/// The sum of expression(j) for j in [0, n).
template <typename Expression>
FSDP_MATH float sumLanes(int64_t n, const Expression &expression) {
  alignas(64) float term[kReduceBlock];
  Lanes total = {};
  for (int64_t j = 0; j < n; j += kReduceBlock) {
    int64_t count = n - j < kReduceBlock ? n - j : kReduceBlock;
    evaluate(term, j, count, expression);
    addIntoLanes(total, term, count);
  }
  return totalOfLanes(total);
}

/// Element by element, a = max(a, b).
FSDP_MATH void maxInto(Vector &a, const Vector &b) {
  Vector m = a > b ? a : b;
  a = a != a ? a : m;
}
FSDP_MATH void maxIntoLanes(Lanes &a, const Lanes &b) {
  for (int i = 0; i < kVectors; ++i)
    maxInto(a.vector[i], b.vector[i]);
}
FSDP_MATH void maxIntoLanes(Lanes &a, const float *p) {
  Lanes b;
  loadLanes(b, p);
  maxIntoLanes(a, b);
}

/// The maximum of p[0..n), or a NaN among them. It does not depend on the
/// order, so several chains hide the latency of comparisons.
FSDP_MATH float maxOf(const float *p, int64_t n) {
  alignas(64) float lane[kLanes];
  for (float &l : lane)
    l = -__builtin_inff();
  Lanes a, b, c, d;
  loadLanes(a, lane);
  b = c = d = a;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    maxIntoLanes(a, p + i);
    maxIntoLanes(b, p + i + kLanes);
    maxIntoLanes(c, p + i + 2 * kLanes);
    maxIntoLanes(d, p + i + 3 * kLanes);
  }
  for (; i + kLanes <= n; i += kLanes)
    maxIntoLanes(a, p + i);
  if (i < n) {
    for (int64_t k = i; k < n; ++k)
      lane[k - i] = p[k];
    maxIntoLanes(b, lane);
  }
  maxIntoLanes(a, b);
  maxIntoLanes(c, d);
  maxIntoLanes(a, c);
  foldLanes<kLanes / 2>(
      a, [](Vector &to, const Vector &from) { maxInto(to, from); });
  return a.vector[0][0];
}

/// The maximum of expression(j) for j in [0, n), or a NaN among them.
template <typename Expression>
FSDP_MATH float maxLanes(int64_t n, const Expression &expression) {
  alignas(64) float term[kReduceBlock];
  float result = -__builtin_inff();
  for (int64_t j = 0; j < n; j += kReduceBlock) {
    int64_t count = n - j < kReduceBlock ? n - j : kReduceBlock;
    evaluate(term, j, count, expression);
    result = max(result, maxOf(term, count));
  }
  return result;
}

/// Numbers by column that the threads of a row keep.
struct RowOfLanes {
  alignas(64) float column[kRowColumns];
};

/// body(column, its number) for the first n columns.
template <typename Body>
FSDP_MATH void eachOfRow(RowOfLanes &row, int64_t n, const Body &body) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j)
    body(j, row.column[j]);
}

/// Stores the one number of a row.
FSDP_MATH void storeOfRow(float *p, float x) { *p = x; }
#endif // FSDP_CUDA_CODE

} // namespace math
} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELMATH_H
