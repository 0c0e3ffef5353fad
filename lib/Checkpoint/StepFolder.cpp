//===- StepFolder.cpp - Directories of steps ------------------------------===//
#include "StepFolder.h"
#include "Index.h"
#include "fsdp/Checkpoint/CheckpointFolder.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::checkpoint;
namespace fs = std::filesystem;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string checkpoint::stepFolder(const std::string &folder, int64_t step) {
  return folder + "/step-" + std::to_string(step);
}

std::optional<int64_t> checkpoint::stepOfName(const std::string &name,
                                              const std::string &suffix) {
  const std::string prefix = "step-";
  constexpr size_t kMostDigits = 18;
  if (name.size() <= prefix.size() + suffix.size() ||
      name.compare(0, prefix.size(), prefix) != 0)
    return std::nullopt;
  std::string digits =
      name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  if (digits.size() > kMostDigits ||
      digits.find_first_not_of("0123456789") != std::string::npos ||
      prefix + std::to_string(std::stoll(digits)) + suffix != name)
    return std::nullopt;
  return std::stoll(digits);
}

std::vector<int64_t> checkpoint::stepsIn(const std::string &folder,
                                         const std::string &suffix) {
  std::vector<int64_t> steps;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error && error != std::errc::no_such_file_or_directory)
    throw Error("cannot read the folder '" + folder + "': " + error.message());
  for (; entries != fs::directory_iterator(); entries.increment(error))
    if (auto step = stepOfName(entries->path().filename().string(), suffix))
      steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<int64_t> checkpoint::committedSteps(const std::string &folder) {
  std::vector<int64_t> steps = stepsIn(folder);
  auto isOpen = [&](int64_t step) {
    return !hasMarker(stepFolder(folder, step));
  };
  steps.erase(std::remove_if(steps.begin(), steps.end(), isOpen), steps.end());
  return steps;
}

//===----------------------------------------------------------------------===//
// One directory
//===----------------------------------------------------------------------===//

bool checkpoint::hasMarker(const std::string &directory) {
  std::error_code ignored;
  return fs::is_regular_file(directory + "/" + kMarkerName, ignored);
}

bool checkpoint::isWhole(const std::string &directory) {
  if (!hasMarker(directory))
    return false;
  try {
    std::string path = directory + "/" + kIndexName;
    std::string text = readWholeFile(path, "the index", FileKind::Regular);
    if (readWholeFile(directory + "/" + kMarkerName, "the marker",
                      FileKind::Regular) != markerText(text))
      return false;
    Index index = parseIndex(text, "'" + path + "'");
    return std::all_of(index.contents.files.begin(), index.contents.files.end(),
                       [&](const auto &file) {
                         return fs::file_size(directory + "/" + file.first) ==
                                file.second.bytes;
                       });
  } catch (const std::runtime_error &) { // fs::filesystem_error too
    return false;
  }
}

static std::vector<fs::path> entriesOf(const std::string &directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(directory, error);
       at != fs::directory_iterator(); at.increment(error))
    entries.push_back(at->path());
  return entries;
}

void checkpoint::removeFile(const std::string &path) {
  std::error_code error;
  if (!fs::remove(path, error) && error)
    throw Error("cannot remove '" + path + "': " + error.message());
}

/// Whether all that lies in a directory is what a save makes.
static bool isOurs(const std::vector<fs::path> &entries) {
  return std::all_of(entries.begin(), entries.end(), [](const fs::path &entry) {
    return isOurFile(entry.filename().string());
  });
}

bool checkpoint::removeStepFolder(const std::string &directory) {
  std::vector<fs::path> entries = entriesOf(directory);
  if (!isOurs(entries))
    return false;
  for (const fs::path &entry : entries)
    removeFile(entry.string());
  removeFile(directory);
  return true;
}

//===----------------------------------------------------------------------===//
// In the place of another
//===----------------------------------------------------------------------===//

/// Returns errno, or 0.
static int renameFolder(const std::string &from, const std::string &to,
                        unsigned flags = 0) {
  int status = flags == 0 ? std::rename(from.c_str(), to.c_str())
                          : renameat2(AT_FDCWD, from.c_str(), AT_FDCWD,
                                      to.c_str(), flags);
  return status == 0 ? 0 : errno;
}

[[noreturn]] static void throwRename(const std::string &from,
                                     const std::string &to, int error) {
  throw Error("cannot rename '" + from + "' to '" + to +
              "': " + std::strerror(error));
}

static void moveOrThrow(const std::string &from, const std::string &to) {
  if (int error = renameFolder(from, to))
    throwRename(from, to, error);
}

void checkpoint::moveInPlace(const std::string &folder, int64_t step) {
  std::string place = stepFolder(folder, step), partial = place + kPartial;
  std::error_code ignored;
  if (!fs::exists(place, ignored)) {
    moveOrThrow(partial, place);
    syncFolder(folder);
    return;
  }
  // Both at once where the file system can do that; else the old one stays
  // whole under a name from which cleanCheckpoints brings it back.
  std::string old = partial;
  if (renameFolder(partial, place, RENAME_EXCHANGE) != 0) {
    old = place + kReplaced;
    removeStepFolder(old);
    moveOrThrow(place, old);
    if (int error = renameFolder(partial, place)) {
      renameFolder(old, place);
      throwRename(partial, place, error);
    }
  }
  syncFolder(folder);
  removeStepFolder(old);
}

//===----------------------------------------------------------------------===//
// All directories
//===----------------------------------------------------------------------===//

std::vector<int64_t> checkpoint::pruneCheckpoints(const std::string &folder,
                                                  int64_t keep) {
  std::vector<int64_t> steps = committedSteps(folder), kept;
  if (keep <= 0 || steps.size() <= static_cast<size_t>(keep))
    return kept;
  steps.resize(steps.size() - static_cast<size_t>(keep));
  for (int64_t step : steps) {
    std::string place = stepFolder(folder, step), removed = place + kRemoved;
    if (!isOurs(entriesOf(place))) {
      kept.push_back(step);
      continue;
    }
    // Half removed it must not count, nor be taken for one that was torn.
    removeStepFolder(removed);
    int error = renameFolder(place, removed);
    if (error == ENOTEMPTY || error == EEXIST)
      throwRename(place, removed, error); // something lies there
    if (error != 0)
      throw Error("cannot remove '" + place + "': " + std::strerror(error));
    removeStepFolder(removed);
  }
  return kept;
}

void checkpoint::cleanCheckpoints(const std::string &folder) {
  std::error_code ignored;
  for (int64_t step : stepsIn(folder, kPartial)) {
    std::string place = stepFolder(folder, step), partial = place + kPartial;
    if (!hasMarker(place) && isWhole(partial))
      moveInPlace(folder, step);
    else
      removeStepFolder(partial);
  }
  for (int64_t step : stepsIn(folder, kReplaced)) {
    std::string place = stepFolder(folder, step), old = place + kReplaced;
    if (!fs::exists(place, ignored))
      moveOrThrow(old, place);
    else
      removeStepFolder(old);
  }
  for (int64_t step : stepsIn(folder, kRemoved))
    removeStepFolder(stepFolder(folder, step) + kRemoved);
}
