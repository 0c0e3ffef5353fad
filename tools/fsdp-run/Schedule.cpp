//===- Schedule.cpp - The learning rate of a step -------------------------===//
#include "Schedule.h"
#include <cmath>

using namespace fsdp;

/// Share of the peak that is left after `progress` (0 to 1) of the decay.
static double decayed(const std::string &type, double progress) {
  if (type == "sqrt")
    return 1 - std::sqrt(progress);
  if (type == "cosine")
    return 0.5 * (1 + std::cos(M_PI * progress));
  return 1 - progress;
}

double fsdp::learningRate(const RunConfig &config, int64_t step) {
  const RunConfig::LrScheduler &schedule = config.lrScheduler;
  int64_t steps = config.training.steps, warmup = schedule.warmupSteps;
  int64_t decay = steps - warmup;
  if (schedule.decayRatio)
    decay = std::llround(*schedule.decayRatio * static_cast<double>(steps));
  // The extra 1 keeps the last step from having the rate 0.
  int64_t stable = steps + 1 - warmup - decay;
  double peak = config.optimizer.lr;
  if (step < warmup)
    return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (step < warmup + stable)
    return peak;
  double progress = static_cast<double>(step + 1 - warmup - stable) /
                    static_cast<double>(decay);
  double floor = schedule.minLrFactor;
  return peak * (decayed(schedule.decayType, progress) * (1 - floor) + floor);
}
