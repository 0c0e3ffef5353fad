//===- FolderLock.h - One job at a time writes to a folder ------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_FOLDERLOCK_H
#define FSDP_RUNTIME_TRAIN_FOLDERLOCK_H

#include "fsdp/Support/Signals.h"
#include <memory>
#include <optional>
#include <string>

namespace fsdp {

/// A locked file `run.lock` that says which job holds it. The processes of the
/// job that write to the folder hold it together, since a launcher that is
/// killed may end before its ranks. The kernel opens the lock when the last of
/// them has ended, however that happens; only a job that is killed leaves the
/// file behind.
class FolderLock {
public:
  /// Its name in the folder.
  static constexpr const char *kFile = "run.lock";

  /// Takes the folder for a job, or joins the launcher that has it and started
  /// this rank. Throws fsdp::Error that names the holder if another job has the
  /// folder, and the option that chooses it; the ranks of a launcher that is
  /// gone are waited for, up to 100 s.
  FolderLock(const std::string &folder, const std::string &artifact,
             const std::string &option = "--job.dump_folder");
  /// Joins the rank of the own job that has taken the folder `joined` and has
  /// not let it go. Throws fsdp::Error.
  static std::unique_ptr<FolderLock> joinFirst(const std::string &joined);
  ~FolderLock() { release(); }
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;

  /// Removes the file if within so many seconds no other process holds it.
  void release(double patienceSeconds = 1);

private:
  explicit FolderLock(std::string file) : file(std::move(file)) {}
  void join(const std::string &folder, const std::string &option);
  void share(const std::string &folder, const std::string &option);
  [[noreturn]] void failToLock(const std::string &option) const;
  void requireOwnFile(const std::string &option);
  void describeSelf(const std::string &artifact);

  std::string file;
  int descriptor = -1; // -1: not held
  std::optional<RemovedOnSignal> removal;
};

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_FOLDERLOCK_H
