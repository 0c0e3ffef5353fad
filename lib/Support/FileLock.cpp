//===- FileLock.cpp - Files and folders that a process holds --------------===//
#include "fsdp/Support/FileLock.h"
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsdp;

bool fsdp::tryLock(int descriptor) {
  return flock(descriptor, LOCK_EX | LOCK_NB) == 0;
}

bool fsdp::tryShare(int descriptor) {
  return flock(descriptor, LOCK_SH | LOCK_NB) == 0;
}

/// Whether the locked file is still the one of this name.
static bool isNamed(int descriptor, const std::string &path) {
  struct stat locked, present;
  return fstat(descriptor, &locked) == 0 && stat(path.c_str(), &present) == 0 &&
         locked.st_ino == present.st_ino && locked.st_dev == present.st_dev;
}

int fsdp::openLocked(const std::string &path, int flags, LockWait wait) {
  for (;;) {
    int descriptor = open(path.c_str(), flags, 0666);
    if (descriptor < 0)
      return -1;
    int error = ENOENT;
    if (flock(descriptor, LOCK_EX | (wait == LockWait::No ? LOCK_NB : 0)) != 0)
      error = errno;
    else if (isNamed(descriptor, path))
      return descriptor;
    close(descriptor);
    errno = error;
    // A name that is gone can be made again.
    if (error != ENOENT || !(flags & O_CREAT))
      return -1;
  }
}
