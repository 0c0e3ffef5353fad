//===- FolderLock.h - One job at a time writes to a folder ------*- C++ -*-===//
#ifndef FSDP_RUN_FOLDERLOCK_H
#define FSDP_RUN_FOLDERLOCK_H

#include <string>

namespace fsdp {

/// A locked file `run.lock` that says who holds it. The kernel opens the lock
/// when its holder ends, however that happens.
class FolderLock {
public:
  /// Throws fsdp::Error that names the holder if another job has the folder.
  /// Ranks that a launcher started find its lock and leave it alone.
  FolderLock(const std::string &folder, const std::string &artifact);
  ~FolderLock() { release(); }
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;

  void release();
  const std::string &path() const { return file; }

private:
  std::string file;
  int descriptor = -1; // -1: not held, or by the launcher
};

} // namespace fsdp

#endif // FSDP_RUN_FOLDERLOCK_H
