//===- ModelTest.cpp - Rotary, embedding, cross entropy, copies -----------===//
#include "TestContext.h"
#include "fsdp/Target/CpuWorkspaces.h"
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

using namespace fsdp::rt;
using namespace fsdp::rt::test;

namespace {

constexpr Stream S = Stream::Compute;

TEST(Rotary, RotatesPairsAndBack) {
  constexpr int64_t B = 2, L = 5, H = 3, D = 8, n = B * L * H * D;
  for (bool halves : {false, true}) {
    TestContext t;
    float *x = t.take(normal(n, 1)), *y = t.take<float>(n);
    float *back = t.take<float>(n), *table = t.take<float>(L * D);
    for (int64_t s = 0; s < L; ++s)
      for (int64_t i = 0; i < D / 2; ++i) {
        double angle = double(s) * std::pow(100.0, -2.0 * double(i) / D);
        table[s * D + 2 * i] = float(std::cos(angle));
        table[s * D + 2 * i + 1] = float(std::sin(angle));
      }
    t.run([&](Context &c) {
      rotary(c, S, DType::F32, B, L, H, D, halves, false, ptr(x), ptr(table),
             ptr(y));
      rotary(c, S, DType::F32, B, L, H, D, halves, true, ptr(y), ptr(table),
             ptr(back));
    });
    for (int64_t row = 0; row < B * L * H; ++row)
      for (int64_t i = 0; i < D / 2; ++i) {
        int64_t s = row / H % L;
        int64_t first = row * D + (halves ? i : 2 * i);
        int64_t second = row * D + (halves ? i + D / 2 : 2 * i + 1);
        float cos = table[s * D + 2 * i], sin = table[s * D + 2 * i + 1];
        EXPECT_FLOAT_EQ(y[first], x[first] * cos - x[second] * sin);
        EXPECT_FLOAT_EQ(y[second], x[first] * sin + x[second] * cos);
      }
    EXPECT_LT(relativeError(back, x, n), 1e-6);
  }
}

/// Of 4 query heads and 2 key heads: the bits of each part alone.
TEST(Heads, AreSplitAndJoinedAsTheyAreRotated) {
  constexpr int64_t B = 2, L = 5, H = 4, K = 2, D = 8, All = H + 2 * K;
  constexpr int64_t tokens = B * L;
  TestContext t;
  t.options.threads = 2;
  float *x = t.take(normal(tokens * All * D, 1));
  float *table = t.take(normal(L * D, 2));
  float *whole = t.take<float>(tokens * All * D);
  float *parts[3], *wanted[3], *inputs[3], *back[3];
  const int64_t heads[3] = {H, K, K}, first[3] = {0, H, H + K};
  for (int p = 0; p < 3; ++p) {
    for (float **of : {&parts[p], &wanted[p], &inputs[p], &back[p]})
      *of = t.take<float>(tokens * heads[p] * D);
    for (int64_t token = 0; token < tokens; ++token)
      std::copy_n(x + (token * All + first[p]) * D, heads[p] * D,
                  inputs[p] + token * heads[p] * D);
  }
  t.run([&](Context &c) {
    splitHeads(c, S, DType::F32, B, L, H, K, D, true, ptr(x), ptr(table),
               ptr(parts[0]), ptr(parts[1]), ptr(parts[2]));
    joinHeads(c, S, DType::F32, B, L, H, K, D, true, ptr(parts[0]),
              ptr(parts[1]), ptr(parts[2]), ptr(table), ptr(whole));
    for (int p = 0; p < 2; ++p) {
      rotary(c, S, DType::F32, B, L, heads[p], D, true, false, ptr(inputs[p]),
             ptr(table), ptr(wanted[p]));
      rotary(c, S, DType::F32, B, L, heads[p], D, true, true, ptr(wanted[p]),
             ptr(table), ptr(back[p]));
    }
  });
  wanted[2] = back[2] = inputs[2]; // values are not rotated
  for (int p = 0; p < 3; ++p) {
    int64_t size = heads[p] * D;
    EXPECT_TRUE(std::equal(parts[p], parts[p] + tokens * size, wanted[p])) << p;
    for (int64_t token = 0; token < tokens; ++token)
      EXPECT_TRUE(std::equal(back[p] + token * size,
                             back[p] + (token + 1) * size,
                             whole + (token * All + first[p]) * D))
          << p << " of token " << token;
  }
}

void checkEmbedding(int64_t rows, int64_t classes, int64_t cols) {
  TestContext t;
  t.options.threads = 2;
  std::vector<int32_t> id(rows);
  for (int64_t r = 0; r < rows; ++r)
    id[size_t(r)] = int32_t(r * r % (classes - 2)); // some stay empty
  int32_t *ids = t.take(id);
  std::vector<float> dyValues = normal(rows * cols, 2);
  float *table = t.take(normal(classes * cols, 1));
  float *out = t.take<float>(rows * cols), *dy = t.take(dyValues);
  float *grad = t.take(normal(classes * cols, 3));
  BF16 *dyNarrow = t.take(toBF16(dyValues));
  BF16 *gradNarrow = t.take<BF16>(classes * cols);
  auto *workspace = t.take<std::byte>(
      cpu::embeddingGradWorkspaceBytes(rows, classes, cols, t.options.threads));
  std::string error = t.run([&](Context &c) {
    embedding(c, S, DType::F32, rows, classes, cols, false, ptr(ids),
              ptr(table), ptr(out));
    embeddingGrad(c, S, DType::F32, rows, classes, cols, false, ptr(ids),
                  ptr(dy), ptr(grad), nullptr);
    embeddingGrad(c, S, DType::BF16, rows, classes, cols, false, ptr(ids),
                  ptr(dyNarrow), ptr(gradNarrow), ptr(workspace));
  });
  ASSERT_EQ(error, "");
  std::vector<float> expected(classes * cols), narrow(classes * cols);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < cols; ++i) {
      EXPECT_EQ(out[r * cols + i], table[id[size_t(r)] * cols + i]);
      size_t to = size_t(id[size_t(r)] * cols + i);
      expected[to] += dyValues[size_t(r * cols + i)];
      narrow[to] += math::roundBF16(dyValues[size_t(r * cols + i)]);
    }
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(grad[i], expected[i]);
    EXPECT_EQ(math::widen(gradNarrow[i]), math::roundBF16(narrow[i]));
  }
}

TEST(Embedding, GathersRowsAndAddsGradientsInTokenOrder) {
  checkEmbedding(50, 7, 33);
  // So many that threads share them.
  checkEmbedding(300, 1000, 96);
}

// A sum with what stands for a row of another rank has the bits of the row.
TEST(Embedding, RowsOfOtherRanksAreNegativeZerosAndAddNothing) {
  constexpr int64_t rows = 4, classes = 2, cols = 3;
  TestContext t;
  int32_t *ids = t.take(std::vector<int32_t>{-1, 1, -1, 0});
  std::vector<float> values = {0.0f, -0.0f, 1.5f, -0.0f, 0.0f, -2.0f};
  std::vector<float> dyValues = normal(rows * cols, 2);
  float *table = t.take(values), *out = t.take<float>(rows * cols);
  BF16 *narrow = t.take(toBF16(values)), *outNarrow = t.take<BF16>(rows * cols);
  float *dy = t.take(dyValues), *grad = t.take(normal(classes * cols, 3));
  std::string error = t.run([&](Context &c) {
    embedding(c, S, DType::F32, rows, classes, cols, true, ptr(ids), ptr(table),
              ptr(out));
    embedding(c, S, DType::BF16, rows, classes, cols, true, ptr(ids),
              ptr(narrow), ptr(outNarrow));
    embeddingGrad(c, S, DType::F32, rows, classes, cols, true, ptr(ids),
                  ptr(dy), ptr(grad), nullptr);
  });
  ASSERT_EQ(error, "");
  const int64_t rowOf[] = {-1, 1, -1, 0};
  for (int64_t i = 0; i < rows * cols; ++i) {
    int64_t row = rowOf[i / cols], at = row * cols + i % cols;
    float expected = row < 0 ? -0.0f : values[size_t(at)];
    float sum = out[i] + 0.0f, negative = out[i] + -0.0f;
    EXPECT_EQ(std::memcmp(&out[i], &expected, 4), 0) << i;
    EXPECT_EQ(math::widen(outNarrow[i]), expected) << i;
    EXPECT_EQ(std::signbit(math::widen(outNarrow[i])), std::signbit(expected));
    if (row < 0) {
      EXPECT_FALSE(std::signbit(sum));
      EXPECT_TRUE(std::signbit(negative));
    } else {
      EXPECT_EQ(grad[at], dyValues[size_t(i)]);
    }
  }
}

TEST(Embedding, TokenOutsideTheVocabularyIsAnError) {
  for (bool absent : {false, true})
    for (int32_t bad : {-1, -2, 7, 1 << 30}) {
      TestContext t;
      int32_t *ids = t.take(std::vector<int32_t>{0, bad});
      float *table = t.take<float>(7 * 4), *out = t.take<float>(2 * 4);
      bool isError = !absent || bad != -1;
      std::string error = t.run([&](Context &c) {
        embedding(c, S, DType::F32, 2, 7, 4, absent, ptr(ids), ptr(table),
                  ptr(out));
      });
      EXPECT_EQ(error.find("token") != std::string::npos, isError) << bad;
      error = t.run([&](Context &c) {
        embeddingGrad(c, S, DType::F32, 2, 7, 4, absent, ptr(ids), ptr(out),
                      ptr(table), nullptr);
      });
      EXPECT_EQ(error.find("token") != std::string::npos, isError) << bad;
      // The next program is not blamed for it.
      EXPECT_EQ(t.run([](Context &) {}), "");
    }
}

TEST(CrossEntropy, AgreesWithF64) {
  constexpr int64_t rows = 40, classes = 37;
  for (DType type : {DType::F32, DType::BF16}) {
    TestContext t;
    t.options.threads = 2;
    std::vector<float> x = normal(rows * classes, 1);
    for (float &v : x)
      v = math::roundBF16(v * 5);
    std::vector<int32_t> target(rows);
    for (int64_t r = 0; r < rows; ++r)
      target[size_t(r)] = r % 4 == 3 ? -100 : int32_t(r * 11 % classes);
    Ptr logits = type == DType::F32 ? ptr(t.take(x)) : ptr(t.take(toBF16(x)));
    int32_t *targets = t.take(target);
    float *losses = t.take<float>(rows), *lse = t.take<float>(rows);
    // Each row has a cotangent of its own.
    std::vector<float> scale(rows);
    for (int64_t r = 0; r < rows; ++r)
      scale[size_t(r)] = float(r + 1) / 16;
    float *dlosses = t.take(scale);
    Ptr grad = t.take<std::byte>(rows * classes * 4);
    std::string error = t.run([&](Context &c) {
      crossEntropy(c, S, type, rows, classes, -100, logits, ptr(targets),
                   ptr(losses), ptr(lse));
      crossEntropyGrad(c, S, type, rows, classes, -100, logits, ptr(targets),
                       ptr(lse), ptr(dlosses), grad);
    });
    ASSERT_EQ(error, "");
    std::vector<double> expected;
    for (int64_t r = 0; r < rows; ++r) {
      double total = 0;
      for (int64_t j = 0; j < classes; ++j)
        total += std::exp(double(x[size_t(r * classes + j)]));
      int32_t label = target[size_t(r)];
      double logTotal = std::log(total);
      EXPECT_NEAR(lse[r], logTotal, 2e-6 * std::abs(logTotal));
      if (label >= 0)
        EXPECT_NEAR(losses[r], logTotal - x[size_t(r * classes + label)], 5e-6);
      else
        EXPECT_EQ(losses[r], 0.0f);
      for (int64_t j = 0; j < classes; ++j) {
        double p = std::exp(double(x[size_t(r * classes + j)])) / total;
        expected.push_back(label < 0 ? 0
                                     : (p - (j == label)) * scale[size_t(r)]);
      }
    }
    int64_t n = rows * classes;
    std::vector<float> got =
        type == DType::F32
            ? std::vector<float>(reinterpret_cast<float *>(grad),
                                 reinterpret_cast<float *>(grad) + n)
            : widen(reinterpret_cast<BF16 *>(grad), n);
    EXPECT_LT(relativeError(got.data(), expected.data(), n),
              type == DType::F32 ? 1e-6 : 4e-3);
  }
}

TEST(CrossEntropy, IgnoredRowsAreZero) {
  TestContext t;
  float *x = t.take(normal(20, 1));
  int32_t *targets = t.take(std::vector<int32_t>{-100, -100});
  float *losses = t.take(std::vector<float>{7, 7}), *lse = t.take<float>(2);
  float *one = t.take(std::vector<float>{1, 1});
  float *grad = t.take(normal(20, 2));
  t.run([&](Context &c) {
    crossEntropy(c, S, DType::F32, 2, 10, -100, ptr(x), ptr(targets),
                 ptr(losses), ptr(lse));
    crossEntropyGrad(c, S, DType::F32, 2, 10, -100, ptr(x), ptr(targets),
                     ptr(lse), ptr(one), ptr(grad));
  });
  EXPECT_EQ(losses[0], 0.0f);
  EXPECT_EQ(losses[1], 0.0f);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(grad[i], 0.0f);
}

TEST(CrossEntropy, TargetOutsideTheClassesIsAnError) {
  TestContext t;
  float *x = t.take(normal(20, 1));
  int32_t *targets = t.take(std::vector<int32_t>{3, 10});
  float *losses = t.take<float>(2), *lse = t.take<float>(2);
  std::string error = t.run([&](Context &c) {
    crossEntropy(c, S, DType::F32, 2, 10, -100, ptr(x), ptr(targets),
                 ptr(losses), ptr(lse));
  });
  EXPECT_NE(error.find("target"), std::string::npos) << error;
}

TEST(CountLabels, CountsWhatIsNotIgnored) {
  TestContext t;
  int32_t *targets = t.take(std::vector<int32_t>{-100, 3, 7, -100, 3, 0, -1});
  int64_t *counts = t.take(std::vector<int64_t>(6, -9));
  std::string error = t.run([&](Context &c) {
    countLabels(c, S, 7, 1, -100, ptr(targets), ptr(counts));
    countLabels(c, S, 7, 1, 3, ptr(targets), ptr(counts + 1));
    countLabels(c, S, 1, 1, -100, ptr(targets), ptr(counts + 2));
    countLabels(c, S, 6, 3, -100, ptr(targets), ptr(counts + 3));
  });
  ASSERT_EQ(error, "");
  EXPECT_EQ(counts[0], 5);
  EXPECT_EQ(counts[1], 5);
  EXPECT_EQ(counts[2], 0);
  EXPECT_EQ(counts[3], 1);
  EXPECT_EQ(counts[4], 1);
  EXPECT_EQ(counts[5], 2);
}

/// The element of a row-major tensor at an index.
int64_t linear(const std::vector<int64_t> &shape,
               const std::vector<int64_t> &index) {
  int64_t at = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    at = at * shape[d] + index[d];
  return at;
}

bool next(const std::vector<int64_t> &shape, std::vector<int64_t> &index) {
  for (size_t d = shape.size(); d-- > 0;) {
    if (++index[d] < shape[d])
      return true;
    index[d] = 0;
  }
  return false;
}

template <typename T>
void checkTranspose(DType type, const std::vector<int64_t> &shape,
                    const std::vector<int64_t> &permutation) {
  int64_t n = std::accumulate(shape.begin(), shape.end(), int64_t(1),
                              std::multiplies<>());
  std::vector<T> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), T(1));
  TestContext t;
  t.options.threads = 2;
  T *in = t.take(values), *out = t.take<T>(n);
  t.run([&](Context &c) {
    transpose(c, S, type, int(shape.size()), shape.data(), permutation.data(),
              ptr(in), ptr(out));
  });
  std::vector<int64_t> outShape;
  for (int64_t p : permutation)
    outShape.push_back(shape[size_t(p)]);
  std::vector<int64_t> index(shape.size(), 0);
  do {
    std::vector<int64_t> outIndex;
    for (int64_t p : permutation)
      outIndex.push_back(index[size_t(p)]);
    ASSERT_EQ(out[linear(outShape, outIndex)], in[linear(shape, index)]);
  } while (next(shape, index));
}

TEST(Layout, TransposesEveryWay) {
  checkTranspose<float>(DType::F32, {7, 33}, {1, 0});
  checkTranspose<float>(DType::F32, {200, 300}, {1, 0});
  checkTranspose<uint16_t>(DType::BF16, {3, 40, 5, 6}, {0, 2, 1, 3});
  checkTranspose<uint16_t>(DType::BF16, {3, 40, 5, 6}, {3, 2, 1, 0});
  checkTranspose<int64_t>(DType::I64, {4, 5, 6}, {1, 2, 0});
  checkTranspose<int64_t>(DType::I64, {4, 5, 6}, {2, 0, 1});
  checkTranspose<uint8_t>(DType::I8, {4, 1, 6}, {1, 2, 0});
  checkTranspose<float>(DType::F32, {5}, {0});
  checkTranspose<float>(DType::F32, {1, 1}, {1, 0});
}

TEST(Layout, CopiesABox) {
  const std::vector<int64_t> shape = {2, 3, 4}, inShape = {4, 5, 6};
  const std::vector<int64_t> outShape = {3, 7, 4};
  const std::vector<int64_t> inOffset = {1, 2, 2}, outOffset = {1, 3, 0};
  TestContext t;
  std::vector<float> values(120);
  std::iota(values.begin(), values.end(), 1.0f);
  float *in = t.take(values), *out = t.take<float>(84);
  t.run([&](Context &c) {
    fillZero(c, S, ptr(out), 84 * 4);
    copyBox(c, S, DType::F32, 3, shape.data(), inShape.data(), inOffset.data(),
            outShape.data(), outOffset.data(), ptr(in), ptr(out));
  });
  std::vector<float> expected(84);
  std::vector<int64_t> i(3, 0);
  do {
    expected[size_t(linear(outShape, {i[0] + 1, i[1] + 3, i[2]}))] =
        values[size_t(linear(inShape, {i[0] + 1, i[1] + 2, i[2] + 2}))];
  } while (next(shape, i));
  EXPECT_EQ(std::vector<float>(out, out + 84), expected);
}

TEST(Streams, CopyStreamRunsInOrderAndEventsOrderIt) {
  TestContext t;
  t.events = 2;
  constexpr int64_t n = 1 << 16;
  float *a = t.take<float>(n), *b = t.take<float>(n);
  t.run([&](Context &c) {
    for (int round = 1; round <= 2000; ++round) {
      a[0] = a[n - 1] = float(round);
      record(c, 0, S);
      wait(c, 0, Stream::Copy);
      copy(c, Stream::Copy, ptr(a), ptr(b), n * 4);
      record(c, 1, Stream::Copy);
      wait(c, 1, S);
      ASSERT_EQ(b[n - 1], float(round));
    }
    // More commands than slots, joined by the end of the program.
    for (int i = 0; i < 3000; ++i)
      copy(c, Stream::Copy, ptr(a), ptr(b + i % 7), 4);
  });
  EXPECT_EQ(b[6], 2000.0f);
}

/// Identifiers of the threads of this process.
std::set<std::string> threads() {
  std::set<std::string> all;
  for (const auto &task :
       std::filesystem::directory_iterator("/proc/self/task"))
    all.insert(task.path().filename());
  return all;
}

/// Those that have started since `before`. Threads that have ended may still be
/// listed for a moment.
size_t startedSince(const std::set<std::string> &before) {
  size_t count = 0;
  for (const std::string &thread : threads())
    count += before.count(thread) == 0;
  return count;
}

TEST(Streams, TheCopyStreamHasAThreadOnceItIsUsed) {
  TestContext t;
  t.events = 1;
  float *a = t.take(std::vector<float>{1, 2}), *b = t.take<float>(2);
  std::set<std::string> before = threads();
  t.run([&](Context &c) {
    copy(c, S, ptr(a), ptr(b), 8);
    record(c, 0, Stream::Gather);
    wait(c, 0, Stream::Reduce);
  });
  EXPECT_EQ(startedSince(before), 0u);
  for (int run = 0; run < 2; ++run) {
    t.run([&](Context &c) { copy(c, Stream::Copy, ptr(b), ptr(a), 8); });
    EXPECT_EQ(startedSince(before), 1u);
  }
}

TEST(Timeline, HasOneTrackPerStream) {
  std::string prefix = testing::TempDir() + "fsdp-trace-test";
  {
    TestContext t;
    t.options.tracePrefix = prefix;
    t.events = 1;
    float *a = t.take<float>(16);
    t.run([&](Context &c) {
      fillZero(c, S, ptr(a), 64);
      copy(c, Stream::Copy, ptr(a), ptr(a + 8), 32);
      record(c, 0, Stream::Copy);
      wait(c, 0, S);
    });
  }
  std::ifstream file(prefix + ".0.json");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text.rfind("{\"traceEvents\":[", 0), 0u);
  EXPECT_NE(text.find("\"name\":\"fill_zero\",\"pid\":0,\"tid\":0"),
            std::string::npos);
  EXPECT_NE(text.find("\"name\":\"copy\",\"pid\":0,\"tid\":3"),
            std::string::npos);
  std::remove((prefix + ".0.json").c_str());
}

} // namespace
