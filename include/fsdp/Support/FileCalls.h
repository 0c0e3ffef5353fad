//===- FileCalls.h - What waits for a file system ---------------*- C++ -*-===//
//
// A file server that is gone holds calls up without an error. So whoever makes
// one says so, and another thread can tell which it is.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SUPPORT_FILECALLS_H
#define FSDP_SUPPORT_FILECALLS_H

#include <cstdint>
#include <optional>
#include <string>

namespace fsdp {

/// While it lives, its thread is in `call` ("fsync") with the file `path`. Both
/// outlive it.
class FileCall {
public:
  FileCall(const char *call, const std::string &path);
  ~FileCall();
  FileCall(const FileCall &) = delete;
  FileCall &operator=(const FileCall &) = delete;

private:
  int slot;
};

/// A call that has not come back.
struct WaitingCall {
  std::string call, path;
  double seconds;
  uint64_t number; // of all calls
};
/// The one that has lasted longest; nothing if there is none. Any thread.
std::optional<WaitingCall> longestFileCall();

} // namespace fsdp

#endif // FSDP_SUPPORT_FILECALLS_H
