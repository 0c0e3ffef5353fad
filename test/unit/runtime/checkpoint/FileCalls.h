//===- FileCalls.h - Calls that change files --------------------*- C++ -*-===//
//
// The program has its own names for the calls of the system that change names
// and files: they are counted, may end the process, and can be recorded.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_CHECKPOINT_FILECALLS_H
#define FSDP_TEST_CHECKPOINT_FILECALLS_H

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace fsdp::test {

/// A call that has succeeded.
struct FileCall {
  enum class Kind { Create, MakeFolder, Remove, Rename, Exchange, Sync };
  Kind kind;
  std::string path, to; // absolute
  /// What the file had when it was synced or renamed; empty of a folder.
  std::string content = {};
};

/// So many calls are granted, and the process is killed before the next;
/// negative: endless.
extern int callsLeft;
/// Whether the file system can exchange two names.
extern bool canExchange;
/// Files and folders that were synced. Nothing is synced in truth: a killed
/// process loses nothing that the system has, and the disk may wait.
extern std::set<std::filesystem::path> synced;
/// A folder that no disk takes; empty: none.
extern std::string failingFolder;
/// Gets every call, one at a time; null: nothing is recorded.
extern std::function<void(FileCall)> recorder;

} // namespace fsdp::test

#endif // FSDP_TEST_CHECKPOINT_FILECALLS_H
