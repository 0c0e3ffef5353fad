//===- FileLock.h - Files and folders that a process holds ------*- C++ -*-===//
//
// A lock says that its holder lives: the kernel opens it when the last process
// that has the descriptor ends, however that happens.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SUPPORT_FILELOCK_H
#define FSDP_SUPPORT_FILELOCK_H

#include <string>

namespace fsdp {

/// Locks the file or folder of a descriptor, unless another process holds it.
/// Returns whether it did, and sets errno if not: EWOULDBLOCK if it is held.
bool tryLock(int descriptor);

/// Holds the file or folder of a descriptor together with other processes that
/// do so: then tryLock() fails everywhere. One that holds it alone lets others
/// join. Returns whether it did, and sets errno if not: EWOULDBLOCK if a
/// process holds it alone.
bool tryShare(int descriptor);

enum class LockWait { No, Yes };

/// Opens `path` with the flags of open(2), new files for everybody that the
/// umask allows, and locks it. Returns the descriptor, or -1 and errno:
/// EWOULDBLOCK if it is held. A holder removes the name before it lets go: if
/// that happens meanwhile, the name is made again where the flags allow it, and
/// is an ENOENT otherwise.
int openLocked(const std::string &path, int flags, LockWait wait);

} // namespace fsdp

#endif // FSDP_SUPPORT_FILELOCK_H
