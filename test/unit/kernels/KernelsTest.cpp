//===- KernelsTest.cpp - Kernel math, and equal bits on every ISA ---------===//
#include "runtime/kernels/Kernels.h"
#include "RankTrees.h"
#include "TestContext.h"
#include "runtime/kernels/ReferenceAttentionRows.h"
#include <gtest/gtest.h>
#include <limits>

using namespace fsdp::rt;
using namespace fsdp::rt::test;

// The kernels as compiled for each instruction set.
#define FSDP_DECLARE(isa)                                                      \
  namespace fsdp::rt::isa {                                                    \
  void addReductionKernels(Kernels &k);                                        \
  void addAttentionKernels(Kernels &k);                                        \
  void addReferenceAttentionKernels(Kernels &k);                               \
  void addModelKernels(Kernels &k);                                            \
  void addOptimizerKernels(Kernels &k);                                        \
  static Kernels all() {                                                       \
    Kernels k{};                                                               \
    addReductionKernels(k);                                                    \
    addAttentionKernels(k);                                                    \
    addReferenceAttentionKernels(k);                                           \
    addModelKernels(k);                                                        \
    addOptimizerKernels(k);                                                    \
    return k;                                                                  \
  }                                                                            \
  }
FSDP_DECLARE(baseline)
FSDP_DECLARE(avx2)
FSDP_DECLARE(avx512)

namespace {

//===----------------------------------------------------------------------===//
// Accuracy against the C library in f64
//===----------------------------------------------------------------------===//

/// The largest error in units of the last place of the rounded result.
template <typename Ours, typename Exact>
double worstUlp(Ours ours, Exact exact, double low, double high) {
  double worst = 0;
  for (int i = 0; i <= 200000; ++i) {
    float x = float(low + (high - low) * i / 200000.0);
    double expected = exact(double(x));
    double magnitude = std::max(std::fabs(expected), std::ldexp(1.0, -149));
    double unit = std::ldexp(1.0, std::max(-149, std::ilogb(magnitude) - 23));
    worst = std::max(worst, std::fabs(double(ours(x)) - expected) / unit);
  }
  return worst;
}

TEST(KernelMath, ElementaryFunctionsAreAccurate) {
  auto exp = [](double x) { return std::exp(x); };
  auto log = [](double x) { return std::log(x); };
  auto tanh = [](double x) { return std::tanh(x); };
  auto erf = [](double x) { return std::erf(x); };
  EXPECT_LE(worstUlp(math::exp, exp, -87.3, 88.3), 1.0);
  EXPECT_LE(worstUlp(math::exp, exp, -1, 1), 1.0);
  EXPECT_LE(worstUlp(math::log, log, 1e-40, 1e-37), 1.0);
  EXPECT_LE(worstUlp(math::log, log, 0.1, 3), 1.0);
  EXPECT_LE(worstUlp(math::log, log, 1, 3e38), 1.0);
  EXPECT_LE(worstUlp(math::tanh, tanh, -10, 10), 2.0);
  EXPECT_LE(worstUlp(math::tanh, tanh, -0.1, 0.1), 2.0);
  EXPECT_LE(worstUlp(math::erf, erf, -6, 6), 2.0);
  EXPECT_LE(worstUlp(math::erf, erf, -0.1, 0.1), 2.0);
}

TEST(KernelMath, SpecialValues) {
  float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  EXPECT_EQ(math::exp(-inf), 0.0f);
  EXPECT_EQ(math::exp(inf), inf);
  EXPECT_EQ(math::exp(0.0f), 1.0f);
  EXPECT_TRUE(std::isnan(math::exp(nan)));
  EXPECT_EQ(math::log(0.0f), -inf);
  EXPECT_EQ(math::log(inf), inf);
  EXPECT_EQ(math::log(1.0f), 0.0f);
  EXPECT_TRUE(std::isnan(math::log(-1.0f)));
  EXPECT_TRUE(std::isnan(math::log(nan)));
  EXPECT_EQ(math::tanh(-inf), -1.0f);
  EXPECT_TRUE(std::isnan(math::tanh(nan)));
  EXPECT_EQ(math::erf(inf), 1.0f);
  EXPECT_TRUE(std::isnan(math::erf(nan)));
  EXPECT_EQ(math::sigmoid(-inf), 0.0f);
  EXPECT_TRUE(std::isnan(math::max(1.0f, nan)));
  EXPECT_TRUE(std::isnan(math::max(nan, 1.0f)));
}

TEST(KernelMath, BF16RoundsToNearestEven) {
  float half = std::ldexp(1.0f, -8); // half of the last place of 1
  EXPECT_EQ(math::roundBF16(1.0f + half), 1.0f);
  EXPECT_EQ(math::roundBF16(1.0f + 3 * half), 1.0f + 4 * half);
  EXPECT_EQ(math::roundBF16(1.0f + half * 1.001f), 1.0f + 2 * half);
  EXPECT_EQ(math::roundBF16(3.4e38f), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(math::roundBF16(math::fromBits(0x7f800001u))));
}

TEST(KernelMath, ReductionsFollowTheLanes) {
  for (int64_t n : {1, 15, 16, 17, 255, 256, 257, 1000}) {
    std::vector<float> x = normal(n, unsigned(n));
    float lane[16] = {};
    for (int64_t j = 0; j < n; ++j)
      lane[j % 16] += x[size_t(j)];
    for (int step = 8; step > 0; step /= 2)
      for (int i = 0; i < step; ++i)
        lane[i] += lane[i + step];
    const float *p = x.data();
    EXPECT_EQ(math::sumOf(p, n), lane[0]);
    EXPECT_EQ(math::sumLanes(n, [=](int64_t j) { return p[j]; }), lane[0]);
    float max = *std::max_element(x.begin(), x.end());
    EXPECT_EQ(math::maxOf(p, n), max);
    EXPECT_EQ(math::maxLanes(n, [=](int64_t j) { return p[j]; }), max);
    x[size_t(n / 2)] = std::nanf("");
    EXPECT_TRUE(std::isnan(math::maxOf(x.data(), n)));
  }
}

//===----------------------------------------------------------------------===//
// Every instruction set, every position
//===----------------------------------------------------------------------===//

/// Results of all kernels on `n` columns, as bytes.
class Digest {
public:
  template <typename T> T *out(int64_t count) {
    buffers.emplace_back(size_t(count) * sizeof(T));
    return reinterpret_cast<T *>(buffers.back().data());
  }
  template <typename T> T *out(const std::vector<T> &values) {
    T *p = out<T>(int64_t(values.size()));
    std::copy(values.begin(), values.end(), p);
    return p;
  }
  std::vector<std::vector<char>> buffers;
};

void addAttention(const Kernels &k, int64_t n, Digest &d, int64_t window,
                  float cap) {
  constexpr int64_t rows = 3;
  int64_t stride = (n + 15) / 16 * 16;
  bool causal = n > rows;
  ScoreBlock b{rows, n, n - rows, 0, causal, 0.3f, causal ? window : 0, cap};
  float *s = d.out(normal(rows * stride, 1)), *m = d.out<float>(rows);
  float *l = d.out<float>(rows), *r = d.out<float>(rows);
  BF16 *narrow = d.out<BF16>(rows * stride);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = n; j < stride; ++j)
      s[i * stride + j] = 0;
  k.attentionSoftmax(b, s, stride, narrow, false, true, m, l, r);
  float *acc = d.out(normal(rows * n, 2)), *lse = d.out<float>(rows);
  k.attentionAccumulate(rows, n, l, acc, acc);
  k.attentionFinishF32(rows, n, acc, m, l, d.out<float>(rows * n), n, lse);
  k.attentionFinishBF16(rows, n, acc, m, l, d.out<BF16>(rows * n), n, lse);
  float *p = d.out(normal(rows * n, 3)), *g = d.out(normal(rows * n, 4));
  ScoreBlock transposed{rows, n, 0, 1, true, 0.3f, window, cap};
  std::vector<float> rowLse = normal(n, 5), delta = normal(n, 6);
  k.attentionBackward(transposed, p, g, n, d.out<BF16>(rows * n),
                      d.out<BF16>(rows * n), false, rowLse.data(),
                      delta.data());
  k.rowDotF32(rows, n, p, g, n, d.out<float>(rows));
}

template <typename T>
void addReferenceAttention(const ReferenceAttentionKernels<T> &k, int64_t n,
                           Digest &d, float cap) {
  // Four query heads read two key heads.
  reference::Shape shape{1, 3, 5, 4, 2, n, 0.3f, false, 0, cap};
  int64_t queries = 3 * 4 * n, keys = 5 * 2 * n;
  auto values = [&](int64_t count, unsigned seed) {
    if constexpr (std::is_same_v<T, BF16>)
      return d.out(toBF16(normal(count, seed)));
    else
      return d.out(normal(count, seed));
  };
  reference::Tensors<T> t{};
  t.q = values(queries, 1);
  t.k = values(keys, 2);
  t.v = values(keys, 3);
  t.dout = values(queries, 4);
  t.lse = d.out<float>(3 * 4);
  t.delta = d.out<float>(3 * 4);
  t.out = t.result = d.out<T>(queries);
  k.forward(shape, t, 0, 3 * 4);
  t.result = d.out<T>(queries);
  t.dk = d.out<T>(keys);
  t.dv = d.out<T>(keys);
  k.queryGrads(shape, t, 0, 3 * 4);
  k.keyGrads(shape, t, 0, 5 * 2);
}

void addModel(const Kernels &k, int64_t n, Digest &d) {
  std::vector<float> x = normal(n, 7), table = normal(n, 8);
  std::vector<BF16> narrow = toBF16(x);
  int64_t even = n / 2 * 2;
  for (bool halves : {false, true}) {
    k.rotaryF32(x.data(), table.data(), d.out<float>(n), 1, even, halves, true);
    k.rotaryBF16(narrow.data(), table.data(), d.out<BF16>(n), 1, even, halves,
                 false);
  }
  float *sum = d.out(x);
  k.addRowF32(table.data(), sum, n);
  k.addRowBF16(narrow.data(), sum, n);
  *d.out<float>(1) = k.logSumExpF32(x.data(), n);
  *d.out<float>(1) = k.logSumExpBF16(narrow.data(), n);
  k.crossEntropyGradF32(x.data(), n, 2.0f, n / 2, 0.1f, d.out<float>(n));
  k.crossEntropyGradBF16(narrow.data(), n, 2.0f, 0, 0.1f, d.out<BF16>(n));
  k.widen(narrow.data(), n, d.out<float>(n), n, 1, n);
  k.narrow(x.data(), n, d.out<BF16>(n), n, 1, n);
}

void addOptimizer(const Kernels &k, int64_t n, Digest &d) {
  std::vector<float> x = normal(n, 9);
  std::vector<BF16> narrow(x.size());
  k.narrow(x.data(), n, narrow.data(), n, 1, n);
  *d.out<uint32_t>(1) = k.optimizerF32.absMaxBits(x.data(), n);
  *d.out<uint32_t>(1) = k.optimizerBF16.absMaxBits(narrow.data(), n);
  k.optimizerF32.accumulate(n, d.out(normal(n, 13)), x.data());
  k.optimizerBF16.accumulate(n, d.out(normal(n, 13)), narrow.data());
  k.optimizerF32.sumSquares(x.data(), n, 0.125, d.out<int64_t>(2));
  k.optimizerBF16.sumSquares(narrow.data(), n, 0.125, d.out<int64_t>(2));
  AdamWStep step{1e-4f, 0.1f, 0.95f, 0.05f, 1e-2f, 0.3f, 1e-8f, 0.7f};
  std::vector<float> second = normal(n, 12);
  for (float &v : second)
    v = v * v;
  k.optimizerF32.adamw(step, n, d.out(normal(n, 10)), d.out(normal(n, 11)),
                       d.out(second), x.data());
  k.optimizerBF16.adamw(step, n, d.out(normal(n, 10)), d.out(normal(n, 11)),
                        d.out(second), narrow.data());
  k.optimizerF32.adamwCopy(step, n, d.out(normal(n, 10)), d.out(normal(n, 11)),
                           d.out(second), d.out<BF16>(n), x.data());
}

void addReductions(const Kernels &k, int64_t n, Digest &d) {
  for (const RankTree &tree : someRankTrees()) {
    int ranks = tree.ranks();
    std::vector<std::vector<float>> values;
    std::vector<std::vector<int64_t>> integers;
    std::vector<std::vector<BF16>> narrow;
    std::vector<const void *> pieces, narrowPieces, integerPieces;
    for (int r = 0; r < ranks; ++r) {
      values.push_back(normal(n, unsigned(20 + r)));
      narrow.push_back(toBF16(values.back()));
      integers.emplace_back(size_t(n), int64_t(r) << 40);
    }
    for (int r = 0; r < ranks; ++r) {
      pieces.push_back(values[size_t(r)].data());
      narrowPieces.push_back(narrow[size_t(r)].data());
      integerPieces.push_back(integers[size_t(r)].data());
    }
    k.sumF32(pieces.data(), tree, n, d.out<float>(n));
    k.maxF32(pieces.data(), tree, n, d.out<float>(n));
    k.sumBF16(narrowPieces.data(), tree, n, d.out<float>(n));
    k.sumI64(integerPieces.data(), tree, n, d.out<int64_t>(n));
  }
}

Digest digest(const Kernels &k, int64_t n) {
  Digest d;
  addAttention(k, n, d, 0, 0);
  addAttention(k, n, d, /*window=*/2, /*cap=*/0.5f);
  int64_t head = std::min<int64_t>(n, math::kRowColumns);
  for (float cap : {0.0f, 0.5f}) {
    addReferenceAttention(k.referenceF32, head, d, cap);
    addReferenceAttention(k.referenceBF16, head, d, cap);
  }
  addModel(k, n, d);
  addOptimizer(k, n, d);
  addReductions(k, n, d);
  return d;
}

/// The number of the first kernel result that differs, or -1.
int firstDifference(const Digest &a, const Digest &b) {
  for (size_t i = 0; i < a.buffers.size(); ++i)
    if (a.buffers[i] != b.buffers[i])
      return int(i);
  return -1;
}

TEST(Kernels, EveryInstructionSetGivesTheSameBits) {
  if (!__builtin_cpu_supports("avx2"))
    GTEST_SKIP() << "this CPU has one instruction set only";
  bool wide = __builtin_cpu_supports("avx512bw");
  for (int64_t n : {3, 16, 31, 64, 100, 257, 1000, 4097}) {
    Digest expected = digest(baseline::all(), n);
    EXPECT_EQ(firstDifference(expected, digest(avx2::all(), n)), -1) << n;
    if (wide) {
      EXPECT_EQ(firstDifference(expected, digest(avx512::all(), n)), -1) << n;
    }
  }
}

// Squares of 24-bit mantissas against integers, in whole blocks and rests.
TEST(Kernels, DigitsOfSquaresAreExact) {
  std::vector<Kernels> tables = {baseline::all()};
  if (__builtin_cpu_supports("avx2"))
    tables.push_back(avx2::all());
  if (__builtin_cpu_supports("avx512bw"))
    tables.push_back(avx512::all());
  std::mt19937 random(5);
  std::uniform_int_distribution<int64_t> mantissa(-(1 << 24), 1 << 24);
  for (int64_t n : {1, 15, 4095, 4096, 4097, 10000}) {
    std::vector<float> x;
    int64_t expected[2] = {7, 9}; // Added to what is there.
    for (int64_t i = 0; i < n; ++i) {
      int64_t m = i == 0 ? 1 << 24 : mantissa(random);
      x.push_back(std::ldexp(float(m), -20));
      expected[0] += m * m >> 24;
      expected[1] += m * m & ((1 << 24) - 1);
    }
    for (const Kernels &k : tables) {
      int64_t sums[2] = {7, 9};
      k.optimizerF32.sumSquares(x.data(), n, std::ldexp(1.0, -4), sums);
      EXPECT_EQ(sums[0], expected[0]) << n;
      EXPECT_EQ(sums[1], expected[1]) << n;
    }
  }
}

// A sum over several axes is a sum over the last one followed by sums over the
// axes before: what makes a reduce-scatter inside a node and an all-reduce
// between nodes equal to one collective over all ranks.
TEST(Kernels, SumsNestByMeshAxis) {
  constexpr int64_t n = 300;
  const Kernels &k = kernels();
  for (auto [outer, inner] : {std::pair{2, 3}, {3, 2}, {3, 5}, {5, 3}}) {
    std::vector<std::vector<float>> values, sums;
    std::vector<const void *> pieces, partial;
    for (int r = 0; r < outer * inner; ++r)
      values.push_back(normal(n, unsigned(40 + r)));
    for (const std::vector<float> &x : values)
      pieces.push_back(x.data());
    for (int o = 0; o < outer; ++o) {
      sums.emplace_back(size_t(n));
      k.sumF32(&pieces[size_t(o) * inner], rankTreeOf({inner}), n,
               sums.back().data());
    }
    for (const std::vector<float> &x : sums)
      partial.push_back(x.data());
    std::vector<float> chained(n), whole(n), flat(n);
    k.sumF32(partial.data(), rankTreeOf({outer}), n, chained.data());
    k.sumF32(pieces.data(), rankTreeOf({outer, inner}), n, whole.data());
    k.sumF32(pieces.data(), rankTreeOf({outer * inner}), n, flat.data());
    EXPECT_EQ(whole, chained) << outer << " x " << inner;
    if (inner != 2) {
      EXPECT_NE(whole, flat) << "the test's values show no order";
    }
  }
}

// A shard may begin anywhere: the value of an element must not depend on
// whether it falls into the vector body or the remainder of a loop.
TEST(Kernels, ValuesDoNotDependOnPosition) {
  constexpr int64_t n = 200;
  AdamWStep step{1e-4f, 0.1f, 0.95f, 0.05f, 1e-2f, 0.3f, 1e-8f, 0.7f};
  std::vector<float> g = normal(n, 1), p = normal(n, 2), m = normal(n, 3),
                     v(n, 0.5f);
  std::vector<float> wp = p, wm = m, wv = v;
  const Kernels &k = kernels();
  k.optimizerF32.adamw(step, n, wp.data(), wm.data(), wv.data(), g.data());
  for (int64_t i = 0; i < n; ++i)
    k.optimizerF32.adamw(step, 1, &p[size_t(i)], &m[size_t(i)], &v[size_t(i)],
                         &g[size_t(i)]);
  EXPECT_EQ(wp, p);
  EXPECT_EQ(wm, m);
  EXPECT_EQ(wv, v);
  std::vector<float> whole(n), single(n);
  k.crossEntropyGradF32(g.data(), n, 1.0f, 0, 0.5f, whole.data());
  for (int64_t i = 1; i < n; ++i) {
    float pair[2] = {g[0], g[size_t(i)]}, out[2];
    k.crossEntropyGradF32(pair, 2, 1.0f, 0, 0.5f, out);
    EXPECT_EQ(out[1], whole[size_t(i)]);
  }
}

} // namespace
