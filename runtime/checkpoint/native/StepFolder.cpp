//===- StepFolder.cpp - Directories of steps ------------------------------===//
#include "StepFolder.h"
#include "CheckpointFolder.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/FileCalls.h"
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
  if (error && error != std::errc::no_such_file_or_directory)
    throw Error("cannot read the folder '" + folder + "': " + error.message());
  std::sort(steps.begin(), steps.end());
  return steps;
}

/// What a name stands for, links followed; throws where that cannot be said: a
/// checkpoint that nobody can look at is not one that is not there.
static fs::file_status statusOf(const std::string &path) {
  std::error_code error;
  fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::none)
    throw Error("cannot look at '" + path + "': " + error.message());
  return status;
}

/// A link to a step that is not there now, as of a disk that is not mounted.
static void checkLink(const std::string &directory) {
  std::error_code ignored;
  if (fs::is_symlink(fs::symlink_status(directory, ignored)) &&
      !fs::exists(statusOf(directory)))
    throw Error("cannot look at '" + directory + "': it is a link to '" +
                fs::read_symlink(directory, ignored).string() +
                "', which is not there; mend the link or remove it");
}

std::vector<int64_t> checkpoint::committedSteps(const std::string &folder) {
  std::vector<int64_t> steps = stepsIn(folder);
  auto isOpen = [&](int64_t step) {
    checkLink(stepFolder(folder, step));
    return !hasMarker(stepFolder(folder, step));
  };
  steps.erase(std::remove_if(steps.begin(), steps.end(), isOpen), steps.end());
  return steps;
}

//===----------------------------------------------------------------------===//
// One directory
//===----------------------------------------------------------------------===//

bool checkpoint::hasMarker(const std::string &directory) {
  return fs::is_regular_file(statusOf(directory + "/" + kMarkerName));
}

Index checkpoint::readIndex(const std::string &directory) {
  std::string path = directory + "/" + kIndexName;
  std::string text = readWholeFile(path, "the index", FileKind::Regular);
  std::string marker = readWholeFile(directory + "/" + kMarkerName,
                                     "the marker", FileKind::Regular);
  if (marker != markerText(text))
    throw Error("damaged checkpoint '" + directory + "': '" + kIndexName +
                "' is not what '" + kMarkerName + "' is the checksum of");
  return parseIndex(text, "'" + path + "'");
}

/// What is wrong with a step; empty: marker, index and sizes of files are as
/// they were written.
static std::string damageOf(const std::string &directory) {
  if (!hasMarker(directory))
    return std::string("it has no marker '") + kMarkerName + "'";
  try {
    Index index = readIndex(directory);
    for (const auto &[name, file] : index.contents.files) {
      std::string path = directory + "/" + name;
      std::error_code error;
      uint64_t bytes = fs::file_size(path, error);
      if (error)
        return "'" + path + "': " + error.message();
      if (bytes != file.bytes)
        return "'" + path + "' has " + std::to_string(bytes) +
               " bytes, the index says " + std::to_string(file.bytes);
    }
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

bool checkpoint::isWhole(const std::string &directory) {
  return damageOf(directory).empty();
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
  FileCall call("unlink", path);
  std::error_code error;
  if (!fs::remove(path, error) && error)
    throw Error("cannot remove '" + path + "': " + error.message());
}

/// Whether there is what a save makes: files of its names in a directory, which
/// no link leads to.
static bool isOurs(const std::string &directory) {
  std::error_code ignored;
  if (!fs::is_directory(fs::symlink_status(directory, ignored)))
    return false;
  std::vector<fs::path> entries = entriesOf(directory);
  return std::all_of(entries.begin(), entries.end(), [](const fs::path &entry) {
    std::error_code ignored;
    return isOurFile(entry.filename().string()) &&
           fs::is_regular_file(fs::symlink_status(entry, ignored));
  });
}

/// Whether the name is taken, be it by a link to nothing.
static bool isTaken(const std::string &path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

bool checkpoint::removeStepFolder(const std::string &directory) {
  if (!isTaken(directory))
    return true;
  if (!isOurs(directory))
    return false;
  // On the disk it may still have the name of a step, or be the only one that
  // is whole: what has taken its place comes first.
  syncFolder(fs::path(directory).parent_path().string());
  for (const fs::path &entry : entriesOf(directory))
    removeFile(entry.string());
  removeFile(directory);
  return true;
}

void checkpoint::checkReplaceable(const std::string &directory) {
  if (!isTaken(directory) || isOurs(directory))
    return;
  std::error_code ignored;
  bool isFolder = fs::is_directory(fs::symlink_status(directory, ignored));
  throw Error("'" + directory + "' " +
              (isFolder ? "contains a file that is not part of a checkpoint"
                        : "is no directory") +
              "; move it away");
}

//===----------------------------------------------------------------------===//
// In the place of another
//===----------------------------------------------------------------------===//

/// Returns errno, or 0.
static int renameFolder(const std::string &from, const std::string &to,
                        unsigned flags = 0) {
  FileCall call("rename", from);
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

/// After a rename the step is there, whatever the disk says.
static void syncStep(const std::string &folder, const std::string &place) {
  try {
    syncFolder(folder);
  } catch (const Error &error) {
    throw Error("'" + place +
                "' is complete, but may not be on the disk: " + error.what());
  }
}

void checkpoint::moveInPlace(const std::string &folder, int64_t step) {
  std::string place = stepFolder(folder, step), partial = place + kPartial;
  checkReplaceable(place);
  if (!isTaken(place)) {
    moveOrThrow(partial, place);
    syncStep(folder, place);
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
  syncStep(folder, place);
  removeStepFolder(old);
}

//===----------------------------------------------------------------------===//
// All directories
//===----------------------------------------------------------------------===//

/// Whether it is a directory with files of a checkpoint, marker or not.
static bool holdsStep(const std::string &directory) {
  return hasMarker(directory) ||
         (isOurs(directory) && !entriesOf(directory).empty());
}

std::vector<DamagedStep> checkpoint::damagedSteps(const std::string &folder) {
  std::vector<DamagedStep> damaged;
  for (int64_t step : stepsIn(folder)) {
    std::string place = stepFolder(folder, step);
    std::string why = holdsStep(place) ? damageOf(place) : "";
    if (!why.empty())
      damaged.push_back({step, why});
  }
  return damaged;
}

Pruned checkpoint::pruneCheckpoints(const std::string &folder, int64_t keep) {
  // Of one that was killed; another that works now removes the same.
  for (int64_t step : stepsIn(folder, kRemoved))
    removeStepFolder(stepFolder(folder, step) + kRemoved);
  Pruned pruned;
  std::vector<int64_t> steps = committedSteps(folder);
  if (keep <= 0 || steps.size() <= static_cast<size_t>(keep))
    return pruned;
  // A step that cannot be loaded is no reason to remove those before it.
  for (int64_t whole = 0; !steps.empty() && whole < keep;) {
    if (isWhole(stepFolder(folder, steps.back())))
      ++whole;
    else
      pruned.damaged.push_back(steps.back());
    steps.pop_back();
  }
  for (int64_t step : steps) {
    std::string place = stepFolder(folder, step), removed = place + kRemoved;
    if (!isOurs(place)) {
      pruned.foreign.push_back(step);
      continue;
    }
    // Half removed it must not count, nor be taken for one that was torn.
    int error = renameFolder(place, removed);
    if (error == ENOTEMPTY || error == EEXIST)
      throwRename(place, removed, error); // something lies there
    if (error != 0)
      throw Error("cannot remove '" + place + "': " + std::strerror(error));
    removeStepFolder(removed);
  }
  return pruned;
}

/// Removes what a process has left in a committed step that was killed.
static void removePartialFilesIn(const std::string &directory) {
  for (const fs::path &entry : entriesOf(directory)) {
    std::string name = entry.filename().string();
    size_t end = name.find(kPartialFile);
    if (end != std::string::npos && isOurFile(name))
      removePartialFiles(directory + "/" + name.substr(0, end));
  }
}

std::vector<std::string>
checkpoint::cleanCheckpoints(const std::string &folder) {
  std::vector<std::string> left;
  auto removeOrKeep = [&](const std::string &directory) {
    if (!removeStepFolder(directory))
      left.push_back(directory);
  };
  for (int64_t step : stepsIn(folder, kPartial)) {
    std::string place = stepFolder(folder, step), partial = place + kPartial;
    bool isFree = !isTaken(place) || (isOurs(place) && !hasMarker(place));
    if (isFree && isOurs(partial) && isWhole(partial)) {
      // The run that was killed may not have come to it.
      syncFolderAndFiles(partial);
      moveInPlace(folder, step);
    } else {
      removeOrKeep(partial);
    }
  }
  for (int64_t step : stepsIn(folder, kReplaced)) {
    std::string place = stepFolder(folder, step), old = place + kReplaced;
    if (!isTaken(place)) {
      if (isOurs(old))
        syncFolderAndFiles(old);
      moveOrThrow(old, place);
    } else {
      removeOrKeep(old);
    }
  }
  for (int64_t step : stepsIn(folder, kRemoved))
    removeOrKeep(stepFolder(folder, step) + kRemoved);
  for (int64_t step : committedSteps(folder))
    removePartialFilesIn(stepFolder(folder, step));
  // Also the names of what a killed run has moved itself: a run goes on from
  // there, and removes what is older.
  if (isTaken(folder))
    syncFolder(folder);
  return left;
}
