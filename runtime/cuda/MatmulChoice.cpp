//===- MatmulChoice.cpp - The fastest algorithm of every matmul -----------===//
#include "MatmulChoice.h"
#include "ChooseDevice.h"
#include "MatmulTable.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/FileLock.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cmath>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;

using Algorithm = cublasLtMatmulAlgo_t;

//===----------------------------------------------------------------------===//
// Timing
//===----------------------------------------------------------------------===//

namespace {

/// Runs matmuls on a stream of its own, in memory of the arena.
class Stopwatch {
public:
  explicit Stopwatch(CudaContext &c);
  ~Stopwatch();
  Stopwatch(const Stopwatch &) = delete;
  Stopwatch &operator=(const Stopwatch &) = delete;

  /// Seconds of the best of several runs of each candidate; infinite if it
  /// fails or the operands do not fit side by side.
  std::vector<double> measure(const GemmDesc &desc, GemmPlan &plan,
                              const std::vector<Algorithm> &candidates);

private:
  /// Where operands lie, in turn: a matmul whose operands are still in the
  /// cache would look faster than it is in a step.
  class Places;

  double timeOnce(GemmPlan &plan, const Algorithm &algorithm, Places &places);
  /// Runs every candidate once, in turn, so that a clock that changes slowly
  /// changes for all of them.
  std::vector<double> timeRound(GemmPlan &plan,
                                const std::vector<Algorithm> &candidates,
                                Places &places);

  CudaContext &c;
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
};

class Stopwatch::Places {
public:
  Places(const CudaContext &c, const GemmDesc &desc);

  bool fit() const { return count > 0; }
  /// Left, right, bias, result and workspace of the next run.
  std::array<Ptr, 5> next();

private:
  Ptr arena;
  std::array<int64_t, 5> sizes;
  uint64_t bytes = 0, count = 0, turn = 0;
};

} // namespace

/// More than the cache of any GPU, several times.
static constexpr uint64_t kRotatedBytes = uint64_t(512) << 20;

Stopwatch::Places::Places(const CudaContext &c, const GemmDesc &d)
    : arena(c.arena) {
  int64_t in = sizeOf(d.in);
  sizes = {d.batch * d.m * d.k * in, d.batch * d.k * d.n * in,
           d.bias ? d.n * in : 0, d.batch * d.m * d.n * sizeOf(d.out),
           d.workspace};
  for (int64_t size : sizes)
    bytes += uint64_t(roundedUp(size, 256).saturated());
  // An operand may be used twice, so that a program needs less.
  if (bytes > 0 && bytes <= c.artifact->arena_bytes)
    count = std::min<uint64_t>(c.artifact->arena_bytes / bytes,
                               kRotatedBytes / bytes + 1);
}

std::array<Ptr, 5> Stopwatch::Places::next() {
  std::array<Ptr, 5> at{};
  uint64_t top = turn++ % count * bytes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    at[i] = sizes[i] > 0 ? arena + top : nullptr;
    top += uint64_t(roundedUp(sizes[i], 256).saturated());
  }
  return at;
}

Stopwatch::Stopwatch(CudaContext &c) : c(c) {
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "streams");
  require(cudaEventCreate(&begin), "events");
  require(cudaEventCreate(&end), "events");
  // Numbers of all types that are small and no zeros: zeros take less power.
  require(cudaMemsetAsync(c.arena, 0x3c, c.artifact->arena_bytes, stream),
          "the arena");
}

Stopwatch::~Stopwatch() {
  // The arena begins as zeros; what fails here fails again there.
  static_cast<void>(
      cudaMemsetAsync(c.arena, 0, c.artifact->arena_bytes, stream));
  static_cast<void>(cudaStreamSynchronize(stream));
  static_cast<void>(cudaEventDestroy(begin));
  static_cast<void>(cudaEventDestroy(end));
  static_cast<void>(cudaStreamDestroy(stream));
}

double Stopwatch::timeOnce(GemmPlan &plan, const Algorithm &algorithm,
                           Places &places) {
  std::array<Ptr, 5> at = places.next();
  plan.use(algorithm);
  require(cudaEventRecord(begin, stream), "events");
  if (!plan.tryRun(stream, at[0], at[1], at[2], at[3], at[4]))
    return INFINITY;
  require(cudaEventRecord(end, stream), "events");
  require(cudaStreamSynchronize(stream), "timing of a matmul");
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, begin, end), "events");
  return milliseconds * 1e-3;
}

std::vector<double>
Stopwatch::timeRound(GemmPlan &plan, const std::vector<Algorithm> &candidates,
                     Places &places) {
  std::vector<double> seconds;
  for (const Algorithm &candidate : candidates)
    seconds.push_back(timeOnce(plan, candidate, places));
  return seconds;
}

/// Of the candidates that work.
static double sumOf(const std::vector<double> &seconds) {
  double sum = 0;
  for (double value : seconds)
    sum += std::isfinite(value) ? value : 0;
  return sum;
}

std::vector<double>
Stopwatch::measure(const GemmDesc &desc, GemmPlan &plan,
                   const std::vector<Algorithm> &candidates) {
  Places places(c, desc);
  if (!places.fit())
    return std::vector<double>(candidates.size(), INFINITY);
  // A GPU that was idle raises its clock for some milliseconds, and a kernel
  // that runs for the first time is loaded.
  constexpr int kWarmUpRounds = 6, kRounds = 3;
  constexpr double kAgreement = 0.03;
  double before = sumOf(timeRound(plan, candidates, places));
  for (int i = 1; i < kWarmUpRounds; ++i) {
    double now = sumOf(timeRound(plan, candidates, places));
    bool agrees = std::abs(now - before) <= kAgreement * now;
    before = now;
    if (agrees)
      break;
  }
  std::vector<double> best(candidates.size(), INFINITY);
  for (int i = 0; i < kRounds; ++i) {
    std::vector<double> round = timeRound(plan, candidates, places);
    for (size_t j = 0; j < best.size(); ++j)
      best[j] = std::min(best[j], round[j]);
  }
  return best;
}

/// Times the candidates of a matmul and keeps the fastest.
static void choose(Stopwatch &watch, const GemmDesc &desc, GemmPlan &plan,
                   MatmulTable &table) {
  std::vector<Algorithm> candidates = plan.candidates();
  std::vector<double> seconds = watch.measure(desc, plan, candidates);
  size_t fastest = size_t(std::min_element(seconds.begin(), seconds.end()) -
                          seconds.begin());
  plan.use(candidates[fastest]);
  table.add(desc, candidates[fastest],
            {seconds[fastest], seconds[0], candidates.size()});
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

/// Uses what the table contains; the numbers of the other matmuls.
static std::vector<size_t> useKept(CudaContext &c, MatmulTable &table) {
  table.read();
  std::vector<size_t> missing;
  for (size_t i = 0; i < c.gemms.size(); ++i) {
    std::optional<Algorithm> kept = table.find(c.artifact->gemm[i]);
    if (!kept) {
      missing.push_back(i);
      continue;
    }
    c.gemms[i]->use(*kept);
    try {
      c.gemms[i]->checkAlgorithm();
    } catch (const Error &error) {
      throw Error(table.path() + ": matmul " + std::to_string(i) + ": " +
                  error.what() + "; remove it, and matmuls are timed again");
    }
  }
  return missing;
}

namespace {

/// Of two runs at once one times matmuls, and the other waits and takes its
/// choice. A folder that cannot be locked is used as it is.
class HeldFolder {
public:
  explicit HeldFolder(const std::string &folder)
      : descriptor(openLocked(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                              LockWait::Yes)) {}
  ~HeldFolder() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  HeldFolder(const HeldFolder &) = delete;
  HeldFolder &operator=(const HeldFolder &) = delete;

private:
  int descriptor;
};

} // namespace

/// Times what the table lacks and adds it. Throws fsdp::Error, before it times
/// anything, if the file cannot be written.
static void timeMissing(CudaContext &c, MatmulTable &table,
                        const std::vector<size_t> &missing) {
  AtomicFile file(table.path());
  if (!table.others().empty())
    printMessage(kRunWarning,
                 format("%s is of %s, not of '%s' and %zu: matmuls are timed "
                        "again",
                        table.path().c_str(), table.others().c_str(),
                        nameOfDevice().c_str(), cublasLtGetVersion()));
  {
    Stopwatch watch(c);
    for (size_t i : missing)
      choose(watch, c.artifact->gemm[i], *c.gemms[i], table);
  }
  table.write(file);
  file.commit();
}

void rt::chooseAlgorithms(CudaContext &c, const std::string &folder) {
  if (folder.empty() || c.gemms.empty())
    return;
  // Where this fails, the file cannot be written either.
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  MatmulTable table(folder, nameOfDevice());
  if (useKept(c, table).empty())
    return;
  HeldFolder held(folder);
  std::vector<size_t> missing = useKept(c, table);
  if (missing.empty())
    return;
  std::vector<Algorithm> guesses;
  for (size_t i : missing)
    guesses.push_back(c.gemms[i]->chosen());
  try {
    timeMissing(c, table, missing);
  } catch (const Error &error) {
    printMessage(kRunWarning,
                 format("%s; %zu of %zu matmuls use the library's first "
                        "guesses, so that every run gives the same bits",
                        error.what(), missing.size(), c.gemms.size()));
    for (size_t i = 0; i < missing.size(); ++i)
      c.gemms[missing[i]]->use(guesses[i]);
  }
}
