//===- ProgressCounterTest.cpp - What a heartbeat says --------------------===//
#include "runtime/liveness/ProgressCounter.h"
#include "runtime/liveness/FailureDetector.h"
#include <gtest/gtest.h>

using namespace fsdp::rt;

TEST(ProgressCounter, KeepsItsFields) {
  for (const ProgressCounter &one :
       {ProgressCounter{}, ProgressCounter{1, 2, 3, 4, true},
        ProgressCounter{255, 255, ProgressCounter::kMostNumbers - 1,
                        ProgressCounter::kMostIndices - 1, true}}) {
    EXPECT_NE(one.encode(), 0u);
    ProgressCounter other = ProgressCounter::decode(one.encode());
    EXPECT_EQ(other.encode(), one.encode());
    EXPECT_EQ(other.run, one.run);
    EXPECT_EQ(other.program, one.program);
    EXPECT_EQ(other.number, one.number);
    EXPECT_EQ(other.index, one.index);
    EXPECT_EQ(other.isInside, one.isInside);
    EXPECT_FALSE(
        ProgressCounter::decode(ProgressCounter::after(one.encode())).isInside);
  }
}

TEST(ProgressCounter, CountsWhereCallsAreIssued) {
  ProgressCount count;
  auto next = [&](int index) {
    return ProgressCounter::decode(count.next(index));
  };
  count.beginProgram(0);
  uint8_t run = next(7).run;
  EXPECT_EQ(next(5).number, 1u);
  count.beginProgram(1);
  ProgressCounter first = next(5);
  EXPECT_EQ(first.run, run + 1);
  EXPECT_EQ(first.program, 1);
  EXPECT_EQ(first.number, 0u);
  EXPECT_EQ(first.index, 5u);
  EXPECT_TRUE(first.isInside);
  for (int i = 0; i < 255; ++i)
    count.beginProgram(1);
  EXPECT_EQ(next(5).run, run);
}

TEST(ProgressCounter, AnArtifactMayHaveTooMuch) {
  fsdp_artifact artifact{};
  artifact.programs = 256;
  artifact.collectives = 1 << 24;
  EXPECT_EQ(checkProgressCounters(artifact), "");
  artifact.programs = 257;
  EXPECT_EQ(checkProgressCounters(artifact),
            "the artifact has 257 programs and 16777216 collectives; 256 and "
            "16777216 are the most that a heartbeat can name");
}

TEST(LivenessLimits, ThePeriodFollowsTheShorterLimit) {
  EXPECT_EQ(livenessLimits(30, 300).period, 1);
  EXPECT_EQ(livenessLimits(4, 300).period, 0.5);
  EXPECT_EQ(livenessLimits(30, 4).period, 0.5);
  EXPECT_EQ(livenessLimits(0, 4).period, 0.5); // 0: for ever
  EXPECT_EQ(livenessLimits(0.1, 4).period, 0.05);
  EXPECT_EQ(livenessLimits(4, 300).grace(), 1);
  EXPECT_EQ(livenessLimits(0.1, 4).grace(), kGraceSeconds);
  EXPECT_EQ(livenessLimits(4, 300).lossGrace, 1);
}
