//===- AtomicFile.h - Files that are whole or absent ------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_ATOMICFILE_H
#define FSDP_RUNTIME_ATOMICFILE_H

#include <cstdio>
#include <string>
#include <string_view>

namespace fsdp::rt {

/// Where a file is written until it is whole.
std::string partialPath(const std::string &path);

/// Writes to partialPath(PATH); commit renames it to PATH. Without a commit the
/// partial file is removed. Throws fsdp::Error that names the path.
class AtomicFile {
public:
  explicit AtomicFile(const std::string &path);
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  void write(std::string_view bytes);
  /// Makes what was written visible to readers of the partial file.
  void flush();
  void commit();

private:
  [[noreturn]] void fail(const char *action) const;

  std::string path, partial;
  std::FILE *file;
};

void writeFileAtomically(const std::string &path, std::string_view bytes);

/// Makes a directory and its parents.
void makeDirectories(const std::string &path);

/// A whole file; `what` says in messages what it is. Throws fsdp::Error.
std::string readWholeFile(const std::string &path, const std::string &what);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_ATOMICFILE_H
