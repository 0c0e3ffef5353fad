//===- SessionFolder.cpp - A job's own folder for a while -----------------===//
#include "SessionFolder.h"
#include "fsdp/Runtime/Launch.h"
#include "fsdp/Support/FileLock.h"
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;
namespace fs = std::filesystem;

/// mpirun inherits the descriptor, so the lock outlives a launcher that was
/// killed.
static int lockFolder(const std::string &folder, LockWait wait) {
  return openLocked(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, wait);
}

/// Removes our folders in `base` that no process holds.
static void removeAbandoned(const std::string &base) {
  std::error_code ignored;
  for (const auto &entry : fs::directory_iterator(base, ignored)) {
    struct stat status;
    std::string name = entry.path().filename().string();
    if (name.rfind(kSessionPrefix, 0) != 0 ||
        lstat(entry.path().c_str(), &status) != 0 ||
        status.st_uid != geteuid() || !S_ISDIR(status.st_mode))
      continue;
    int descriptor = lockFolder(entry.path().string(), LockWait::No);
    if (descriptor < 0)
      continue;
    fs::remove_all(entry.path(), ignored);
    close(descriptor);
  }
}

SessionFolder::SessionFolder(const std::string &base) {
  removeAbandoned(base);
  // Another job may take the new folder for an abandoned one before it is
  // locked; then it is gone, and the next will do.
  while (lock < 0) {
    folder = base + "/" + kSessionPrefix + "XXXXXX";
    if (!mkdtemp(folder.data()))
      throw std::system_error(errno, std::generic_category());
    lock = lockFolder(folder, LockWait::Yes);
    if (lock >= 0 || errno == ENOENT)
      continue;
    int error = errno;
    rmdir(folder.c_str());
    throw std::system_error(error, std::generic_category());
  }
}

SessionFolder::~SessionFolder() {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  close(lock);
}
