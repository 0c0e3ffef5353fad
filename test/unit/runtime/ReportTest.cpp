//===- ReportTest.cpp - Schedule, sampling, pictures ----------------------===//
#include "fsdp/Support/Text.h"
#include "runtime/plot/LossPlot.h"
#include "runtime/report/Metrics.h"
#include "runtime/train/Evaluate.h"
#include "runtime/train/LrSchedule.h"
#include "runtime/train/RooflinePeak.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace fsdp;

/// The rates of all steps, as shares of the peak.
static std::vector<double> rates(RunConfig config) {
  config.optimizer.lr = 1;
  std::vector<double> result;
  for (int64_t step = 0; step < config.training.steps; ++step)
    result.push_back(learningRate(config, step));
  return result;
}

// torchtitan's debug run: 10 steps, 2 of warm-up, the last 80 % decay.
TEST(LrSchedule, WarmupStableDecay) {
  RunConfig config;
  config.training.steps = 10;
  config.lrScheduler.warmupSteps = 2;
  config.lrScheduler.decayRatio = 0.8;
  std::vector<double> expected = {.5,   1,  1,    .875, .75,
                                  .625, .5, .375, .25,  .125};
  std::vector<double> actual = rates(config);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_DOUBLE_EQ(actual[i], expected[i]) << i;
}

// Without a ratio the decay fills what the warm-up leaves, down to the floor:
// the last of 4 decaying steps has progress 3/4.
TEST(LrSchedule, DecayTypesAndFloor) {
  RunConfig config;
  config.training.steps = 4;
  config.lrScheduler.warmupSteps = 0;
  config.lrScheduler.minLrFactor = 0.1;
  EXPECT_DOUBLE_EQ(rates(config).back(), 0.25 * 0.9 + 0.1);
  config.lrScheduler.decayType = DecayType::Sqrt;
  EXPECT_DOUBLE_EQ(rates(config).back(), (1 - std::sqrt(0.75)) * 0.9 + 0.1);
  config.lrScheduler.decayType = DecayType::Cosine;
  EXPECT_DOUBLE_EQ(rates(config).back(),
                   0.5 * (1 + std::cos(0.75 * M_PI)) * 0.9 + 0.1);
}

// A warm-up longer than the run rises in all steps; a decay that does not fit
// after the warm-up falls in what is left.
TEST(LrSchedule, PhasesThatDoNotFitAreCut) {
  RunConfig config;
  config.training.steps = 4;
  config.lrScheduler.warmupSteps = 200;
  EXPECT_EQ(rates(config), (std::vector<double>{.25, .5, .75, 1}));
  config.lrScheduler.decayRatio = 0.5;
  EXPECT_EQ(rates(config), (std::vector<double>{.25, .5, .75, 1}));
  config.lrScheduler.warmupSteps = 3;
  EXPECT_EQ(rates(config), (std::vector<double>{1. / 3, 2. / 3, 1, 1}));
  config.lrScheduler.decayRatio = 1;
  config.lrScheduler.warmupSteps = 2;
  EXPECT_EQ(rates(config), (std::vector<double>{.5, 1, 1, .5}));
}

TEST(Sample, TemperatureZeroTakesTheLargest) {
  EXPECT_EQ(sampleLogits({0, 3, 1}, 0, 0.99), 1);
}

// softmax of ln 1, ln 2, ln 1 is 1/4, 1/2, 1/4.
TEST(Sample, DrawsByProbability) {
  std::vector<float> logits = {0, std::log(2.0f), 0};
  EXPECT_EQ(sampleLogits(logits, 1, 0.2), 0);
  EXPECT_EQ(sampleLogits(logits, 1, 0.3), 1);
  EXPECT_EQ(sampleLogits(logits, 1, 0.7), 1);
  EXPECT_EQ(sampleLogits(logits, 1, 0.8), 2);
}

TEST(Sample, UnprintableBytesAreEscaped) {
  EXPECT_EQ(printable("a\n\x01\xff"), "a\n\\x01\\xff");
}

TEST(Gzip, SizesAreInBitsPerByteOfText) {
  std::string zeros(100000, 'a');
  EXPECT_LT(gzipBitsPerByte(zeros), 0.02);
  std::string noise;
  uint32_t state = 1;
  for (int i = 0; i < 100000; ++i)
    noise += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  EXPECT_NEAR(gzipBitsPerByte(noise), 8, 0.02);
  // What follows kMostGzipBytes is not looked at.
  std::string large(kMostGzipBytes, 'a');
  double most = gzipBitsPerByte(large);
  EXPECT_EQ(gzipBitsPerByte(large + noise), most);
}

TEST(Metrics, GroupedNumbers) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
}

TEST(Metrics, LinesSayHowMuchIsLeftAndSharesOfAKnownPeakAlone) {
  RunConfig config;
  config.training.steps = 40;
  config.metrics.jsonl = "";
  auto lines = [&](double peak, double seconds) {
    testing::internal::CaptureStdout();
    Metrics metrics(config, {1000, 2e9, peak, 0}, "");
    metrics.add({10, 1.5, {}, {}, seconds});
    metrics.add({40, 1.25, {}, {}, seconds});
    return testing::internal::GetCapturedStdout();
  };
  std::string text = lines(4e9, 1);
  EXPECT_EQ(text.find("step:    10 of 40  loss:  1.50000  tokens/s:     1,000  "
                      "left: 30 s  gflops:     2.0 (50.0% of peak)  memory: "),
            0u)
      << text;
  // The last step leaves nothing.
  EXPECT_NE(text.find("\nstep:    40 of 40  loss:  1.25000  tokens/s:     1,000"
                      "  gflops: "),
            std::string::npos)
      << text;
  text = lines(0, 7200);
  EXPECT_NE(text.find("  left: 2.5 days  gflops:     0.0  memory: "),
            std::string::npos)
      << text;
}

TEST(RooflinePeak, DevicesAreKnownByTheWordsOfTheirNames) {
  using rt::DType;
  auto peak = [](const char *name) {
    return peakOfDevice(name, DType::BF16) / 1e12;
  };
  EXPECT_EQ(peak("NVIDIA H200"), 989);
  EXPECT_EQ(peak("NVIDIA H200 NVL"), 835);
  EXPECT_EQ(peak("NVIDIA H100 80GB HBM3"), 989);
  EXPECT_EQ(peak("NVIDIA H100 PCIe"), 756);
  EXPECT_EQ(peak("NVIDIA A100-SXM4-80GB"), 312);
  EXPECT_EQ(peak("NVIDIA L40S"), 362);
  EXPECT_EQ(peak("NVIDIA A10"), 125);
  EXPECT_EQ(peakOfDevice("NVIDIA A100-PCIE-40GB", DType::F32), 19.5e12);
  // Another one, whatever its name begins with; a CPU.
  EXPECT_EQ(peak("NVIDIA A10G"), 0);
  EXPECT_EQ(peak("NVIDIA RTX A1000"), 0);
  EXPECT_EQ(peak(""), 0);
}

TEST(RooflinePeak, SpreadIsAShareOfTheLargest) {
  EXPECT_DOUBLE_EQ(spreadOf({2, 1.5, 1.9}), 0.25);
  EXPECT_EQ(spreadOf({3}), 0);
  EXPECT_EQ(spreadOf({}), 0);
}

TEST(LossCurve, TicksAreRoundAndCoverTheValues) {
  EXPECT_EQ(axisTicks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(axisTicks(1.9, 3.1, 3), (std::vector<double>{1.5, 2, 2.5, 3, 3.5}));
  EXPECT_EQ(axisTicks(0, 0, 5).size(), 2u);
  EXPECT_LE(axisTicks(1e8, 1e8, 5).size(), 3u);
  EXPECT_TRUE(axisTicks(0, NAN, 5).empty());
  EXPECT_TRUE(axisTicks(0, INFINITY, 5).empty());
}

TEST(LossCurve, DrawsEveryStepInsideThePage) {
  LossCurve curve;
  curve.title = "a < b";
  for (int i = 0; i < 100; ++i)
    curve.losses.push_back(8 * std::exp(-i / 30.0));
  curve.heldOut = 0.5;
  std::string svg = drawLossCurve(curve);
  EXPECT_EQ(svg.find("<svg"), 0u);
  EXPECT_NE(svg.find("a &lt; b"), std::string::npos);
  EXPECT_NE(svg.find("held-out text: 0.500"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  // A run of one step has a picture too.
  curve.losses = {5};
  EXPECT_EQ(drawLossCurve(curve).find("nan"), std::string::npos);
}

TEST(LossCurve, ShowsEveryValidation) {
  LossCurve curve;
  curve.unit = "nats per token";
  curve.tokens = "ids";
  curve.losses.assign(40, 3.0);
  for (int64_t step : {10, 20, 30})
    curve.validations.emplace_back(step, 3.5);
  curve.validations.emplace_back(35, NAN);
  curve.heldOut = 3.25;
  std::string svg = drawLossCurve(curve);
  for (const char *part :
       {"<title>step 10: 3.500</title>", "<title>step 20: 3.500</title>",
        "<title>step 30: 3.500</title>", ">nats per token<",
        "held-out ids: 3.250"})
    EXPECT_NE(svg.find(part), std::string::npos) << part << "\n" << svg;
  EXPECT_EQ(svg.find("step 35"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(LossCurve, LeavesOutWhatIsNotFinite) {
  LossCurve curve;
  curve.losses = {NAN, 8, INFINITY, 6};
  curve.heldOut = NAN;
  std::string svg = drawLossCurve(curve);
  EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
  EXPECT_EQ(svg.find("inf"), std::string::npos) << svg;
  EXPECT_EQ(svg.find("held-out"), std::string::npos) << svg;
  curve.losses = {NAN};
  EXPECT_EQ(drawLossCurve(curve).find("nan"), std::string::npos);
}
