//===- LineFile.cpp - A file of JSON lines that only grows ----------------===//
#include "LineFile.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsdp;

LineFile::LineFile(const std::string &path)
    : path(path),
      file(open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0)
    fail("open");
  if (!S_ISREG(status.st_mode))
    throw Error("'" + path + "' is no regular file");
  mend();
}

LineFile::~LineFile() { close(file); }

void LineFile::fail(const char *action) const {
  throw Error(std::string("cannot ") + action + " '" + path +
              "': " + std::strerror(errno));
}

void LineFile::mend() {
  // No line of ours is longer; in a file without lines nothing is removed.
  constexpr off_t kLongest = 1 << 20;
  off_t size = lseek(file, 0, SEEK_END),
        begin = std::max<off_t>(size - kLongest, 0);
  std::string tail(static_cast<size_t>(size - begin), '\0');
  if (pread(file, tail.data(), tail.size(), begin) != size - begin)
    fail("read");
  size_t newline = tail.rfind('\n');
  if (newline == std::string::npos && begin > 0)
    return append("\n");
  std::string_view last(tail);
  last.remove_prefix(newline == std::string::npos ? 0 : newline + 1);
  if (last.empty())
    return;
  bool isHalf = last.front() == '{' && !nlohmann::json::accept(last);
  if (!isHalf)
    return append("\n");
  if (ftruncate(file, size - static_cast<off_t>(last.size())) != 0)
    fail("write");
}

void LineFile::append(std::string_view lines) {
  off_t begin = lseek(file, 0, SEEK_END);
  while (!lines.empty()) {
    ssize_t count = write(file, lines.data(), lines.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0) {
      int error = errno;
      // On a full disk the first part may have found room.
      if (ftruncate(file, begin) != 0)
        error = errno;
      errno = error;
      fail("write");
    }
    lines.remove_prefix(static_cast<size_t>(count));
  }
}
