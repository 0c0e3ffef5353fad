//===- FileCalls.cpp - Calls that change files ----------------------------===//
#include "FileCalls.h"
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsdp::test;
namespace fs = std::filesystem;
using Kind = FileCall::Kind;

int fsdp::test::callsLeft = -1;
bool fsdp::test::canExchange = true;
std::set<fs::path> fsdp::test::synced;
std::string fsdp::test::failingFolder;
std::function<void(FileCall)> fsdp::test::recorder;

/// Held by a call and its record, so that records are in the calls' order.
static std::mutex oneAtATime;

/// Ends the process before a call, after those that were granted.
static void countCall() {
  if (callsLeft == 0)
    kill(getpid(), SIGKILL);
  if (callsLeft > 0)
    --callsLeft;
}

template <typename Function> static Function *realOf(const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

static std::string contentOf(const std::string &path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored))
    return "";
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// Whoever reads what a call returns reads errno too.
static void record(Kind kind, const std::string &path,
                   const std::string &to = "",
                   const std::string &content = "") {
  int error = errno;
  if (recorder)
    recorder({kind, path, to, content});
  errno = error;
}

extern "C" {
int open(const char *path, int flags, ...) {
  mode_t mode = 0;
  if (flags & O_CREAT) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  std::lock_guard<std::mutex> lock(oneAtATime);
  bool wasThere = access(path, F_OK) == 0;
  int file = realOf<int(const char *, int, ...)>("open")(path, flags, mode);
  if (file >= 0 && !wasThere)
    record(Kind::Create, path);
  return file;
}
int rename(const char *from, const char *to) noexcept {
  countCall();
  std::lock_guard<std::mutex> lock(oneAtATime);
  int status = realOf<int(const char *, const char *)>("rename")(from, to);
  if (status == 0)
    record(Kind::Rename, from, to, contentOf(to));
  return status;
}
int renameat2(int fromFolder, const char *from, int toFolder, const char *to,
              unsigned flags) noexcept {
  countCall();
  if (!canExchange) {
    errno = EINVAL;
    return -1;
  }
  std::lock_guard<std::mutex> lock(oneAtATime);
  int status = realOf<int(int, const char *, int, const char *, unsigned)>(
      "renameat2")(fromFolder, from, toFolder, to, flags);
  if (status == 0)
    record(Kind::Exchange, from, to);
  return status;
}
int remove(const char *path) noexcept {
  countCall();
  std::lock_guard<std::mutex> lock(oneAtATime);
  int status = realOf<int(const char *)>("remove")(path);
  if (status == 0)
    record(Kind::Remove, path);
  return status;
}
int mkdir(const char *path, mode_t mode) noexcept {
  countCall();
  std::lock_guard<std::mutex> lock(oneAtATime);
  int status = realOf<int(const char *, mode_t)>("mkdir")(path, mode);
  if (status == 0)
    record(Kind::MakeFolder, path);
  return status;
}
int fsync(int file) {
  countCall();
  std::lock_guard<std::mutex> lock(oneAtATime);
  std::error_code ignored;
  fs::path path =
      fs::read_symlink("/proc/self/fd/" + std::to_string(file), ignored);
  synced.insert(path);
  struct stat status, failing;
  if (failingFolder.empty() || fstat(file, &status) != 0 ||
      stat(failingFolder.c_str(), &failing) != 0 ||
      status.st_ino != failing.st_ino || status.st_dev != failing.st_dev) {
    record(Kind::Sync, path, "", contentOf(path));
    return 0;
  }
  errno = EIO;
  return -1;
}
}
