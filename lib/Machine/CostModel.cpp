//===- CostModel.cpp - How long compute and copies take -------------------===//
#include "fsdp/Machine/CostModel.h"
#include "Curve.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <cassert>
#include <cmath>

using namespace fsdp;

CostModel::CostModel(Machine machine, SoftwareProfile profile)
    : theMachine(std::move(machine)), theProfile(std::move(profile)) {
  if (theProfile.kernels.fp8 != Fp8Recipe::None && theMachine.compute.fp8 == 0)
    throw Error("the profile '" + theProfile.name + "' computes in fp8, and " +
                "the machine '" + theMachine.name +
                "' has no rate for that; say compute.fp8 in a file of it, or " +
                "choose another profile");
}

/// Flop/s of matmuls under load, before shape and library take theirs.
static double peakOf(const Machine &machine, MathType type) {
  double peak = type == MathType::F32    ? machine.compute.f32
                : type == MathType::BF16 ? machine.compute.bf16
                                         : machine.compute.fp8;
  if (peak == 0)
    throw Error("the machine '" + machine.name + "' has no rate for " +
                spelled(type) + "; say compute." + spelled(type));
  return peak * machine.compute.clockShare;
}

/// The share of the waves of a matmul's tiles that have work.
static double waveFilling(const Machine &machine, int64_t batch, int64_t m,
                          int64_t n) {
  const Machine::Matmul &matmul = machine.matmul;
  int64_t units = machine.device.multiprocessors;
  if (matmul.waveFilling == WaveFilling::None || matmul.tileRows == 0 ||
      matmul.tileColumns == 0 || units == 0)
    return 1;
  double tiles = static_cast<double>(batch) *
                 static_cast<double>(ceilDiv(m, matmul.tileRows)) *
                 static_cast<double>(ceilDiv(n, matmul.tileColumns));
  double waves = tiles / static_cast<double>(units);
  double filling = waves / std::ceil(waves);
  return matmul.waveFilling == WaveFilling::Linear ? filling
                                                   : std::sqrt(filling);
}

static double bytesOf(MathType type) {
  return type == MathType::F32 ? 4 : type == MathType::BF16 ? 2 : 1;
}

/// Bytes per second that kernels reach.
static double bandwidthOf(const Machine &machine,
                          const SoftwareProfile &profile) {
  return machine.memory.bytesPerSecond * machine.memory.share *
         profile.scale.memory;
}

/// That have this; null: none.
template <typename T, typename Has>
static const T *findThat(const std::vector<T> &list, Has has) {
  auto found = std::find_if(list.begin(), list.end(), has);
  return found == list.end() ? nullptr : &*found;
}

Duration CostModel::matmul(int64_t batch, int64_t m, int64_t n, int64_t k,
                           MathType type, Layout layout) const {
  assert(batch > 0 && m > 0 && n > 0 && k > 0 && "a matmul without work");
  auto b = static_cast<double>(batch), rows = static_cast<double>(m),
       columns = static_cast<double>(n), depth = static_cast<double>(k);
  double scale = theProfile.scale.matmul *
                 (type == MathType::FP8 ? theProfile.scale.fp8 : 1);
  if (const auto *measured =
          findThat(theMachine.products, [&](const Machine::Product &product) {
            return product.type == type && product.layout == layout;
          })) {
    double rate = rateAt(measured->rates, {rows, columns, depth});
    return Duration::ofSeconds(2 * b * rows * columns * depth / (rate * scale));
  }
  double rate = peakOf(theMachine, type) * theMachine.matmul.share * scale *
                (depth / (depth + theMachine.matmul.kHalf)) *
                waveFilling(theMachine, batch, m, n);
  double bytes =
      b * (rows * depth + depth * columns + rows * columns) * bytesOf(type);
  return Duration::ofSeconds(
      std::max(2 * b * rows * columns * depth / rate,
               bytes / bandwidthOf(theMachine, theProfile)));
}

Duration CostModel::attention(double flops, MathType type, AttentionPass pass,
                              const std::array<int64_t, 3> &sizes) const {
  bool forward = pass == AttentionPass::Forward;
  double own =
      forward ? theProfile.attention.forward : theProfile.attention.backward;
  const auto *measured = findThat(
      theMachine.attentions, [&](const Machine::AttentionRates &attention) {
        return attention.type == type && attention.pass == pass;
      });
  bool areKnown = std::all_of(sizes.begin(), sizes.end(),
                              [](int64_t size) { return size > 0; });
  if (own == 0 && measured && areKnown)
    return Duration::ofSeconds(
        flops / rateAt(measured->rates, {static_cast<double>(sizes[0]),
                                         static_cast<double>(sizes[1]),
                                         static_cast<double>(sizes[2])}));
  double share = own != 0  ? own
                 : forward ? theMachine.attention.forward
                           : theMachine.attention.backward;
  return Duration::ofSeconds(flops / (peakOf(theMachine, type) * share));
}

Duration CostModel::memory(int64_t bytes, std::string_view kernel) const {
  const Machine::Kernel *measured = nullptr;
  std::string_view like =
      kernel == kExpensiveBF16Kernel ? kExpensiveKernel : kernel;
  for (std::string_view name : {kernel, like, {kPointwiseKernel}})
    if (!measured)
      measured = findThat(theMachine.kernels, [&](const Machine::Kernel &each) {
        return each.name == name;
      });
  if (measured && bytes > 0)
    return Duration::ofSeconds(
        secondsAt(measured->points, static_cast<double>(bytes)) /
        theProfile.scale.memory);
  return Duration::ofSeconds(static_cast<double>(bytes) /
                             bandwidthOf(theMachine, theProfile));
}

Duration CostModel::hostCopy(int64_t bytes) const {
  double rate = theMachine.device.hostBytesPerSecond;
  if (rate == 0)
    throw Error("the machine '" + theMachine.name +
                "' does not say how fast a rank copies to its host; say "
                "device.host_bytes_per_second");
  return Duration::ofSeconds(static_cast<double>(bytes) / rate);
}

Duration CostModel::launch() const {
  return Duration::ofSeconds(theMachine.launch.kernelSeconds);
}

Duration CostModel::hostIssue() const {
  return theProfile.launch.from == LaunchFrom::Graph
             ? Duration()
             : Duration::ofSeconds(theMachine.launch.hostSeconds);
}

Duration CostModel::hostModule() const {
  return theProfile.launch.from == LaunchFrom::Graph
             ? Duration()
             : Duration::ofSeconds(theProfile.launch.moduleSeconds);
}

Duration CostModel::beside(rt::Stream stream, Duration compute) const {
  const Machine::Slowdown &slowdown = theMachine.slowdown;
  double more = stream == rt::Stream::Gather   ? slowdown.gather
                : stream == rt::Stream::Reduce ? slowdown.reduce
                : stream == rt::Stream::Copy   ? slowdown.copy
                                               : 0;
  return compute + Duration::ofSeconds(compute.seconds() * more);
}

Duration CostModel::besideCompute(Duration collective) const {
  return collective + Duration::ofSeconds(collective.seconds() *
                                          theMachine.slowdown.collective);
}
