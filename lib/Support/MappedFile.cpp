//===- MappedFile.cpp - A file read as memory -----------------------------===//
#include "fsdp/Support/MappedFile.h"
#include "fsdp/Support/Error.h"
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsdp;

MappedFile::MappedFile(const std::string &path, const std::string &what,
                       FileKind kind) {
  int descriptor = openToRead(path, what, kind);
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) {
    int error = errno;
    close(descriptor);
    throw Error("cannot read " + what + " '" + path +
                "': " + std::strerror(error));
  }
  auto size = static_cast<size_t>(status.st_size);
  void *memory = MAP_FAILED;
  if (S_ISREG(status.st_mode) && size > 0)
    memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  close(descriptor);
  isMapped = memory != MAP_FAILED;
  if (!isMapped)
    text = readWholeFile(path, what, kind);
  view = isMapped ? std::string_view(static_cast<const char *>(memory), size)
                  : std::string_view(text);
}

MappedFile::~MappedFile() {
  if (isMapped)
    munmap(const_cast<char *>(view.data()), view.size());
}
