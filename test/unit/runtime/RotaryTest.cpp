//===- RotaryTest.cpp - Rotary positions as numbers -----------------------===//
//
// The frequencies of every scaling beside what their papers and transformers
// 5.23 give, and tables of Llama beside the formula that initialised them when
// artifacts stated a base.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Families/Rotary.h"
#include "fsdp/Data/Initialize.h"
#include <cmath>
#include <gtest/gtest.h>

namespace fsdp {
namespace {

DecoderConfig heads(int64_t headDim, double theta) {
  DecoderConfig config;
  config.headDim = headDim;
  config.ropeTheta = theta;
  return config;
}

DecoderConfig llama31(int64_t headDim) {
  DecoderConfig config = heads(headDim, 500000);
  config.ropeFactor = 8;
  return config;
}

// facts of Llama 3.1: theta 500000, factor 8, low 1, high 4, original 8192.
TEST(Rotary, FrequenciesOfLlama31) {
  std::vector<double> wide = rotaryNumbers(llama31(128), 1).frequencies;
  ASSERT_EQ(wide.size(), 64u);
  EXPECT_DOUBLE_EQ(wide[0], 1);
  EXPECT_DOUBLE_EQ(wide[28], .0032114459947525913);
  EXPECT_DOUBLE_EQ(wide[29], .002166570763503359);
  EXPECT_DOUBLE_EQ(wide[34], .00017850781276799638);
  EXPECT_DOUBLE_EQ(wide[35], 9.556212353964683e-05);
  EXPECT_DOUBLE_EQ(wide[63], 3.068925988914511e-07);
  EXPECT_DOUBLE_EQ(rotaryNumbers(llama31(16), 1).frequencies[4],
                   .0005248461609929547);
}

/// The cosine, then the sine, that an artifact with the base in its manifest
/// started from.
float valueByBase(const DecoderConfig &c, int64_t position, int64_t pair,
                  bool isSine) {
  int64_t headDim = c.headDim;
  double f = std::pow(c.ropeTheta, -2.0 * static_cast<double>(pair) /
                                       static_cast<double>(headDim));
  double original = static_cast<double>(c.ropeOriginal);
  double wavelength = 2 * M_PI / f;
  if (c.ropeFactor != 1 && wavelength > original / c.ropeLow) {
    f = f / c.ropeFactor;
  } else if (c.ropeFactor != 1 && !(wavelength < original / c.ropeHigh)) {
    double smooth =
        (original / wavelength - c.ropeLow) / (c.ropeHigh - c.ropeLow);
    f = (1 - smooth) * f / c.ropeFactor + smooth * f;
  }
  double angle = static_cast<double>(position) * f;
  return static_cast<float>(isSine ? std::sin(angle) : std::cos(angle));
}

void expectBitsByBase(const DecoderConfig &config, int64_t positions) {
  int64_t pairs = config.headDim / 2;
  rt::RangeInfo range;
  range.name = "rope_table";
  range.shape = range.full = {positions, pairs, 2};
  range.init.emplace().kind = rt::Initializer::Kind::RotaryTable;
  range.init->frequencies = rotaryNumbers(config, positions).frequencies;
  std::vector<float> values(static_cast<size_t>(range.elements()));
  range.bytes = values.size() * sizeof(float);
  rt::initializeRange(rt::Manifest(), range, 0, 0,
                      reinterpret_cast<std::byte *>(values.data()));
  size_t differing = 0, next = 0;
  for (int64_t position = 0; position < positions; ++position)
    for (int64_t pair = 0; pair < pairs; ++pair)
      for (bool isSine : {false, true})
        differing +=
            values[next++] != valueByBase(config, position, pair, isSine);
  EXPECT_EQ(differing, 0u);
}

TEST(Rotary, TablesOfLlamaKeepTheirBits) {
  expectBitsByBase(llama31(128), 8192);
  expectBitsByBase(llama31(16), 20000);
  expectBitsByBase(heads(64, 10000), 4096);
}

// YaRN of DeepSeek: 64 elements, factor 40, beta 32 and 1, original 4096: pairs
// from 10 on go over, from 23 on all are divided.
TEST(Rotary, FrequenciesOfYarn) {
  DecoderConfig config = heads(64, 10000);
  config.ropeType = "yarn";
  config.ropeFactor = 40;
  config.ropeOriginal = 4096;
  RotaryNumbers numbers = rotaryNumbers(config, 1);
  const std::vector<std::pair<size_t, double>> known = {
      {0, 1},
      {1, .7498942093324559},
      {10, .056234132519034905},
      {11, .03900692656714386},
      {16, .0055},
      {22, .0001778279410038922},
      {23, 3.33380358040831e-05},
      {24, 2.5e-05},
      {31, 3.3338035804083097e-06}};
  for (auto [i, frequency] : known)
    EXPECT_NEAR(numbers.frequencies[i] / frequency, 1, 1e-14) << i;
  EXPECT_DOUBLE_EQ(numbers.scale, 1.3688879454113936);
  // Both weights: their quotient. 0.1 * 0.7 * ln 40 + 1 = 1.2582215617879755.
  config.ropeMscale = 1;
  config.ropeMscaleAllDim = 0.7;
  EXPECT_DOUBLE_EQ(rotaryNumbers(config, 1).scale,
                   1.3688879454113936 / 1.2582215617879755);
  config.ropeScale = 1.25;
  EXPECT_EQ(rotaryNumbers(config, 1).scale, 1.25);
  // Without rounding of 10.49... and 22.5..., pair 10 is kept still and 11 is
  // divided by less.
  config.ropeTruncate = false;
  EXPECT_GT(rotaryNumbers(config, 1).frequencies[11], .03900692656714386);
}

TEST(Rotary, LinearDividesAll) {
  DecoderConfig config = heads(8, 10000);
  config.ropeType = "linear";
  config.ropeFactor = 4;
  EXPECT_EQ(rotaryNumbers(config, 1).frequencies,
            (std::vector<double>{0.25, 0.025, 0.0025, 0.00025}));
  EXPECT_EQ(rotaryNumbers(config, 1).scale, 1);
}

// Half of a head of 8; the traced length decides which factors count.
TEST(Rotary, LongropeHasTheFactorsOfTheLength) {
  DecoderConfig config = heads(8, 100);
  config.rotaryDim = 4;
  config.ropeType = "longrope";
  config.ropeShort = {1, 2};
  config.ropeLong = {4, 5};
  config.ropeOriginal = 16;
  config.ropeFactor = 4;
  EXPECT_EQ(rotaryNumbers(config, 16).frequencies,
            (std::vector<double>{1, 0.05}));
  EXPECT_EQ(rotaryNumbers(config, 17).frequencies,
            (std::vector<double>{0.25, 0.02}));
  // sqrt(1 + ln 4 / ln 16)
  EXPECT_DOUBLE_EQ(rotaryNumbers(config, 17).scale, std::sqrt(1.5));
}

} // namespace
} // namespace fsdp
