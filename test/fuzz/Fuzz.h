//===- Fuzz.h - What fuzz targets share -------------------------*- C++ -*-===//
#ifndef FSDP_TEST_FUZZ_H
#define FSDP_TEST_FUZZ_H

#include "fsdp/Support/Error.h"
#include <cstdint>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace fsdp::test {

inline std::string textOf(const uint8_t *data, size_t size) {
  return {reinterpret_cast<const char *>(data), size};
}

/// Input is either refused with a message or can be used.
template <typename Use> void useOrRefuse(Use use) {
  try {
    use();
  } catch (const Error &error) {
    if (*error.what() == 0)
      abort();
  }
}

inline void require(bool holds) {
  if (!holds)
    abort();
}

/// A file that never touches a disk.
class MemoryFile {
public:
  MemoryFile() : file(memfd_create("fuzz", MFD_CLOEXEC)) {}
  ~MemoryFile() { close(file); }
  /// Replaces the contents and returns the file's path.
  std::string write(const uint8_t *data, size_t size) {
    require(ftruncate(file, 0) == 0 &&
            pwrite(file, data, size, 0) == static_cast<ssize_t>(size));
    return "/proc/self/fd/" + std::to_string(file);
  }

private:
  int file;
};

} // namespace fsdp::test

#endif // FSDP_TEST_FUZZ_H
