//===- OptimizerTest.cpp - Exact norm, clipping, AdamW --------------------===//
#include "TestContext.h"
#include "runtime/kernels/AdamWScalars.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace fsdp::rt;
using namespace fsdp::rt::test;

namespace {

constexpr Stream S = Stream::Compute;

/// The norm's parts of the tensors [0, n) split at `cuts`, reduced as the ranks
/// of a job would: maximum first, then integer sums.
struct Norm {
  float max = 0, norm = 0, coefficient = 0;
  int64_t sum[2] = {0, 0};
};

Norm normOf(const std::vector<float> &gradient,
            const std::vector<int64_t> &cuts, double maxNorm, int threads) {
  TestContext t;
  t.options.threads = threads;
  float *g = t.take(gradient), *max = t.take<float>(1);
  float *result = t.take<float>(2);
  int64_t *sum = t.take<int64_t>(2), *total = t.take<int64_t>(2);
  Norm n;
  t.run([&](Context &c) {
    int64_t begin = 0;
    for (int64_t end : cuts) {
      int64_t count = end - begin;
      absMax(c, S, &count, nullptr, {ptr(g + begin)}, ptr(max));
      n.max = math::max(n.max, *max);
      begin = end;
    }
    *max = n.max;
    begin = 0;
    total[0] = total[1] = 0;
    for (int64_t end : cuts) {
      int64_t count = end - begin;
      sumSquares(c, S, &count, nullptr, ptr(max), {ptr(g + begin)}, ptr(sum));
      total[0] += sum[0];
      total[1] += sum[1];
      begin = end;
    }
    clipCoefficient(c, S, maxNorm, 1, ptr(max), ptr(total), ptr(result),
                    ptr(result + 1));
  });
  n.norm = result[0];
  n.coefficient = result[1];
  std::copy(total, total + 2, n.sum);
  return n;
}

TEST(Optimizer, NormIsExactAndIndependentOfSharding) {
  std::vector<float> g = normal(100003, 5);
  for (size_t i = 0; i < g.size(); ++i)
    g[i] *= std::ldexp(1.0f, -int(i % 12));
  int64_t n = int64_t(g.size());
  Norm whole = normOf(g, {n}, 1.0, 1);
  double squares = 0;
  for (float x : g)
    squares += double(x) * double(x);
  EXPECT_NEAR(whole.norm, std::sqrt(squares), 1e-6 * std::sqrt(squares));
  EXPECT_FLOAT_EQ(whole.coefficient, 1.0f / (whole.norm + 1e-6f));
  for (const std::vector<int64_t> &cuts : std::vector<std::vector<int64_t>>{
           {1, 17, n}, {n / 3, n / 3 * 2, n}, {5, 50000, 50001, 99999, n}}) {
    Norm parts = normOf(g, cuts, 1.0, 2);
    EXPECT_EQ(whole.sum[0], parts.sum[0]);
    EXPECT_EQ(whole.sum[1], parts.sum[1]);
    EXPECT_EQ(whole.norm, parts.norm);
  }
}

TEST(Optimizer, NormOfExtremeValues) {
  // 2^127 and 2^-149 have squares outside f32; powers of two are exact.
  EXPECT_EQ(normOf({std::ldexp(1.0f, 127)}, {1}, 0, 1).norm,
            std::ldexp(1.0f, 127));
  EXPECT_EQ(normOf({std::ldexp(1.0f, -149)}, {1}, 0, 1).norm,
            std::ldexp(1.0f, -149));
  EXPECT_EQ(normOf({3.0f, -4.0f}, {1, 2}, 0, 1).norm, 5.0f);
  EXPECT_EQ(normOf({0.0f, -0.0f}, {2}, 0, 1).norm, 0.0f);
}

TEST(Optimizer, CoefficientClipsOnlyAboveTheLimit) {
  EXPECT_EQ(normOf({3.0f, 4.0f}, {2}, 10.0, 1).coefficient, 1.0f);
  EXPECT_EQ(normOf({3.0f, 4.0f}, {2}, 0.0, 1).coefficient, 1.0f);
  EXPECT_FLOAT_EQ(normOf({3.0f, 4.0f}, {2}, 2.5, 1).coefficient, 0.5f);
}

TEST(Optimizer, NonFiniteGradientsShowInTheNorm) {
  float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  EXPECT_EQ(normOf({1.0f, -inf}, {1, 2}, 1.0, 1).norm, inf);
  EXPECT_TRUE(std::isnan(normOf({1.0f, nan, inf}, {3}, 1.0, 1).norm));
  EXPECT_EQ(normOf({1.0f, inf}, {2}, 1.0, 1).sum[0], 0);
  for (double maxNorm : {0.0, 1.0})
    for (float bad : {inf, nan})
      EXPECT_TRUE(std::isnan(normOf({bad}, {1}, maxNorm, 1).coefficient));
}

TEST(Optimizer, AStepThatIsNotFiniteChangesNothing) {
  TestContext t;
  float *p = t.take(std::vector<float>{1, 2}),
        *m = t.take(std::vector<float>{3, 4}),
        *v = t.take(std::vector<float>{5, 6}),
        *g = t.take(std::vector<float>{NAN, 1});
  float *lr = t.take(std::vector<float>{1e-2f});
  int32_t *step = t.take(std::vector<int32_t>{3});
  float *clip = t.take(std::vector<float>{NAN});
  int64_t count = 2;
  AdamWDesc d{0.9, 0.95, 1e-8, 0.1};
  t.run([&](Context &c) {
    adamw(c, S, d, &count, nullptr, {ptr(p)}, {ptr(m)}, {ptr(v)}, {ptr(g)},
          ptr(lr), ptr(step), ptr(clip));
  });
  EXPECT_EQ(p[0], 1);
  EXPECT_EQ(p[1], 2);
  EXPECT_EQ(m[1], 4);
  EXPECT_EQ(v[1], 6);
}

TEST(Optimizer, AdamWAgreesWithF64OverSteps) {
  const std::vector<int64_t> counts = {1001, 37, 40000};
  AdamWDesc d{0.9, 0.95, 1e-8, 0.1};
  TestContext t;
  t.options.threads = 2;
  std::vector<float *> p, m, v, g;
  std::vector<std::vector<double>> rp, rm, rv;
  for (size_t i = 0; i < 3; ++i) {
    std::vector<float> x = normal(counts[i], unsigned(i));
    p.push_back(t.take(x));
    m.push_back(t.take<float>(counts[i]));
    v.push_back(t.take<float>(counts[i]));
    g.push_back(t.take<float>(counts[i]));
    rp.emplace_back(x.begin(), x.end());
    rm.emplace_back(x.size());
    rv.emplace_back(x.size());
  }
  float *lr = t.take(std::vector<float>{1e-2f});
  int32_t *step = t.take<int32_t>(1);
  float *clip = t.take(std::vector<float>{0.5f});
  for (*step = 1; *step <= 5; ++*step) {
    for (size_t i = 0; i < 3; ++i) {
      std::vector<float> x = normal(counts[i], unsigned(10 * *step + int(i)));
      std::copy(x.begin(), x.end(), g[i]);
      for (size_t j = 0; j < x.size(); ++j) {
        double grad = x[j] * 0.5, rate = *lr;
        rp[i][j] -= rate * d.weightDecay * rp[i][j];
        rm[i][j] += (grad - rm[i][j]) * (1 - d.beta1);
        rv[i][j] = rv[i][j] * d.beta2 + grad * grad * (1 - d.beta2);
        double root = std::sqrt(rv[i][j] / (1 - std::pow(d.beta2, *step)));
        rp[i][j] -=
            rate / (1 - std::pow(d.beta1, *step)) * rm[i][j] / (root + d.eps);
      }
    }
    t.run([&](Context &c) {
      adamw(c, S, d, counts.data(), nullptr, {ptr(p[0]), ptr(p[1]), ptr(p[2])},
            {ptr(m[0]), ptr(m[1]), ptr(m[2])},
            {ptr(v[0]), ptr(v[1]), ptr(v[2])},
            {ptr(g[0]), ptr(g[1]), ptr(g[2])}, ptr(lr), ptr(step), ptr(clip));
    });
  }
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_LT(relativeError(p[i], rp[i].data(), counts[i]), 2e-7);
    EXPECT_LT(relativeError(m[i], rm[i].data(), counts[i]), 2e-7);
    EXPECT_LT(relativeError(v[i], rv[i].data(), counts[i]), 2e-7);
  }
}

/// Each element once, in f32, whatever the type of what is added.
TEST(Optimizer, SumsGrowByTheirValues) {
  const int64_t counts[] = {40001, 37,
                            1}; // both threads have parts of the first
  const DType types[] = {DType::BF16, DType::F32, DType::F32};
  TestContext t;
  t.options.threads = 2;
  std::vector<float> before[3], added[3];
  float *sums[3], *wide[3];
  for (unsigned i = 0; i < 3; ++i) {
    before[i] = normal(counts[i], i);
    added[i] = normal(counts[i], 10 + i);
    sums[i] = t.take(before[i]);
    wide[i] = t.take(added[i]);
  }
  BF16 *narrow = t.take<BF16>(counts[0]);
  for (int64_t j = 0; j < counts[0]; ++j) {
    narrow[j] = math::toBF16(added[0][size_t(j)]);
    added[0][size_t(j)] = math::widen(narrow[j]);
  }
  t.run([&](Context &c) {
    accumulate(c, S, counts, types, {ptr(sums[0]), ptr(sums[1]), ptr(sums[2])},
               {ptr(narrow), ptr(wide[1]), ptr(wide[2])});
    accumulate(c, S, counts + 1, nullptr, {ptr(sums[1])}, {ptr(wide[1])});
  });
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < size_t(counts[i]); ++j) {
      float sum = before[i][j] + added[i][j];
      EXPECT_EQ(sums[i][j], i == 1 ? sum + added[i][j] : sum)
          << "tensor " << i << ", element " << j;
    }
}

/// Gradients in bf16 have the bits of the same ones widened, alone and in a
/// list with others.
TEST(Optimizer, NarrowGradientsAreWidenedAsTheyAreRead) {
  const int64_t counts[] = {40001, 4097}; // both threads have parts of them
  const DType types[] = {DType::BF16, DType::F32};
  AdamWDesc d{0.9, 0.95, 1e-8, 0.1};
  TestContext t;
  t.options.threads = 2;
  BF16 *narrow = t.take<BF16>(counts[0]);
  float *wide = t.take<float>(counts[0]);
  std::vector<float> gradient = normal(counts[0], 1);
  for (int64_t i = 0; i < counts[0]; ++i) {
    narrow[i] = math::toBF16(gradient[size_t(i)]);
    wide[i] = math::widen(narrow[i]);
  }
  float *other = t.take(normal(counts[1], 2)), *max = t.take<float>(2);
  int64_t *sums = t.take<int64_t>(4);
  float *lr = t.take(std::vector<float>{1e-2f}),
        *clip = t.take(std::vector<float>{0.5f});
  int32_t *step = t.take(std::vector<int32_t>{2});
  std::vector<float *> state; // parameters and moments of both runs
  for (unsigned run = 0; run < 2; ++run)
    for (unsigned list = 0; list < 3; ++list)
      for (int64_t count : counts) {
        std::vector<float> x = normal(count, 7 + list);
        for (float &v : x)
          v = list == 2 ? v * v : v;
        state.push_back(t.take(x));
      }
  t.run([&](Context &c) {
    for (int run = 0; run < 2; ++run) {
      const DType *of = run == 0 ? types : nullptr;
      Ptr first = run == 0 ? ptr(narrow) : ptr(wide);
      float **s = state.data() + 6 * run;
      absMax(c, S, counts, of, {first, ptr(other)}, ptr(max + run));
      sumSquares(c, S, counts, of, ptr(max + run), {first, ptr(other)},
                 ptr(sums + 2 * run));
      adamw(c, S, d, counts, of, {ptr(s[0]), ptr(s[1])}, {ptr(s[2]), ptr(s[3])},
            {ptr(s[4]), ptr(s[5])}, {first, ptr(other)}, ptr(lr), ptr(step),
            ptr(clip));
    }
  });
  EXPECT_EQ(max[0], max[1]);
  EXPECT_EQ(sums[0], sums[2]);
  EXPECT_EQ(sums[1], sums[3]);
  for (size_t list = 0; list < 6; ++list)
    EXPECT_TRUE(std::equal(state[list], state[list] + counts[list % 2],
                           state[list + 6]))
        << "list " << list;
}

/// Copies are the parameters rounded; a step that is not finite leaves them.
TEST(Optimizer, CopiesAreTheParametersInBF16) {
  const int64_t counts[] = {40001, 37}; // both threads have parts of the first
  AdamWDesc d{0.9, 0.95, 1e-8, 0.1};
  TestContext t;
  t.options.threads = 2;
  float *lr = t.take(std::vector<float>{1e-2f}),
        *clip = t.take(std::vector<float>{0.5f});
  int32_t *step = t.take(std::vector<int32_t>{2});
  std::vector<float *> p, m, v, g, expected;
  std::vector<BF16 *> copies;
  for (unsigned i = 0; i < 2; ++i) {
    std::vector<float> x = normal(counts[i], i);
    p.push_back(t.take(x));
    expected.push_back(t.take(x));
    g.push_back(t.take(normal(counts[i], 10 + i)));
    for (auto *list : {&m, &v})
      for (int twice = 0; twice < 2; ++twice)
        list->push_back(t.take<float>(counts[i]));
    copies.push_back(t.take<BF16>(counts[i]));
  }
  auto update = [&] {
    t.run([&](Context &c) {
      adamwCopy(c, S, d, counts, nullptr, {ptr(p[0]), ptr(p[1])},
                {ptr(m[0]), ptr(m[2])}, {ptr(v[0]), ptr(v[2])},
                {ptr(copies[0]), ptr(copies[1])}, {ptr(g[0]), ptr(g[1])},
                ptr(lr), ptr(step), ptr(clip));
    });
  };
  update();
  t.run([&](Context &c) {
    adamw(c, S, d, counts, nullptr, {ptr(expected[0]), ptr(expected[1])},
          {ptr(m[1]), ptr(m[3])}, {ptr(v[1]), ptr(v[3])},
          {ptr(g[0]), ptr(g[1])}, ptr(lr), ptr(step), ptr(clip));
  });
  for (size_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < counts[i]; ++j) {
      EXPECT_EQ(p[i][j], expected[i][j]);
      EXPECT_EQ(copies[i][j].bits, math::toBF16(p[i][j]).bits);
    }
  *clip = NAN;
  copies[1][3].bits = 77;
  update();
  EXPECT_EQ(copies[1][3].bits, 77);
  EXPECT_EQ(p[1][3], expected[1][3]);
}

/// The order of the products is fixed: these bits are those of a GPU too.
TEST(Optimizer, PowersAreProductsInOneOrder) {
  EXPECT_EQ(powerOf(0.9, 0), 1.0);
  EXPECT_EQ(powerOf(0.9, 1), 0.9);
  const double b = 0.999, square = b * b, fourth = square * square;
  EXPECT_EQ(powerOf(b, 7), b * square * fourth);
  EXPECT_EQ(powerOf(b, 8), fourth * fourth);
  EXPECT_EQ(powerOf(0.9, std::numeric_limits<int32_t>::max()), 0.0);
}

/// Rounded to f32 the scalars are what exact powers give.
TEST(Optimizer, ScalarsOfAStepAreRoundedOnce) {
  const float lr = 8e-4f;
  for (double beta : {0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 0.9999})
    for (int32_t step = 1; step <= 100000; ++step) {
      AdamWStep s = adamwScalars({beta, beta, 1e-8, 0.1}, lr, step, 1.0f);
      double power = std::pow(beta, step);
      ASSERT_EQ(s.stepSize, float(double(lr) / (1 - power)));
      ASSERT_EQ(s.rootBias2, float(std::sqrt(1 - power)));
    }
}

} // namespace
