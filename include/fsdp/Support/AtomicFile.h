//===- AtomicFile.h - Files that are whole or absent ------------*- C++ -*-===//
//
// The one way in which every tool writes. What was there is either replaced as
// a whole or stays as it was; what is no regular file is written through and
// never replaced.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SUPPORT_ATOMICFILE_H
#define FSDP_SUPPORT_ATOMICFILE_H

#include "fsdp/Support/Signals.h"
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace fsdp {

/// Writes a file beside PATH; commit gives it the name PATH. Without a commit,
/// also after Ctrl-C, it is removed. Symbolic links are followed, an existing
/// file keeps its permissions, and other processes may write to PATH at the
/// same time: the last commit wins. Devices, pipes and descriptors of this
/// process (/dev/stdout) are written directly; the path "-" is standard output.
/// Throws fsdp::Error that names the path.
class AtomicFile {
public:
  /// A new file has the permissions `mode` without those that the umask takes.
  explicit AtomicFile(const std::string &path, unsigned mode = 0666);
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  /// For large files that nobody reads soon: what is written goes to the disk
  /// without a copy in the system's cache, which takes time from cores that
  /// compute and memory from files in use. Where the file system cannot, as in
  /// memory, nothing changes. Before the first write; the first flush or sync
  /// ends it.
  void bypassCache();
  /// Bytes that cannot be written are lost, so when this, flush or sync has
  /// thrown, all of them throw, and commit too.
  void write(std::string_view bytes);
  /// Hands what was written to the system: a full disk is noticed here.
  void flush();
  /// Waits until the disk has what was written.
  void sync();
  void commit();

private:
  [[noreturn]] void fail(const char *action) const;
  [[noreturn]] void lose();
  void requireAll() const;
  void openDescriptor(int descriptor);
  void openDirectly();
  void openPartial(unsigned mode);
  void collect(std::string_view bytes);
  void writeCollected();
  void endBypass();
  int closeFile();

  std::string path;    // as given
  std::string target;  // where its links lead
  std::string partial; // the name until the commit; empty if there is none
  std::optional<RemovedOnSignal> removal;
  std::FILE *file = nullptr;
  struct Free {
    void operator()(char *memory) const { std::free(memory); }
  };
  /// What goes past the cache next, `collected` bytes; null: nothing does.
  std::unique_ptr<char, Free> pieces;
  size_t collected = 0;
  int lost = 0; // errno of the first write that failed; 0: none did
};

void writeFileAtomically(const std::string &path, std::string_view bytes);

/// Removes what writers of `path` left that were killed before their commit.
void removePartialFiles(const std::string &path);

/// Makes a directory and its parents.
void makeDirectories(const std::string &path);

/// The same, and waits until the disk has the names of those that are new.
void makeDurableDirectories(const std::string &path);

/// Waits until the disk has the names in a directory.
void syncFolder(const std::string &path);

/// The same, and the files that have them.
void syncFolderAndFiles(const std::string &path);

/// Of what lies in a directory that others wrote, only regular files are read:
/// a pipe or a device may have no end, or wait for ever.
enum class FileKind { Any, Regular };

/// A descriptor of the file, to be closed; `what` says in messages what it is:
/// "the index". Throws fsdp::Error.
int openToRead(const std::string &path, const std::string &what, FileKind kind);

/// A whole file of at most so many bytes. Throws fsdp::Error.
std::string readWholeFile(const std::string &path, const std::string &what,
                          FileKind kind = FileKind::Any,
                          size_t most = SIZE_MAX);

} // namespace fsdp

#endif // FSDP_SUPPORT_ATOMICFILE_H
