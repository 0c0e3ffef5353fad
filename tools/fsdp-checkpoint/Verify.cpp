//===- Verify.cpp - fsdp-checkpoint verify --------------------------------===//
#include "Commands.h"
#include "Table.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Support/ParallelFor.h"
#include "runtime/checkpoint/Open.h"
#include "runtime/checkpoint/store/VerifyTensors.h"
#include <cstdio>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::checkpoint;

namespace {

/// A line that counts, if somebody looks at it.
class Progress {
public:
  explicit Progress(uint64_t all)
      : all(all), isShown(isatty(STDERR_FILENO) == 1) {}
  ~Progress() {
    if (isShown)
      std::fprintf(stderr, "\r\x1b[K");
  }

  void show(uint64_t done) {
    uint64_t percent = all == 0 ? 100 : done / (all / 100 + 1);
    if (isShown && percent != last)
      std::fprintf(stderr, "\r%s of %s", bytesText(done).c_str(),
                   bytesText(all).c_str());
    last = percent;
  }

private:
  uint64_t all, last = UINT64_MAX;
  bool isShown;
};

} // namespace

static uint64_t totalBytes(const TensorStore &store) {
  uint64_t bytes = 0;
  for (const StoredTensor &tensor : store.tensors())
    bytes += static_cast<uint64_t>(bytesOf(tensor));
  return bytes;
}

static int verify(const std::string &path, int threads) {
  auto store = openTensorStore(path);
  Verification result;
  {
    Progress progress(totalBytes(*store));
    result = verifyTensors(*store, threads,
                           [&](uint64_t done) { progress.show(done); });
  }
  for (const std::string &text : result.damage)
    printMessage("fsdp-checkpoint: damaged checkpoint", text);
  if (!result.damage.empty())
    return 1;
  std::printf("%s: %s in %zu tensors are as they were written%s\n",
              store->path().c_str(), bytesText(result.checked).c_str(),
              store->tensors().size(),
              result.unchecked == 0
                  ? ""
                  : ("; of " + bytesText(result.unchecked) +
                     " more there are no checksums, they have their sizes")
                        .c_str());
  return 0;
}

std::function<int()> checkpoint::declareVerify(CLI::App &app) {
  struct Options {
    std::string path;
    int threads = availableThreads();
  };
  auto options = std::make_shared<Options>();
  app.add_option("PATH", options->path, kPathHelp)->required();
  app.add_option("--threads", options->threads, "threads that read")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  return [options] { return verify(options->path, options->threads); };
}
