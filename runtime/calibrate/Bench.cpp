//===- Bench.cpp - Calls of a program, timed on all ranks -----------------===//
#include "Bench.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <chrono>
#include <ctime>
#include <numeric>

using namespace fsdp;
using namespace fsdp::rt;

/// More than caches hold, so that what was used a round before is in memory.
static constexpr int64_t kRound = int64_t(96) << 20;

/// A network that is shared serves one rank before the other: a rank has its
/// part of one collective early, and of the next one late.
static constexpr size_t kCollectivesTogether = 8;

double rt::nowInSeconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// Of the calling thread.
static double processorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

/// What the one program runs.
static const std::function<void(Context &)> *&current() {
  static const std::function<void(Context &)> *body = nullptr;
  return body;
}

Bench::Bench(int threads) : world(joinWorld()), threads(threads) {}

int Bench::add(const GemmDesc &desc) {
  gemms.push_back(desc);
  return int(gemms.size()) - 1;
}

int Bench::add(const AttentionDesc &desc) {
  attentions.push_back(desc);
  return int(attentions.size()) - 1;
}

int Bench::addGroup(int size) {
  auto known = std::find(groupSizes.begin(), groupSizes.end(), size);
  if (known != groupSizes.end())
    return int(known - groupSizes.begin());
  groupSizes.push_back(size);
  axes.push_back({0, world.size / size, size});
  groups.push_back({1, &axes.back()});
  return int(groups.size()) - 1;
}

int Bench::add(CollectiveKind kind, ReduceKind reduce, int64_t bytes,
               int size) {
  int64_t full = std::max<int64_t>(bytes / 4 / size, 1) * size;
  bool isWhole = kind == CollectiveKind::AllReduce;
  items.push_back({isWhole ? full : full / size, full});
  collectives.push_back({kind, reduce, DType::F32, DType::F32, addGroup(size),
                         1, &items.back(), "calibration"});
  return int(collectives.size()) - 1;
}

/// Words that are small numbers both as f32 and as two bf16.
static void fill(Ptr part, int64_t bytes) {
  auto *words = reinterpret_cast<uint32_t *>(part);
  for (int64_t i = 0; i < bytes / 4; ++i) {
    uint32_t half = 0x3c00u + uint32_t(i * 37 % 256) / 2;
    half |= i % 3 == 0 ? 0x8000u : 0;
    words[i] = half << 16 | half;
  }
}

void Bench::open(const Sizes &largest) {
  parts = {alignedBytes(largest.in) + kRound,
           alignedBytes(largest.out) + kRound, alignedBytes(largest.workspace),
           alignedBytes(largest.exchanged)};
  program = {"calibration", [](Context &c) { (*current())(c); }};
  artifact.abi = FSDP_ARTIFACT_ABI;
  artifact.arena_bytes = endOfParts() + 128;
  artifact.events = kEvents;
  artifact.gemms = int32_t(gemms.size());
  artifact.gemm = gemms.data();
  artifact.attentions = int32_t(attentions.size());
  artifact.attention = attentions.data();
  artifact.groups = int32_t(groups.size());
  artifact.group = groups.data();
  artifact.collectives = int32_t(collectives.size());
  artifact.collective = collectives.data();
  artifact.programs = 1;
  artifact.program = &program;
  ContextOptions options;
  options.threads = threads;
  options.meshAxes = {world.size};
  options.isTraced = false;
  std::string error;
  context = createContext(artifact, options, error);
  if (!context)
    throw Error("calibration: " + error);
  fill(at(*context, 0), parts.in);
}

Bench::Place Bench::place(const Sizes &sizes, int64_t call) const {
  auto offset = [call](int64_t bytes) {
    return uint64_t(call * (alignedBytes(bytes) + 64) % kRound / 64 * 64);
  };
  uint64_t out = uint64_t(parts.in), workspace = out + uint64_t(parts.out);
  return {at(*context, offset(sizes.in)), at(*context, out + offset(sizes.out)),
          at(*context, workspace),
          at(*context, workspace + uint64_t(parts.workspace))};
}

std::pair<Ptr, Ptr> Bench::flags() const {
  Ptr end = at(*context, endOfParts());
  return {end, end + 64};
}

void Bench::run(const std::function<void(Context &)> &body) {
  current() = &body;
  std::string error;
  if (!runProgram(*context, 0, error))
    throw Error("calibration: " + error);
}

double Bench::mean(double value) const {
  allReduceSum(&value, 1);
  return value / world.size;
}

double Bench::collectiveSeconds(double limit, const Body &body) {
  return seconds(limit, body, nowInSeconds, kCollectivesTogether);
}

double Bench::computeSeconds(double limit, const Body &body) {
  return seconds(limit, body, threads == 1 ? processorSeconds : nowInSeconds,
                 1);
}

/// The means of `together` neighbours.
static std::vector<double> meansOf(const std::vector<double> &times,
                                   size_t together) {
  std::vector<double> means;
  for (size_t i = 0; i + together <= times.size(); ++i)
    means.push_back(std::accumulate(times.begin() + ptrdiff_t(i),
                                    times.begin() + ptrdiff_t(i + together),
                                    0.0) /
                    double(together));
  return means;
}

double Bench::seconds(double limit, const Body &body, double (*clock)(),
                      size_t together) {
  constexpr int64_t most = 1000;
  std::vector<double> times;
  run([&](Context &c) {
    body(c, 0);
    double begin = clock();
    body(c, 1);
    // All ranks call equally often.
    double one = mean(clock() - begin);
    int64_t calls = 2;
    if (one * most > limit)
      calls = std::max<int64_t>(int64_t(limit / one), calls);
    else
      calls = most;
    barrier();
    for (int64_t call = 0; call < calls; ++call) {
      begin = clock();
      body(c, call + 2);
      times.push_back(clock() - begin);
    }
  });
  // Of few calls fewer together, so that there is a quartile.
  times =
      meansOf(times, std::min(together, std::max<size_t>(times.size() / 4, 2)));
  auto quartile = times.begin() + ptrdiff_t(times.size() / 4);
  std::nth_element(times.begin(), quartile, times.end());
  return mean(*quartile);
}
