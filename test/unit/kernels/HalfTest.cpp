//===- HalfTest.cpp - Conversions of 16-bit floats ------------------------===//
#include "fsdp/Support/Half.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace fsdp;

TEST(Half, EveryF16IsItsValueAndComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    float value = f16ToFloat(half);
    uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
    if (exponent == 0x1f && fraction) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(f16ToFloat(floatToF16(value))));
      continue;
    }
    double size = exponent == 0x1f ? std::numeric_limits<double>::infinity()
                  : exponent ? std::ldexp(1024.0 + fraction, int(exponent) - 25)
                             : std::ldexp(fraction, -24);
    EXPECT_EQ(value, bits & 0x8000 ? -size : size) << bits;
    EXPECT_EQ(floatToF16(value), half);
  }
}

/// Values around the middle between every two neighbours go to the nearer one,
/// the middle itself to the even one.
TEST(Half, RoundsToTheNearest) {
  for (uint16_t half = 0; half < 0x7bff; ++half) {
    float low = f16ToFloat(half), high = f16ToFloat(uint16_t(half + 1));
    float middle = (low + high) / 2; // exact in f32
    uint16_t even = half % 2 ? uint16_t(half + 1) : half;
    EXPECT_EQ(floatToF16(middle), even) << half;
    EXPECT_EQ(floatToF16(std::nextafter(middle, 0.0f)), half);
    EXPECT_EQ(floatToF16(std::nextafter(middle, high)), half + 1);
    EXPECT_EQ(floatToF16(-middle), even | 0x8000);
  }
  EXPECT_EQ(floatToF16(65519.0f), 0x7bff);
  EXPECT_EQ(floatToF16(65520.0f), 0x7c00);
  EXPECT_EQ(floatToF16(1e-30f), 0);
}

TEST(Half, BF16) {
  EXPECT_EQ(bf16ToFloat(0x3f80), 1.0f);
  EXPECT_EQ(floatToBF16(floatWithBits(0x3f808000)), 0x3f80); // a tie, to even
  EXPECT_EQ(floatToBF16(floatWithBits(0x3f818000)), 0x3f82);
  EXPECT_EQ(floatToBF16(floatWithBits(0x3f808001)), 0x3f81);
  EXPECT_EQ(floatToBF16(floatWithBits(0x7f7fffff)), 0x7f80);
  EXPECT_TRUE(std::isnan(bf16ToFloat(floatToBF16(floatWithBits(0x7f800001)))));
}
