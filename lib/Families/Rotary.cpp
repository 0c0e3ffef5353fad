//===- Rotary.cpp - Rotary positions as numbers ---------------------------===//
#include "fsdp/Families/Rotary.h"
#include <algorithm>
#include <cmath>

using namespace fsdp;

static double plainFrequency(const DecoderConfig &config, int64_t i) {
  return std::pow(config.ropeTheta,
                  -2.0 * static_cast<double>(i) /
                      static_cast<double>(config.getRotaryDim()));
}

/// Llama 3.1: short wavelengths stay, long ones are stretched by the factor,
/// those between are interpolated.
static double llamaFrequency(const DecoderConfig &config, double frequency) {
  if (config.ropeFactor == 1)
    return frequency;
  double original = static_cast<double>(config.ropeOriginal);
  double wavelength = 2 * M_PI / frequency;
  if (wavelength < original / config.ropeHigh)
    return frequency;
  if (wavelength > original / config.ropeLow)
    return frequency / config.ropeFactor;
  double smooth = (original / wavelength - config.ropeLow) /
                  (config.ropeHigh - config.ropeLow);
  return (1 - smooth) * frequency / config.ropeFactor + smooth * frequency;
}

namespace {
/// Between which pairs YaRN goes over from kept to divided frequencies.
struct YarnRamp {
  explicit YarnRamp(const DecoderConfig &config) {
    double dim = static_cast<double>(config.getRotaryDim());
    // The pair that turns `turns` times in the original length.
    auto pairOf = [&](double turns) {
      return dim *
             std::log(static_cast<double>(config.ropeOriginal) /
                      (turns * 2 * M_PI)) /
             (2 * std::log(config.ropeTheta));
    };
    low = pairOf(config.ropeBetaFast);
    high = pairOf(config.ropeBetaSlow);
    if (config.ropeTruncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, dim - 1);
    if (low == high)
      high += 0.001; // as transformers, against a division by 0
  }
  /// From 0, keep, to 1, divide.
  double at(int64_t pair) const {
    return std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0,
                      1.0);
  }

private:
  double low, high;
};
} // namespace

/// YaRN's factor for attention over sequences stretched by `factor`.
static double yarnScale(double factor, double weight = 1) {
  return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1;
}

static double scaleOf(const DecoderConfig &config) {
  bool isYarn = config.ropeType == "yarn";
  if (!isYarn && config.ropeType != "longrope")
    return 1;
  if (config.ropeScale != 0)
    return config.ropeScale;
  double factor = config.ropeFactor;
  if (!isYarn)
    return factor <= 1
               ? 1
               : std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(
                                                      config.ropeOriginal)));
  if (config.ropeMscale == 0 || config.ropeMscaleAllDim == 0)
    return yarnScale(factor);
  return yarnScale(factor, config.ropeMscale) /
         yarnScale(factor, config.ropeMscaleAllDim);
}

RotaryNumbers fsdp::rotaryNumbers(const DecoderConfig &config, int64_t seqLen) {
  const std::string &type = config.ropeType;
  YarnRamp ramp(config);
  const std::vector<double> &stretch =
      seqLen > config.ropeOriginal ? config.ropeLong : config.ropeShort;
  auto frequencyOf = [&](int64_t i) {
    double frequency = plainFrequency(config, i);
    if (type == "linear")
      return frequency / config.ropeFactor;
    if (type == "longrope")
      return frequency / stretch[static_cast<size_t>(i)];
    if (type == "yarn")
      return frequency / config.ropeFactor * ramp.at(i) +
             frequency * (1 - ramp.at(i));
    return llamaFrequency(config, frequency);
  };
  RotaryNumbers numbers;
  for (int64_t i = 0; i < config.getRotaryDim() / 2; ++i)
    numbers.frequencies.push_back(frequencyOf(i));
  numbers.scale = scaleOf(config);
  return numbers;
}
