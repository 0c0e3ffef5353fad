//===- Calibrate.cpp - Measuring this machine -----------------------------===//
#include "Calibrate.h"
#include "Measure.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// The machine
//===----------------------------------------------------------------------===//

/// "AMD EPYC 9654 96-Core Processor", or "CPU".
static std::string processorName() {
  std::ifstream info("/proc/cpuinfo");
  const std::string key = "model name\t: ";
  for (std::string line; std::getline(info, line);)
    if (line.compare(0, key.size(), key) == 0)
      if (std::string name = line.substr(key.size());
          isPlainLine(name) && name.size() < 100)
        return name;
  return "CPU";
}

/// What people read: as many digits as a measurement has.
double rt::roundedValue(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return std::strtod(text, nullptr);
}

static double fastest(const Machine &machine, MathType type) {
  double rate = 0;
  for (const Machine::Product &product : machine.products)
    if (product.type == type)
      for (const Machine::Rate &each : product.rates)
        rate = std::max(rate, each.flopsPerSecond);
  return rate;
}

/// What a reader who looks for one number finds; shapes that were measured have
/// their own.
static void summarize(Machine &machine) {
  machine.compute.f32 = fastest(machine, MathType::F32);
  machine.compute.bf16 = fastest(machine, MathType::BF16);
  double sum = 0, count = 0;
  for (const Machine::Product &product : machine.products)
    for (const Machine::Rate &each : product.rates) {
      sum += each.flopsPerSecond / fastest(machine, product.type);
      ++count;
    }
  auto share = [](double value) {
    return roundedValue(std::clamp(value, 1e-3, 1.0));
  };
  machine.matmul.share = share(sum / count);
  for (const Machine::AttentionRates &attention : machine.attentions) {
    double &place = attention.pass == AttentionPass::Forward
                        ? machine.attention.forward
                        : machine.attention.backward;
    if (attention.type == MathType::F32)
      place =
          share(attention.rates.back().flopsPerSecond / machine.compute.f32);
  }
  for (const Machine::Kernel &kernel : machine.kernels)
    if (kernel.name == kPointwiseKernel)
      machine.memory.bytesPerSecond = roundedValue(kernel.points.back().first /
                                                   kernel.points.back().second);
  machine.memory.share = 1;
}

Machine rt::calibrate(const Calibration &calibration) {
  Measurements measurements(calibration);
  Machine machine;
  machine.name = calibration.name;
  machine.description =
      processorName() + ", ranks of " + std::to_string(calibration.threads) +
      (calibration.threads == 1 ? " thread" : " threads") + ", measured";
  int ranks = joinWorld().size;
  machine.device.memoryBytes =
      int64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE) / ranks;
  machine.device.ranksPerNode = ranks;
  measurements.measure(machine);
  summarize(machine);
  return machine;
}
