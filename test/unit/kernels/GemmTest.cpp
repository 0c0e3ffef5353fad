//===- GemmTest.cpp - Matmuls against f64, native and widened -------------===//
#include "TestContext.h"
#include <cstdlib>
#include <gtest/gtest.h>

using namespace fsdp::rt;
using namespace fsdp::rt::test;

namespace {

/// op(lhs)[b][i][k] op(rhs)[b][k][j] + bias[j] + before[b][i][j] in f64.
std::vector<double> product(const GemmDesc &d, const std::vector<float> &lhs,
                            const std::vector<float> &rhs,
                            const std::vector<float> &bias,
                            const std::vector<float> &before) {
  std::vector<double> out;
  for (int64_t b = 0; b < d.batch; ++b)
    for (int64_t i = 0; i < d.m; ++i)
      for (int64_t j = 0; j < d.n; ++j) {
        double sum = d.bias ? bias[size_t(j)] : 0.0;
        if (d.accumulate)
          sum += before[out.size()];
        for (int64_t k = 0; k < d.k; ++k) {
          int64_t l = d.transposeLhs ? k * d.m + i : i * d.k + k;
          int64_t r = d.transposeRhs ? j * d.k + k : k * d.n + j;
          sum += double(lhs[size_t(b * d.m * d.k + l)]) *
                 double(rhs[size_t(b * d.k * d.n + r)]);
        }
        out.push_back(sum);
      }
  return out;
}

/// The operand values after rounding to their type.
std::vector<float> rounded(std::vector<float> x, DType type) {
  if (type == DType::BF16)
    for (float &v : x)
      v = math::roundBF16(v);
  return x;
}

Ptr put(TestContext &t, const std::vector<float> &x, DType type) {
  return type == DType::BF16 ? ptr(t.take(toBF16(x))) : ptr(t.take(x));
}

/// Runs one matmul and gives its result widened to f32.
std::vector<float> run(const GemmDesc &d, int threads) {
  TestContext t;
  t.gemms = {d};
  t.options.threads = threads;
  Ptr lhs = put(t, normal(d.batch * d.m * d.k, 1), d.in);
  Ptr rhs = put(t, normal(d.batch * d.k * d.n, 2), d.in);
  Ptr bias = d.bias ? put(t, normal(d.n, 3), d.in) : nullptr;
  int64_t count = d.batch * d.m * d.n;
  Ptr out = d.accumulate ? put(t, normal(count, 4), d.out)
                         : t.take<std::byte>(count * sizeOf(d.out));
  int64_t bytes = gemmWorkspaceBytes(d, threads);
  EXPECT_GE(bytes, 0);
  // What lies behind the workspace must stay as it is.
  std::byte *workspace = t.take<std::byte>(bytes + 64);
  std::fill(workspace, workspace + bytes + 64, std::byte(0x5a));
  t.run([&](Context &c) {
    if (d.accumulate)
      gemmAdd(c, Stream::Compute, 0, lhs, rhs, out, workspace);
    else
      gemm(c, Stream::Compute, 0, lhs, rhs, bias, out, workspace);
  });
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(workspace[bytes + i], std::byte(0x5a));
  if (d.out == DType::BF16)
    return widen(reinterpret_cast<BF16 *>(out), count);
  auto *f = reinterpret_cast<float *>(out);
  return std::vector<float>(f, f + count);
}

class GemmTest : public testing::TestWithParam<GemmDesc> {};

TEST_P(GemmTest, AgreesWithF64) {
  const GemmDesc &d = GetParam();
  std::vector<double> expected =
      product(d, rounded(normal(d.batch * d.m * d.k, 1), d.in),
              rounded(normal(d.batch * d.k * d.n, 2), d.in),
              rounded(normal(d.n, 3), d.in), normal(d.batch * d.m * d.n, 4));
  double tolerance = d.out == DType::BF16 ? 3e-3 : 1e-6;
  for (const char *native : {"1", "0"}) {
    setenv("FSDP_NATIVE_BF16", native, 1);
    std::vector<float> got = run(d, 2);
    EXPECT_LT(relativeError(got.data(), expected.data(), int64_t(got.size())),
              tolerance);
    EXPECT_EQ(got, run(d, 2)) << "not the same bits twice";
  }
  unsetenv("FSDP_NATIVE_BF16");
}

constexpr DType F = DType::F32, B = DType::BF16;
INSTANTIATE_TEST_SUITE_P(
    Shapes, GemmTest,
    testing::Values(GemmDesc{1, 33, 65, 17, false, false, false, F, F},
                    GemmDesc{1, 33, 65, 17, true, false, false, F, F},
                    GemmDesc{1, 33, 65, 17, false, true, true, F, F},
                    GemmDesc{1, 33, 65, 17, true, true, false, F, F},
                    GemmDesc{3, 20, 30, 40, false, true, false, F, F},
                    GemmDesc{3, 20, 30, 40, true, false, true, F, F},
                    GemmDesc{1, 1, 64, 64, false, true, false, F, F},
                    GemmDesc{1, 128, 256, 192, false, true, false, B, B},
                    GemmDesc{1, 128, 256, 192, false, true, true, B, B},
                    GemmDesc{1, 128, 256, 192, true, false, false, B, F},
                    GemmDesc{1, 33, 65, 17, true, false, false, F, F, 0, true},
                    GemmDesc{1, 128, 256, 192, true, false, false, B, F, 0,
                             true},
                    GemmDesc{3, 20, 30, 40, false, false, false, B, B}));

TEST(Gemm, SaysWhatItCannotDo) {
  GemmDesc d{1, 4, 4, 4, false, false, false, DType::F64, DType::F64};
  EXPECT_EQ(gemmWorkspaceBytes(d, 1), -1);
  TestContext t;
  t.gemms = {d};
  EXPECT_THROW(t.get(), std::runtime_error);
}

TEST(Gemm, RefusesAnArtifactWithTooLittleWorkspace) {
  GemmDesc d{1, 128, 64, 128, false, true, false, DType::F32, DType::F32};
  int64_t bytes = gemmWorkspaceBytes(d, 1);
  if (bytes == 0)
    GTEST_SKIP() << "this matmul needs no workspace here";
  d.workspace = bytes;
  TestContext enough;
  enough.gemms = {d};
  enough.get();
  d.workspace = bytes - 1;
  TestContext little;
  little.gemms = {d};
  EXPECT_THROW(little.get(), std::runtime_error);
}

} // namespace
