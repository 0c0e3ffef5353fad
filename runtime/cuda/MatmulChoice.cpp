//===- MatmulChoice.cpp - The fastest algorithm of every matmul -----------===//
#include "MatmulChoice.h"
#include "ChooseDevice.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/FileLock.h"
#include "fsdp/Support/Json.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;

using Algorithm = cublasLtMatmulAlgo_t;
using Json = nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

/// "matmuls-NVIDIA_H200-130200.json".
static std::string fileIn(const std::string &folder,
                          const std::string &device) {
  std::string word = device;
  for (char &c : word)
    if (!std::isalnum(static_cast<unsigned char>(c)))
      c = '_';
  return folder + "/matmuls-" + word + "-" +
         std::to_string(cublasLtGetVersion()) + ".json";
}

/// What makes a matmul another one.
static Json keyOf(const GemmDesc &d) {
  return {{"batch", d.batch},
          {"m", d.m},
          {"n", d.n},
          {"k", d.k},
          {"transposed", {d.transposeLhs, d.transposeRhs}},
          {"bias", d.bias},
          {"adds", d.accumulate},
          {"types", {int(d.in), int(d.out)}},
          {"workspace", d.workspace}};
}

static std::string hexOf(const Algorithm &algorithm) {
  std::string text;
  for (uint64_t word : algorithm.data)
    text += format("%016llx", static_cast<unsigned long long>(word));
  return text;
}

static std::optional<Algorithm> algorithmOf(const std::string &text) {
  Algorithm algorithm{};
  constexpr size_t kDigits = 16;
  if (text.size() != std::size(algorithm.data) * kDigits ||
      text.find_first_not_of("0123456789abcdef") != std::string::npos)
    return std::nullopt;
  for (size_t i = 0; i < std::size(algorithm.data); ++i)
    algorithm.data[i] =
        std::stoull(text.substr(i * kDigits, kDigits), nullptr, 16);
  return algorithm;
}

namespace {

/// The file of a GPU and this version of the library.
struct Kept {
  std::string path, device;
  /// Of whom the file is, if of others than its name says; empty: it is not.
  std::string others;
};

} // namespace

/// The algorithms of all matmuls of the artifact, in its order. None if the
/// file is of another artifact, which was in the folder before, another
/// runtime, GPU or library.
static std::optional<std::vector<Algorithm>> read(const CudaContext &c,
                                                  Kept &kept) {
  const std::string &path = kept.path;
  auto fail = [&](const std::string &problem) -> Error {
    return Error(path + ": " + problem +
                 "; remove it, and matmuls are timed again");
  };
  std::string text = readWholeFile(path, "the choice of matmul algorithms");
  nlohmann::json file;
  try {
    file = parseJson(text, "");
  } catch (const Error &error) {
    throw fail(error.what());
  }
  if (!file.is_object() || !file.contains("matmuls") ||
      !file["matmuls"].is_array())
    throw fail("it has no list 'matmuls'");
  if (!file.contains("gpu") || !file["gpu"].is_string() ||
      !file.contains("cublaslt") || !file["cublaslt"].is_number_unsigned())
    throw fail("it does not say of which 'gpu' and 'cublaslt' it is");
  if (file["gpu"] != kept.device || file["cublaslt"] != cublasLtGetVersion()) {
    auto gpu = file["gpu"].get<std::string>();
    kept.others = (isPlainLine(gpu) ? "the GPU '" + gpu + "'" : "another GPU") +
                  " and cuBLASLt " + file["cublaslt"].dump();
    return std::nullopt;
  }
  if (!file.contains("demands") || file["demands"] != GemmPlan::demands())
    return std::nullopt;
  const nlohmann::json &rows = file["matmuls"];
  std::vector<Algorithm> chosen;
  for (size_t i = 0; i < rows.size(); ++i) {
    auto has = [&](const char *key) {
      return rows[i].is_object() && rows[i].contains(key);
    };
    std::optional<Algorithm> algorithm;
    if (has("algorithm") && rows[i]["algorithm"].is_string())
      algorithm = algorithmOf(rows[i]["algorithm"].get<std::string>());
    if (!has("matmul") || !algorithm)
      throw fail("entry " + std::to_string(i) +
                 " of 'matmuls' is no matmul "
                 "with its algorithm");
    if (i >= c.gemms.size() ||
        rows[i]["matmul"] != nlohmann::json(keyOf(c.artifact->gemm[i])))
      return std::nullopt;
    chosen.push_back(*algorithm);
  }
  if (chosen.size() != c.gemms.size())
    return std::nullopt;
  return chosen;
}

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

  /// Seconds of the best of several runs; infinite if the algorithm fails or
  /// the operands do not fit side by side.
  double measure(const GemmDesc &desc, GemmPlan &plan, const Algorithm &with);

private:
  double timeOnce(const GemmPlan &plan, const Ptr (&at)[5]);

  /// Of timed runs, after one that is not.
  static constexpr int kRuns = 3;

  CudaContext &c;
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
};

} // namespace

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

double Stopwatch::timeOnce(const GemmPlan &plan, const Ptr (&at)[5]) {
  require(cudaEventRecord(begin, stream), "events");
  if (!plan.tryRun(stream, at[0], at[1], at[2], at[3], at[4]))
    return INFINITY;
  require(cudaEventRecord(end, stream), "events");
  require(cudaStreamSynchronize(stream), "timing of a matmul");
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, begin, end), "events");
  return milliseconds * 1e-3;
}

double Stopwatch::measure(const GemmDesc &d, GemmPlan &plan,
                          const Algorithm &with) {
  int64_t in = sizeOf(d.in);
  const int64_t sizes[] = {d.batch * d.m * d.k * in, d.batch * d.k * d.n * in,
                           d.bias ? d.n * in : 0,
                           d.batch * d.m * d.n * sizeOf(d.out), d.workspace};
  Ptr at[5];
  uint64_t top = 0;
  for (size_t i = 0; i < std::size(sizes); ++i) {
    at[i] = sizes[i] > 0 ? c.arena + top : nullptr;
    top += uint64_t(roundedUp(sizes[i], 256).saturated());
  }
  // An operand may be used twice, so that a program needs less.
  if (top > c.artifact->arena_bytes)
    return INFINITY;
  plan.use(with);
  timeOnce(plan, at);
  double best = INFINITY;
  for (int i = 0; i < kRuns; ++i)
    best = std::min(best, timeOnce(plan, at));
  return best;
}

/// Times the candidates of a matmul and takes the fastest; what is kept of it.
static Json choose(Stopwatch &watch, const GemmDesc &desc, GemmPlan &plan) {
  std::vector<Algorithm> candidates = plan.candidates();
  double first = watch.measure(desc, plan, candidates[0]), best = first;
  Algorithm chosen = candidates[0];
  for (size_t i = 1; i < candidates.size(); ++i)
    if (double seconds = watch.measure(desc, plan, candidates[i]);
        seconds < best) {
      best = seconds;
      chosen = candidates[i];
    }
  plan.use(chosen);
  Json row = {{"matmul", keyOf(desc)}, {"algorithm", hexOf(chosen)}};
  if (std::isfinite(best))
    row["microseconds"] = best * 1e6;
  if (std::isfinite(first))
    row["microseconds of the first"] = first * 1e6;
  row["candidates"] = candidates.size();
  return row;
}

static Json timeAll(CudaContext &c) {
  Stopwatch watch(c);
  Json rows = Json::array();
  for (size_t i = 0; i < c.gemms.size(); ++i)
    rows.push_back(choose(watch, c.artifact->gemm[i], *c.gemms[i]));
  return rows;
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

static void useKnown(CudaContext &c, const std::vector<Algorithm> &known,
                     const std::string &path) {
  for (size_t i = 0; i < known.size(); ++i) {
    c.gemms[i]->use(known[i]);
    try {
      c.gemms[i]->checkAlgorithm();
    } catch (const Error &error) {
      throw Error(path + ": matmul " + std::to_string(i) + ": " + error.what() +
                  "; remove it, and matmuls are timed again");
    }
  }
}

/// Uses what is kept of this artifact and machine; false if nothing is.
static bool useKept(CudaContext &c, Kept &kept) {
  const std::string &path = kept.path;
  kept.others.clear();
  std::error_code error;
  auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found)
    return false;
  // A pipe would be waited for.
  if (!std::filesystem::is_regular_file(status))
    throw Error("'" + path +
                "' is no regular file, which keeps the choice of "
                "matmul algorithms; remove it, and matmuls are timed again");
  std::optional<std::vector<Algorithm>> known = read(c, kept);
  if (known)
    useKnown(c, *known, path);
  return known.has_value();
}

namespace {

/// Of two first runs at once one times matmuls, and the other waits and takes
/// its choice. A folder that cannot be locked is used as it is.
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

void rt::chooseAlgorithms(CudaContext &c, const std::string &folder) {
  if (folder.empty() || c.gemms.empty())
    return;
  Kept kept;
  kept.device = nameOfDevice();
  kept.path = fileIn(folder, kept.device);
  if (useKept(c, kept))
    return;
  HeldFolder held(folder);
  if (useKept(c, kept))
    return;
  std::vector<Algorithm> guesses;
  for (const auto &gemm : c.gemms)
    guesses.push_back(gemm->chosen());
  try {
    // Where this fails nothing is timed.
    AtomicFile file(kept.path);
    if (!kept.others.empty())
      printMessage(kRunWarning,
                   format("%s is of %s, not of '%s' and %zu: matmuls are timed "
                          "again",
                          kept.path.c_str(), kept.others.c_str(),
                          kept.device.c_str(), cublasLtGetVersion()));
    Json table = {{"gpu", kept.device},
                  {"cublaslt", cublasLtGetVersion()},
                  {"demands", GemmPlan::demands()}};
    table["matmuls"] = timeAll(c);
    file.write(table.dump(1) + "\n");
    file.commit();
  } catch (const Error &error) {
    printMessage(kRunWarning,
                 std::string(error.what()) +
                     "; matmuls use the library's first guesses, so that every "
                     "run gives the same bits");
    for (size_t i = 0; i < guesses.size(); ++i)
      c.gemms[i]->use(guesses[i]);
  }
}
