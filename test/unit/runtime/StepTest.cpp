//===- StepTest.cpp - Sizes of a step of several microbatches -------------===//
#include "runtime/train/Step.h"
#include "fsdp/Support/Error.h"
#include <gtest/gtest.h>

using namespace fsdp;
using namespace fsdp::rt;

static RangeInfo tokens(int64_t rows, int64_t sequence) {
  RangeInfo range;
  range.name = "tokens";
  range.dtype = DType::I32;
  range.shape = range.full = {rows, sequence};
  range.bytes = static_cast<uint64_t>(rows * sequence) * 4;
  return range;
}

TEST(Step, SlicesLieOneBehindTheOther) {
  RangeInfo whole = ofStep(tokens(2, 16), 3);
  EXPECT_EQ(whole.name, "tokens.of_step");
  EXPECT_EQ(whole.shape, (std::vector<int64_t>{6, 16}));
  EXPECT_EQ(whole.full, whole.shape);
  EXPECT_EQ(whole.bytes, 384u);
}

TEST(Step, SizesDoNotOverflow) {
  for (const RangeInfo &range :
       {tokens(int64_t(1) << 50, 1), tokens(1, 1 << 30)}) {
    int64_t microbatches = int64_t(1) << 25;
    try {
      ofStep(range, microbatches);
      FAIL() << "taken";
    } catch (const Error &error) {
      EXPECT_STREQ(error.what(), "the 'tokens' of 33554432 microbatches are "
                                 "more than 2^56 bytes");
    }
  }
  // The whole, of which a rank has a small part.
  RangeInfo part = tokens(1, 1);
  part.full = {int64_t(1) << 50, 1};
  EXPECT_THROW(ofStep(part, 1 << 20), Error);
}
