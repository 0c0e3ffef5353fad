//===- LrSchedule.cpp - The learning rate of a step -----------------------===//
#include "LrSchedule.h"
#include <cmath>

using namespace fsdp;

/// Share of the peak that is left after `progress` (0 to 1) of the decay.
static double decayed(DecayType type, double progress) {
  if (type == DecayType::Sqrt)
    return 1 - std::sqrt(progress);
  if (type == DecayType::Cosine)
    return 0.5 * (1 + std::cos(M_PI * progress));
  return 1 - progress;
}

double fsdp::learningRate(const RunConfig &config, int64_t step) {
  LrPhases phases = lrPhases(config);
  double peak = config.optimizer.lr;
  if (step < phases.warmup)
    return peak * static_cast<double>(step + 1) /
           static_cast<double>(phases.warmup);
  // The extra 1 keeps the last step from having the rate 0.
  int64_t stable = phases.stable + 1;
  if (step < phases.warmup + stable)
    return peak;
  double progress = static_cast<double>(step + 1 - phases.warmup - stable) /
                    static_cast<double>(phases.decay);
  double floor = config.lrScheduler.minLrFactor;
  return peak * (decayed(config.lrScheduler.decayType, progress) * (1 - floor) +
                 floor);
}
