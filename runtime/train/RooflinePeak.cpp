//===- RooflinePeak.cpp - How fast this machine multiplies ----------------===//
//
// A small artifact made by hand: one program with one matrix product, run by
// the same runtime as the training step.
//
//===----------------------------------------------------------------------===//
#include "RooflinePeak.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <chrono>

using namespace fsdp;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// A table
//===----------------------------------------------------------------------===//

namespace {
/// Of the maker's data sheets, in TFLOP/s without sparsity.
struct DevicePeak {
  std::vector<std::string> words; // all of them are in the name
  double bf16, f32;
};
} // namespace

/// Of several rows that match, the first counts.
static const DevicePeak kDevices[] = {
    {{"B200"}, 2250, 75},        {{"GB200"}, 2500, 80},
    {{"GH200"}, 989, 67},        {{"H200", "NVL"}, 835, 60},
    {{"H200"}, 989, 67},         {{"H100", "NVL"}, 835, 60},
    {{"H100", "PCIe"}, 756, 51}, {{"H100"}, 989, 67},
    {{"H800", "PCIe"}, 756, 51}, {{"H800"}, 989, 67},
    {{"H20"}, 148, 44},          {{"A100"}, 312, 19.5},
    {{"A800"}, 312, 19.5},       {{"A30"}, 165, 10.3},
    {{"A40"}, 149.7, 37.4},      {{"A10"}, 125, 31.2},
    {{"L40S"}, 362, 91.6},       {{"L40"}, 181, 90.5},
    {{"L4"}, 121, 30.3},
};

/// "NVIDIA A100-SXM4-80GB" has the words NVIDIA, A100, SXM4 and 80GB.
static bool hasWord(const std::string &name, const std::string &word) {
  auto isEnd = [&](size_t at) {
    return at >= name.size() || name[at] == ' ' || name[at] == '-';
  };
  for (size_t at = name.find(word); at != std::string::npos;
       at = name.find(word, at + 1))
    if ((at == 0 || isEnd(at - 1)) && isEnd(at + word.size()))
      return true;
  return false;
}

double fsdp::peakOfDevice(const std::string &name, DType type) {
  for (const DevicePeak &device : kDevices)
    if (std::all_of(
            device.words.begin(), device.words.end(),
            [&](const std::string &word) { return hasWord(name, word); }))
      return (type == DType::BF16 ? device.bf16 : device.f32) * 1e12;
  return 0;
}

//===----------------------------------------------------------------------===//
// A measurement
//===----------------------------------------------------------------------===//

/// Matrices in f32 fill so many bytes; in narrower types less.
static constexpr uint64_t matrixBytes(int64_t side) {
  return static_cast<uint64_t>(side * side) * 4;
}

/// One program for each size: it has no argument but the context.
template <int64_t side> static void multiply(Context &c) {
  constexpr uint64_t bytes = matrixBytes(side);
  gemm(c, Stream::Compute, 0, at(c, 0), at(c, bytes), nullptr, at(c, 2 * bytes),
       at(c, 3 * bytes));
}

double fsdp::spreadOf(const std::vector<double> &values) {
  auto [least, largest] = std::minmax_element(values.begin(), values.end());
  return values.empty() ? 0 : 1 - *least / *largest;
}

namespace {

/// The best rate in each tenth of a second of products.
using Rates = std::vector<double>;

/// Products of one size on all ranks.
template <int64_t side> class Products {
public:
  Products(World world, int threads, DType type);

  /// Three products or more.
  Rates run(double seconds);
  static constexpr double kFlops = 2.0 * side * side * side;

private:
  GemmDesc product{};
  fsdp_program program{"multiply", multiply<side>};
  fsdp_artifact artifact{};
  ContextPtr context;
};

} // namespace

template <int64_t side>
Products<side>::Products(World world, int threads, DType type) {
  product.batch = 1;
  product.m = product.n = product.k = side;
  product.transposeRhs = true; // as in a linear layer
  product.in = product.out = type;
  artifact.abi = FSDP_ARTIFACT_ABI;
  artifact.manifest = "{}";
  int64_t workspace = gemmWorkspaceBytes(product, threads);
  artifact.arena_bytes =
      3 * matrixBytes(side) + static_cast<uint64_t>((workspace + 63) / 64 * 64);
  artifact.gemms = 1;
  artifact.gemm = &product;
  artifact.programs = 1;
  artifact.program = &program;

  ContextOptions options;
  options.threads = threads;
  options.meshAxes = {world.size};
  options.isTraced = false;    // the trace is the run's
  options.isMonitored = false; // and so are heartbeats
  std::string error;
  context = createContext(artifact, options, error);
  if (!context)
    throw Error("cannot measure a matrix product: " + error);
}

template <int64_t side> Rates Products<side>::run(double seconds) {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  constexpr double tenth = 0.1;
  Rates best(static_cast<size_t>(std::max(seconds / tenth, 1.0)), 0.0);
  Clock::time_point begin = Clock::now();
  std::string error;
  for (int run = 0; run < 3 || Seconds(Clock::now() - begin).count() < seconds;
       ++run) {
    Clock::time_point start = Clock::now();
    if (!runProgram(*context, 0, error))
      throw Error("cannot measure a matrix product: " + error);
    double took = Seconds(Clock::now() - start).count();
    auto slice = static_cast<size_t>(Seconds(start - begin).count() / tenth);
    double &rate = best[std::min(slice, best.size() - 1)];
    rate = std::max(rate, kFlops / took);
  }
  // A product may take longer than a tenth.
  best.erase(std::remove(best.begin(), best.end(), 0.0), best.end());
  return best;
}

/// A run of fewer seconds of products is not worth one to measure them.
static constexpr double kWorthwhile = 10;
/// Flop/s below every machine's.
static constexpr double kSlowest = 1e9;
static const char *const kTooShort =
    "not measured for a run this short; metrics.peak_tflops can state it";

/// The mean over the ranks, the same on all of them.
static double meanOf(World world, double value) {
  allReduceSum(&value, 1);
  return value / world.size;
}

/// Goes on to larger matrices where these take too little time to show what a
/// GPU can.
template <int64_t side>
static RooflinePeak measure(World world, int threads, DType type,
                            double flopsOfRun) {
  constexpr double look = 0.1, seconds = 1, enough = 1e-3, widest = 0.05;
  Products<side> products(world, threads, type);
  Rates first = products.run(look);
  double rate = meanOf(world, *std::max_element(first.begin(), first.end()));
  if constexpr (side < 4096)
    if (!runtimeTarget().isHost && products.kFlops / rate < enough)
      return measure<2 * side>(world, threads, type, flopsOfRun);
  if (flopsOfRun / rate < kWorthwhile)
    return {0, kTooShort};
  Rates rates = products.run(seconds);
  double best = *std::max_element(rates.begin(), rates.end());
  double spread = spreadOf(rates);
  std::string text = format(
      "%.1f GFLOP/s per rank (measured for %g s: %s products of %lld x "
      "%lld matrices, spread %.1f %%",
      best / 1e9, seconds, type == DType::BF16 ? "bf16" : "f32",
      static_cast<long long>(side), static_cast<long long>(side), 100 * spread);
  if (spread > widest)
    return {0, text +
                   ", too wide for shares of it; metrics.peak_tflops can state "
                   "it)"};
  return {best, text + ")"};
}

RooflinePeak fsdp::findRooflinePeak(const Rank &rank, const RunConfig &config,
                                    double flopsOfRun) {
  if (double stated = config.metrics.peakTflops; stated > 0)
    return {stated * 1e12,
            format("%.1f GFLOP/s per rank (as configured)", stated * 1e3)};
  bool isNarrow = config.training.mixedPrecisionParam == ParamDtype::BFloat16;
  DType type = isNarrow ? DType::BF16 : DType::F32;
  std::string device = rank.deviceName();
  double known = peakOfDevice(device, type);
  // Ranks with other GPUs measure with the others.
  if (meanOf(rank.world(), known > 0 ? 1 : 0) == 1)
    return {known,
            format("%.1f GFLOP/s per rank (%s, by its data sheet: dense "
                   "%s products)",
                   known / 1e9, device.c_str(), isNarrow ? "bf16" : "f32")};
  if (flopsOfRun < kWorthwhile * kSlowest)
    return {0, kTooShort};
  return measure<1024>(rank.world(), static_cast<int>(config.compile.threads),
                       type, flopsOfRun);
}
