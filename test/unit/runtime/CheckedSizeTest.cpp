//===- CheckedSizeTest.cpp - Sizes at the edge of 64 bits -----------------===//
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Target/CollectivePieces.h"
#include "fsdp/Target/CpuWorkspaces.h"
#include "fsdp/Target/CudaWorkspaces.h"
#include <gtest/gtest.h>
#include <vector>

using namespace fsdp;

TEST(CheckedSize, ProductsAndSums) {
  EXPECT_EQ((CheckedSize(6) * 7 + 8).get(), 50);
  EXPECT_EQ(productOf(std::vector<int64_t>{}).get(), 1);
  EXPECT_EQ(productOf(std::vector<int64_t>{12, INT64_MAX}).saturated(),
            INT64_MAX);
  CheckedSize half = int64_t(1) << 62;
  EXPECT_TRUE(half.fits(kMaxArenaBytes));
  EXPECT_FALSE((half + 1).fits(kMaxArenaBytes));
  EXPECT_FALSE((half + half).fits(INT64_MAX));
  EXPECT_FALSE((half * 4).fits(INT64_MAX));
}

// 2^32 x 2^32 is 0 in 64 bits; a size that was once too large stays it.
TEST(CheckedSize, TooLargeStaysTooLarge) {
  CheckedSize wrapped = CheckedSize(int64_t(1) << 32) * (int64_t(1) << 32);
  EXPECT_FALSE(wrapped.fits(INT64_MAX));
  EXPECT_FALSE((wrapped * 0).fits(INT64_MAX));
  EXPECT_FALSE((wrapped + 0).fits(INT64_MAX));
  EXPECT_FALSE(CheckedSize(-1).fits(INT64_MAX));
}

TEST(CheckedSize, DivisionRoundsUp) {
  EXPECT_EQ(ceilDiv(0, 4), 0);
  EXPECT_EQ(ceilDiv(9, 4), 3);
  EXPECT_EQ(ceilDiv(INT64_MAX, 2), int64_t(1) << 62);
  EXPECT_EQ(roundedUp(65, 64).get(), 128);
  EXPECT_FALSE(roundedUp(INT64_MAX - 1, 64).fits(INT64_MAX));
}

// A workspace that nothing can hold is one that does not fit, never a small
// one.
TEST(CheckedSize, Workspaces) {
  rt::AttentionDesc attention = {};
  attention.batch = int64_t(1) << 27;
  attention.heads = int64_t(1) << 27;
  attention.kvHeads = attention.qLen = attention.kvLen = 1;
  attention.headDim = 2;
  attention.scale = 1;
  attention.type = rt::DType::F32;
  EXPECT_GT(rt::cuda::attentionGradWorkspaceBytes(attention), kMaxTensorBytes);

  rt::GemmDesc gemm = {};
  gemm.batch = gemm.m = gemm.n = 1;
  gemm.k = int64_t(1) << 52;
  gemm.in = gemm.out = rt::DType::F32;
  EXPECT_LT(rt::cpu::gemmWorkspaceBytes(gemm, 1), 0);

  rt::CollectiveItem item = {int64_t(1) << 54, int64_t(1) << 54};
  rt::CollectiveDesc collective = {};
  collective.kind = rt::CollectiveKind::ReduceScatter;
  collective.in = collective.out = rt::DType::F32;
  collective.items = 1;
  collective.item = &item;
  EXPECT_GT(rt::collectiveWorkspaceBytes(collective, 0, kMaxRanks),
            kMaxTensorBytes);
}

// The plan of a sequence is made from its ends, so that its length costs
// nothing; 2^30 tokens would else be 2^45 blocks.
TEST(CheckedSize, AttentionOfALongSequence) {
  rt::AttentionDesc d = {};
  d.batch = d.heads = d.kvHeads = 1;
  d.qLen = d.kvLen = (int64_t(1) << 30) + 17;
  d.headDim = 64;
  d.scale = 1;
  d.causal = true;
  d.type = rt::DType::F32;
  // q, k and v of the one head, and blocks.
  int64_t operands = 3 * d.qLen * d.headDim * 4;
  EXPECT_GT(rt::cpu::attentionWorkspaceBytes(d, 1), operands);
  EXPECT_LT(rt::cpu::attentionWorkspaceBytes(d, 1), operands + (1 << 24));
}
