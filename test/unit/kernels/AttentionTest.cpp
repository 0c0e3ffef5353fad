//===- AttentionTest.cpp - Against a naive attention in f64 ---------------===//
#include "TestContext.h"
#include "fsdp/Target/CpuWorkspaces.h"
#include <cstdlib>
#include <gtest/gtest.h>

using namespace fsdp::rt;
using namespace fsdp::rt::test;

namespace {

struct Reference {
  std::vector<double> out, lse, dq, dk, dv;
};

/// Index of [batch, token, head, 0].
int64_t row(int64_t b, int64_t t, int64_t h, int64_t len, int64_t heads,
            int64_t dim) {
  return ((b * len + t) * heads + h) * dim;
}

double dot(const float *a, const float *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += double(a[i]) * double(b[i]);
  return sum;
}

/// One query's softmax and its gradients, straight from the definition.
void addQuery(const AttentionDesc &d, const std::vector<float> &q,
              const std::vector<float> &k, const std::vector<float> &v,
              const std::vector<float> &dout,
              const std::vector<int32_t> &starts, Reference &r, int64_t b,
              int64_t h, int64_t i) {
  int64_t D = d.headDim, kv = h / (d.heads / d.kvHeads);
  int64_t at = row(b, i, h, d.qLen, d.heads, D);
  int64_t keys = d.causal ? i + 1 : d.kvLen;
  int64_t first = d.window == 0 ? 0 : std::max<int64_t>(i - d.window + 1, 0);
  if (d.starts)
    first = std::max<int64_t>(first, std::min<int64_t>(starts[b * d.qLen + i], i));
  std::vector<double> p(static_cast<size_t>(keys)), dp(p.size());
  std::vector<double> slope(p.size(), d.scale);
  double max = -1e300, sum = 0, delta = 0;
  auto key = [&](int64_t j) { return row(b, j, kv, d.kvLen, d.kvHeads, D); };
  for (int64_t j = first; j < keys; ++j) {
    p[j] = d.scale * dot(&q[at], &k[key(j)], D);
    if (d.cap != 0) {
      double t = std::tanh(p[j] / d.cap);
      p[j] = d.cap * t;
      slope[j] *= 1 - t * t;
    }
    max = std::max(max, p[j]);
  }
  for (int64_t j = first; j < keys; ++j)
    sum += p[j] = std::exp(p[j] - max);
  r.lse[(b * d.heads + h) * d.qLen + i] = max + std::log(sum);
  for (int64_t j = first; j < keys; ++j) {
    p[j] /= sum;
    dp[j] = dot(&dout[at], &v[key(j)], D);
    delta += p[j] * dp[j];
    for (int64_t x = 0; x < D; ++x) {
      r.out[at + x] += p[j] * v[key(j) + x];
      r.dv[key(j) + x] += p[j] * dout[at + x];
    }
  }
  for (int64_t j = first; j < keys; ++j)
    for (int64_t x = 0; x < D; ++x) {
      double g = p[j] * (dp[j] - delta) * slope[j];
      r.dq[at + x] += g * k[key(j) + x];
      r.dk[key(j) + x] += g * q[at + x];
    }
}

struct Case {
  AttentionDesc desc;
  int threads;
};

class AttentionTest : public testing::TestWithParam<Case> {};

template <typename T> std::vector<float> read(const T *p, int64_t n) {
  if constexpr (std::is_same_v<T, BF16>)
    return widen(p, n);
  else
    return std::vector<float>(p, p + n);
}

template <typename T> std::vector<T> typed(const std::vector<float> &values) {
  if constexpr (std::is_same_v<T, BF16>)
    return toBF16(values);
  else
    return values;
}

/// Where the document of each query begins: documents of 1 to 150 tokens that
/// begin elsewhere in each row, and, as nothing promises that they follow one
/// another, a start after its query and one that is earlier again.
std::vector<int32_t> startsOf(const AttentionDesc &d) {
  std::vector<int32_t> starts;
  for (int64_t b = 0; d.starts && b < d.batch; ++b) {
    int64_t start = 0, length = 7 + 61 * b;
    for (int64_t i = 0; i < d.qLen; ++i) {
      if (i == start + length) {
        start = i;
        length = (length * 37 + 11) % 150 + 1;
      }
      starts.push_back(int32_t(start));
    }
    starts[starts.size() - 1] = int32_t(d.qLen) + 5;
    starts[starts.size() - size_t(d.qLen / 2)] = -3;
  }
  return starts;
}

template <typename T> void check(const Case &c, double tolerance) {
  const AttentionDesc &d = c.desc;
  int64_t nq = d.batch * d.qLen * d.heads * d.headDim;
  int64_t nk = d.batch * d.kvLen * d.kvHeads * d.headDim;
  int64_t nl = d.batch * d.heads * d.qLen;
  TestContext t;
  t.attentions = {d};
  t.options.threads = c.threads;
  T *q = t.take(typed<T>(normal(nq, 1))), *k = t.take(typed<T>(normal(nk, 2)));
  T *v = t.take(typed<T>(normal(nk, 3)));
  T *dout = t.take(typed<T>(normal(nq, 4)));
  T *out = t.take<T>(nq), *dq = t.take<T>(nq);
  T *dk = t.take<T>(nk), *dv = t.take<T>(nk);
  float *lse = t.take<float>(nl);
  Ptr forward = t.take<std::byte>(cpu::attentionWorkspaceBytes(d, c.threads));
  Ptr backward =
      t.take<std::byte>(cpu::attentionGradWorkspaceBytes(d, c.threads));
  std::vector<int32_t> starts = startsOf(d);
  Ptr at = d.starts ? ptr(t.take(starts)) : nullptr;
  std::string error = t.run([&](Context &context) {
    attention(context, Stream::Compute, 0, ptr(q), ptr(k), ptr(v), at, ptr(out),
              ptr(lse), forward);
    attentionGrad(context, Stream::Compute, 0, ptr(q), ptr(k), ptr(v), ptr(out),
                  ptr(lse), ptr(dout), at, ptr(dq), ptr(dk), ptr(dv), backward);
  });
  ASSERT_EQ(error, "");

  Reference r;
  r.out.resize(nq);
  r.dq.resize(nq);
  r.dk.resize(nk);
  r.dv.resize(nk);
  r.lse.resize(nl);
  std::vector<float> wq = read(q, nq), wk = read(k, nk), wv = read(v, nk),
                     wd = read(dout, nq);
  for (int64_t b = 0; b < d.batch; ++b)
    for (int64_t h = 0; h < d.heads; ++h)
      for (int64_t i = 0; i < d.qLen; ++i)
        addQuery(d, wq, wk, wv, wd, starts, r, b, h, i);
  EXPECT_LT(relativeError(lse, r.lse.data(), nl), 1e-6);
  EXPECT_LT(relativeError(read(out, nq).data(), r.out.data(), nq), tolerance);
  // One key has the probability 1, whatever its score: no gradient but that of
  // rounding, whose error is absolute.
  double ofScores = d.window == 1 ? 100 * tolerance : tolerance;
  EXPECT_LT(relativeError(read(dq, nq).data(), r.dq.data(), nq), ofScores);
  EXPECT_LT(relativeError(read(dk, nk).data(), r.dk.data(), nk), ofScores);
  EXPECT_LT(relativeError(read(dv, nk).data(), r.dv.data(), nk), tolerance);
}

TEST_P(AttentionTest, AgreesWithTheDefinition) {
  if (GetParam().desc.type == DType::F32) {
    check<float>(GetParam(), 1e-6);
    return;
  }
  for (const char *native : {"1", "0"}) {
    setenv("FSDP_NATIVE_BF16", native, 1);
    check<BF16>(GetParam(), 8e-3);
  }
  unsetenv("FSDP_NATIVE_BF16");
}

// Lengths below, at and beyond a block (64) and a chunk (512), with remainders;
// grouped heads; queries and keys of different lengths.
INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionTest,
    testing::Values(Case{{1, 5, 5, 1, 1, 8, 0.35, true, DType::F32}, 1},
                    Case{{2, 64, 64, 2, 2, 32, 0.18, true, DType::F32}, 1},
                    Case{{2, 200, 200, 4, 2, 16, 0.25, true, DType::F32}, 2},
                    Case{{1, 700, 700, 2, 1, 32, 0.18, true, DType::F32}, 1},
                    Case{{1, 1100, 1100, 1, 1, 8, 0.35, true, DType::F32}, 1},
                    Case{{2, 70, 600, 2, 2, 16, 0.25, false, DType::F32}, 2},
                    Case{{1, 600, 70, 4, 1, 16, 0.25, false, DType::F32}, 1},
                    Case{{2, 256, 256, 4, 4, 32, 0.18, true, DType::BF16}, 2},
                    Case{{1, 700, 700, 2, 1, 32, 0.18, true, DType::BF16}, 1},
                    Case{{1, 70, 600, 2, 2, 16, 0.25, false, DType::BF16}, 1}));

/// Causal attention, in which a query sees `window` keys.
AttentionDesc seen(int64_t length, int64_t window, double cap, DType type,
                   bool plain = false) {
  return {2, length, length, 4, 2, 16, 0.25, true, type, plain, window, cap};
}

// Windows of one key and of all but one, of less and more than a block and a
// chunk, in sequences that end anywhere; caps that scores reach.
INSTANTIATE_TEST_SUITE_P(
    Views, AttentionTest,
    testing::Values(
        Case{seen(5, 1, 0, DType::F32), 1}, Case{seen(5, 4, 0, DType::F32), 1},
        Case{seen(200, 1, 0, DType::F32), 2},
        Case{seen(200, 199, 0, DType::F32), 2},
        Case{seen(200, 63, 1, DType::F32), 3},
        Case{seen(200, 64, 0, DType::F32), 1},
        Case{seen(200, 65, 0, DType::F32), 1},
        Case{seen(700, 128, 0.5, DType::F32), 2},
        Case{{1, 1100, 1100, 2, 1, 8, 0.35, true, DType::F32, false, 500, 0},
             2},
        Case{{1, 1100, 1100, 1, 1, 8, 0.35, true, DType::F32, false, 600, 2},
             1},
        Case{seen(200, 0, 1, DType::F32), 1},
        Case{{1, 70, 600, 2, 2, 16, 0.25, false, DType::F32, false, 0, 1}, 1},
        Case{seen(200, 70, 0, DType::BF16), 2},
        Case{seen(700, 100, 1, DType::BF16), 1},
        Case{seen(200, 0, 1, DType::BF16), 1}));

/// Attention over several documents in a row.
AttentionDesc packed(int64_t length, int64_t window, double cap, DType type,
                     bool plain = false) {
  AttentionDesc d = seen(length, window, cap, type, plain);
  d.starts = true;
  return d;
}

// Rows of less and more than a block and a chunk, that end anywhere.
INSTANTIATE_TEST_SUITE_P(
    Documents, AttentionTest,
    testing::Values(Case{packed(5, 0, 0, DType::F32), 1},
                    Case{packed(64, 0, 0, DType::F32), 1},
                    Case{packed(70, 0, 0, DType::F32), 2},
                    Case{packed(200, 0, 0, DType::F32), 3},
                    Case{packed(200, 30, 1, DType::F32), 2},
                    Case{packed(512, 0, 0, DType::F32), 1},
                    Case{packed(1100, 0, 0, DType::F32), 2},
                    Case{packed(1100, 600, 2, DType::F32), 2},
                    Case{packed(200, 0, 0, DType::BF16), 2},
                    Case{packed(700, 100, 1, DType::BF16), 1},
                    Case{packed(5, 0, 0, DType::F32, true), 1},
                    Case{packed(70, 0, 0, DType::F32, true), 2},
                    Case{packed(100, 30, 1, DType::F32, true), 2},
                    Case{packed(70, 0, 0, DType::BF16, true), 2}));

// Heads of less and more than sixteen elements.
INSTANTIATE_TEST_SUITE_P(
    Reference, AttentionTest,
    testing::Values(
        Case{{1, 5, 5, 1, 1, 8, 0.35, true, DType::F32, true}, 1},
        Case{{2, 70, 70, 4, 2, 40, 0.15, true, DType::F32, true}, 2},
        Case{{1, 60, 130, 4, 1, 16, 0.25, false, DType::F32, true}, 1},
        Case{{1, 20, 20, 2, 1, 256, 0.06, true, DType::F32, true}, 1},
        Case{{2, 100, 100, 4, 2, 32, 0.18, true, DType::BF16, true}, 2},
        Case{seen(70, 1, 0, DType::F32, true), 1},
        Case{seen(70, 69, 0.5, DType::F32, true), 2},
        Case{seen(70, 20, 0, DType::F32, true), 2},
        Case{{1, 60, 130, 4, 1, 16, 0.25, false, DType::F32, true, 0, 1}, 1},
        Case{seen(100, 30, 1, DType::BF16, true), 2}));

/// The output and all gradients of an attention in f32.
std::vector<float> resultsOf(const AttentionDesc &d, int threads) {
  int64_t nq = d.batch * d.qLen * d.heads * d.headDim;
  int64_t nk = d.batch * d.kvLen * d.kvHeads * d.headDim;
  TestContext t;
  t.attentions = {d};
  t.options.threads = threads;
  float *q = t.take(normal(nq, 1)), *k = t.take(normal(nk, 2));
  float *v = t.take(normal(nk, 3)), *dout = t.take(normal(nq, 4));
  float *result = t.take<float>(2 * nq + 2 * nk);
  float *lse = t.take<float>(d.batch * d.heads * d.qLen);
  Ptr space =
      t.take<std::byte>(std::max(cpu::attentionWorkspaceBytes(d, threads),
                                 cpu::attentionGradWorkspaceBytes(d, threads)));
  Ptr at = d.starts ? ptr(t.take(startsOf(d))) : nullptr;
  t.run([&](Context &c) {
    attention(c, Stream::Compute, 0, ptr(q), ptr(k), ptr(v), at, ptr(result),
              ptr(lse), space);
    attentionGrad(c, Stream::Compute, 0, ptr(q), ptr(k), ptr(v), ptr(result),
                  ptr(lse), ptr(dout), at, ptr(result + nq),
                  ptr(result + 2 * nq), ptr(result + 2 * nq + nk), space);
  });
  return {result, result + 2 * nq + 2 * nk};
}

class AttentionBitsTest : public testing::TestWithParam<bool> {};

TEST_P(AttentionBitsTest, AreThoseOfAnyNumberOfThreads) {
  for (const AttentionDesc &d : {seen(200, 0, 0, DType::F32, GetParam()),
                                 seen(200, 70, 1, DType::F32, GetParam()),
                                 packed(200, 0, 0, DType::F32, GetParam())}) {
    std::vector<float> one = resultsOf(d, 1);
    EXPECT_EQ(resultsOf(d, 2), one) << d.window;
    EXPECT_EQ(resultsOf(d, 3), one) << d.window;
  }
}

TEST_P(AttentionBitsTest, OfAWindowOfAllKeysAreThoseOfNone) {
  for (double cap : {0.0, 1.0}) {
    std::vector<float> none =
        resultsOf(seen(130, 0, cap, DType::F32, GetParam()), 1);
    for (int64_t window : {130, 131, 1000})
      EXPECT_EQ(resultsOf(seen(130, window, cap, DType::F32, GetParam()), 1),
                none)
          << window;
    EXPECT_NE(resultsOf(seen(130, 129, cap, DType::F32, GetParam()), 1), none);
  }
}

INSTANTIATE_TEST_SUITE_P(Attention, AttentionBitsTest, testing::Bool());

TEST(ReferenceAttention, KeepsHeadsInRegisters) {
  AttentionDesc d{1, 5, 5, 1, 1, 257, 0.35, true, DType::F32, true};
  EXPECT_EQ(cpu::attentionWorkspaceBytes(d, 1), -1);
  EXPECT_EQ(cpu::attentionGradWorkspaceBytes(d, 1), -1);
}

} // namespace
