//===- SessionFolder.h - A job's own folder for a while ---------*- C++ -*-===//
#ifndef FSDP_RUNTIME_LAUNCH_SESSIONFOLDER_H
#define FSDP_RUNTIME_LAUNCH_SESSIONFOLDER_H

#include <string>

namespace fsdp::rt {

/// A new folder in `base`, named kSessionPrefix and more, removed at the end. A
/// job that was killed leaves it behind, so the next one removes what no living
/// job holds: a folder is locked, and the kernel opens the lock when the last
/// process that inherited it has ended.
class SessionFolder {
public:
  /// Throws std::system_error if no folder can be made and locked.
  explicit SessionFolder(const std::string &base);
  SessionFolder(const SessionFolder &) = delete;
  SessionFolder &operator=(const SessionFolder &) = delete;
  ~SessionFolder();

  const std::string &path() const { return folder; }

private:
  std::string folder;
  int lock = -1;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCH_SESSIONFOLDER_H
