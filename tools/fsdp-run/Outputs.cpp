//===- Outputs.cpp - What a run writes, and leaves when it fails ----------===//
#include "Outputs.h"
#include "Rank.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Signals.h"
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsdp;
namespace fs = std::filesystem;

/// Throws unless files can be made in the folder of `path`.
static void checkFolderOf(const std::string &path) {
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty())
    folder = ".";
  // The trailing slash makes a plain file an error too.
  if (access((folder.string() + "/").c_str(), W_OK) != 0)
    throw Error("cannot write '" + path + "': " + std::strerror(errno));
}

/// Size of a file; 0 if there is none.
static uintmax_t sizeOf(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0
             ? static_cast<uintmax_t>(status.st_size)
             : 0;
}

Outputs::Outputs(const RunConfig &config, const RunOptions &options,
                 int64_t ranks, bool isFirst)
    : folder(config.job.dumpFolder),
      metrics(config.metrics.jsonl.empty()
                  ? ""
                  : folder + "/" + config.metrics.jsonl),
      isNewFolder(!fs::exists(folder)) {
  for (const char *name : {"loss.svg", "summary.json", "sample.txt"})
    files.push_back(folder + "/" + name);
  if (!options.dump.empty()) {
    checkFolderOf(options.dump);
    for (int64_t rank = 0; rank < ranks; ++rank)
      files.push_back(pathOfRank(options.dump, static_cast<int>(rank)));
  }
  if (!isFirst || !options.program.empty())
    return;
  metricsBefore = sizeOf(metrics);
  makeDirectories(folder);
  lock = std::make_unique<FolderLock>(folder, options.artifact);
}

void Outputs::discard() {
  std::error_code ignored;
  for (const std::string &file : files)
    removePartialFiles(file);
  lock.reset();
  // Fails if something is in it, as it should.
  if (isNewFolder)
    fs::remove(folder, ignored);
}

static std::string stepsAreIn(const std::string &file) {
  return "; the steps so far are in '" + file + "'";
}

std::string Outputs::whereStepsAre() const {
  if (!lock || sizeOf(metrics) <= metricsBefore)
    return {};
  return stepsAreIn(metrics);
}

//===----------------------------------------------------------------------===//
// Signals
//===----------------------------------------------------------------------===//

namespace {
/// All that the handler needs, made before: it may not allocate.
struct {
  std::string lock, metrics, where, messages[NSIG];
  std::string folder; // empty if it was there before the run
  uintmax_t metricsBefore;
} stopping;
} // namespace

static bool say(const std::string &text) {
  return write(STDERR_FILENO, text.data(), text.size()) >= 0;
}

static void stop(int signal) {
  bool hasSteps = sizeOf(stopping.metrics) > stopping.metricsBefore;
  bool said = say(stopping.messages[signal]) &&
              (!hasSteps || say(stopping.where)) &&
              write(STDERR_FILENO, "\n", 1) == 1;
  removeFilesOnSignal();
  unlink(stopping.lock.c_str());
  // Fails if something is in it, as it should.
  rmdir(stopping.folder.c_str());
  _exit(said ? 128 + signal : 1);
}

void Outputs::explainSignals() const {
  if (!lock)
    return;
  stopping.lock = lock->path();
  stopping.folder = isNewFolder ? folder : "";
  stopping.metrics = metrics;
  stopping.metricsBefore = metricsBefore;
  stopping.where = stepsAreIn(metrics);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    stopping.messages[signal] = "fsdp-run: stopped by signal " +
                                std::to_string(signal) + " (" +
                                strsignal(signal) + ")";
    if (!isIgnored(signal))
      std::signal(signal, stop);
  }
}
