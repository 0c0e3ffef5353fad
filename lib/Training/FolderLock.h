//===- FolderLock.h - One job at a time writes to a folder ------*- C++ -*-===//
#ifndef FSDP_TRAINING_FOLDERLOCK_H
#define FSDP_TRAINING_FOLDERLOCK_H

#include "fsdp/Support/Signals.h"
#include <optional>
#include <string>

namespace fsdp {

/// A locked file `run.lock` that says who holds it. The kernel opens the lock
/// when its holder ends, however that happens; only a holder that is killed
/// leaves the file behind.
class FolderLock {
public:
  /// Its name in the folder.
  static constexpr const char *kFile = "run.lock";

  /// Throws fsdp::Error that names the holder if another job has the folder,
  /// and the option that chooses it. Ranks that a launcher started find its
  /// lock and leave it alone.
  FolderLock(const std::string &folder, const std::string &artifact,
             const std::string &option = "--job.dump_folder");
  ~FolderLock() { release(); }
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;

  void release();

private:
  std::string file;
  int descriptor = -1; // -1: not held, or by the launcher
  std::optional<RemovedOnSignal> removal;
};

} // namespace fsdp

#endif // FSDP_TRAINING_FOLDERLOCK_H
