//===- Outputs.cpp - What a run writes, and leaves when it fails ----------===//
#include "Outputs.h"
#include "RunHeader.h"
#include "fsdp/Core/Variables.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Paths.h"
#include "fsdp/Support/Signals.h"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
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

/// Throws if what is at `path` is nothing that a file could replace.
static void checkReplaceable(const std::string &path) {
  std::error_code ignored; // what cannot be looked at is said of its folder
  if (fs::is_directory(path, ignored))
    throw Error("cannot write '" + path + "': it is a directory");
  if (fs::exists(path, ignored) && access(path.c_str(), W_OK) != 0)
    throw Error("cannot write '" + path + "': " + std::strerror(errno));
}

/// Throws unless the file can be made: where permissions allow it, the file
/// system may not. A pipe is left alone, which waits for its reader.
static void tryToMake(const std::string &path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored) || fs::is_regular_file(path, ignored))
    AtomicFile withoutCommit(path);
}

/// Size of a file; 0 if there is none.
static uintmax_t sizeOf(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0
             ? static_cast<uintmax_t>(status.st_size)
             : 0;
}

std::string fsdp::pathOfRank(const std::string &path, int rank) {
  fs::path whole(path);
  std::string suffix = ".rank" + std::to_string(rank);
  std::string extension = whole.extension().string();
  return whole.replace_extension("").string() + suffix + extension;
}

static fs::path resolved(const fs::path &path) {
  std::error_code ignored;
  return fs::weakly_canonical(absolutePath(path.string()), ignored);
}

//===----------------------------------------------------------------------===//
// The file of metrics
//===----------------------------------------------------------------------===//

/// Throws unless metrics.jsonl names a file of the dump folder that is none of
/// `others`, the run's other files.
static void checkMetricsName(const RunConfig &config,
                             const std::vector<std::string> &others) {
  const std::string &name = config.metrics.jsonl;
  auto origin = config.origin.find("metrics.jsonl");
  std::string where =
      origin == config.origin.end() ? "" : origin->second + ": ";
  if (name.find('/') != std::string::npos || name == "." || name == "..")
    throw Error(where +
                "metrics.jsonl: expected the name of a file in the dump "
                "folder, got '" +
                name + "'; job.dump_folder says where that is");
  fs::path metrics = resolved(config.job.dumpFolder + "/" + name);
  for (const std::string &other : others)
    if (resolved(other) == metrics)
      throw Error(where + "metrics.jsonl: '" + name +
                  "' is another file of this run; choose another name");
}

/// Throws if lines of this run would go after something else than metrics.
static void checkMetricsFile(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0)
    return;
  const char *const remedy = "; choose another --metrics.jsonl, or an empty "
                             "one for none";
  if (!S_ISREG(status.st_mode))
    throw Error("'" + path + "' is no regular file, which keeps the metrics" +
                remedy);
  std::string_view wanted = kHeaderStart;
  std::string start(wanted.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw Error("cannot read '" + path + "': " + std::strerror(errno));
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<size_t>(file.gcount()));
  // An empty file, or one whose first line was cut short by a full disk, is
  // ours.
  if (wanted.substr(0, start.size()) != start)
    throw Error("'" + path +
                "' is not the metrics of a run: its first line "
                "does not begin with " +
                std::string(wanted) + remedy);
}

/// Throws unless checkpoint.folder is a folder of its own: neither the dump
/// folder nor one of `others`, the run's files, or in the place of one.
static void checkCheckpointFolder(const RunConfig &config,
                                  const std::vector<std::string> &others) {
  const std::string remedy = "; choose another --checkpoint.folder";
  fs::path place = resolved(checkpointFolder(config) + "/");
  if (place == resolved(config.job.dumpFolder + "/"))
    throw Error("checkpoint.folder = '" + config.checkpoint.folder +
                "' is the dump folder itself" + remedy);
  for (const std::string &other : others) {
    // "a/b" is in the place of "a" too.
    fs::path file = resolved(other);
    auto rest =
        std::mismatch(file.begin(), file.end(), place.begin(), place.end());
    if (rest.first == file.end())
      throw Error("checkpoint.folder = '" + config.checkpoint.folder +
                  "' is in the place of '" + other +
                  "', another file of this run" + remedy);
  }
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

/// What is written at the end.
static const char *const kResults[] = {"loss.svg", "summary.json",
                                       "sample.txt"};

Outputs::Outputs(const RunConfig &config, const RunOptions &options,
                 int64_t ranks, bool isFirst)
    : folder(config.job.dumpFolder),
      metrics(config.metrics.jsonl.empty()
                  ? ""
                  : folder + "/" + config.metrics.jsonl),
      isNewFolder(!fs::exists(folder)) {
  bool trains = options.trains();
  for (const char *name : kResults)
    files.push_back(folder + "/" + name);
  // `path` as somebody gave it, and the first rank's file of it.
  auto requirePlace = [&](const std::string &path, const std::string &file) {
    fs::path parent = fs::path(absolutePath(path)).parent_path();
    bool isToBeMade =
        trains && isNewFolder && resolved(parent) == resolved(folder);
    if (isToBeMade)
      return;
    checkFolderOf(path);
    tryToMake(file);
  };
  if (!options.dump.empty()) {
    requirePlace(options.dump, pathOfRank(options.dump, 0));
    for (int64_t rank = 0; rank < ranks; ++rank)
      files.push_back(pathOfRank(options.dump, static_cast<int>(rank)));
  }
  addTraces(ranks, [&](const std::string &path) { requirePlace(path, path); });
  if (!isFirst || !trains)
    return;
  std::vector<std::string> others = files;
  others.push_back(folder + "/" + FolderLock::kFile);
  if (!metrics.empty()) {
    checkMetricsName(config, others);
    others.push_back(metrics);
  }
  if (savesCheckpoints(config))
    checkCheckpointFolder(config, others);
  for (const char *name : kResults)
    checkReplaceable(folder + "/" + name);
  makeDurableDirectories(folder);
  lock = std::make_unique<FolderLock>(folder, options.artifact);
  if (savesCheckpoints(config))
    takeCheckpointFolder(checkpointFolder(config), options.artifact);
  removeLeftovers();
  checkMetricsFile(metrics);
  metricsBefore = sizeOf(metrics);
}

/// A trace is written when all is over: what is wrong with its place is said
/// before.
void Outputs::addTraces(
    int64_t ranks, const std::function<void(const std::string &)> &require) {
  for (int64_t rank = 0; rank < ranks; ++rank) {
    std::string path = rt::tracePath("", rank);
    if (path.empty())
      return;
    try {
      checkReplaceable(path);
      if (rank == 0) // all are in one folder
        require(path);
    } catch (const Error &error) {
      throw Error(std::string("environment: FSDP_TRACE: ") + error.what());
    }
    files.push_back(path);
  }
}

/// The folder of checkpoints may be one that several runs write to by turns.
void Outputs::takeCheckpointFolder(const std::string &path,
                                   const std::string &artifact) {
  if (!fs::exists(path))
    newCheckpoints = path;
  makeDurableDirectories(path);
  checkFolderOf(path + "/step-1");
  checkpointLock =
      std::make_unique<FolderLock>(path, artifact, "--checkpoint.folder");
}

void Outputs::removeLeftovers() const {
  for (const std::string &file : files)
    removePartialFiles(file);
  if (!metrics.empty())
    removePartialFiles(metrics);
}

void Outputs::discard(double patienceSeconds) {
  std::error_code ignored;
  removeLeftovers();
  for (auto *held : {&lock, &checkpointLock})
    if (*held) {
      (*held)->release(patienceSeconds);
      held->reset();
    }
  if (!newCheckpoints.empty())
    fs::remove(newCheckpoints, ignored);
  // Fails if something is in it, as it should.
  if (isNewFolder)
    fs::remove(folder, ignored);
}

static std::string stepsAreIn(const std::string &file) {
  return "; the steps so far are in '" + file + "'";
}

std::string Outputs::whereStepsAre() const {
  if (!lock || sizeOf(metrics) == metricsBefore)
    return {};
  return stepsAreIn(metrics);
}

//===----------------------------------------------------------------------===//
// Signals
//===----------------------------------------------------------------------===//

namespace {
/// All that the handler needs, made before: it may not allocate.
struct {
  std::string metrics, where, messages[NSIG];
  std::string folder; // empty if it was there before the run
  uintmax_t metricsBefore;
} stopping;
} // namespace

static bool say(const std::string &text) {
  return write(STDERR_FILENO, text.data(), text.size()) >= 0;
}

static bool explain(int signal) {
  bool hasSteps = sizeOf(stopping.metrics) != stopping.metricsBefore;
  return say(stopping.messages[signal]) && (!hasSteps || say(stopping.where)) &&
         write(STDERR_FILENO, "\n", 1) == 1;
}

static void stop(int signal) {
  // A filter whose reader has gone ends without a word.
  bool said = signal == SIGPIPE || explain(signal);
  removeFilesOnSignal();
  // Fails if something is in it, as it should.
  rmdir(stopping.folder.c_str());
  _exit(said ? 128 + signal : 1);
}

void Outputs::explainSignals() const {
  if (!lock)
    return;
  stopping.folder = isNewFolder ? folder : "";
  stopping.metrics = metrics;
  stopping.metricsBefore = metricsBefore;
  stopping.where = stepsAreIn(metrics);
  for (int signal : kStopSignals) {
    stopping.messages[signal] = "fsdp-run: " + stoppedBy(signal);
    if (!isIgnored(signal))
      std::signal(signal, stop);
  }
  if (!isIgnored(SIGPIPE))
    std::signal(SIGPIPE, stop);
}
