//===- AtomicFile.cpp - Files that are whole or absent --------------------===//
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/FileCalls.h"
#include "fsdp/Support/FileLock.h"
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace fsdp;
namespace fs = std::filesystem;

//===----------------------------------------------------------------------===//
// Where a path leads
//===----------------------------------------------------------------------===//

static fs::path folderOf(const fs::path &path) {
  fs::path folder = path.parent_path();
  return folder.empty() ? "." : folder;
}

/// The descriptor of this process that the path names, as /dev/stdout does at
/// the end of its links; or -1. Opened by its name, a descriptor's file would
/// be written from its beginning, over what the descriptor has written.
static int ownDescriptor(const fs::path &path) {
  std::string name = path.filename().string();
  if (name.empty() || name.size() > 9 ||
      name.find_first_not_of("0123456789") != std::string::npos)
    return -1;
  std::error_code ignored;
  fs::path own = fs::canonical("/proc/self/fd", ignored);
  if (own.empty() || fs::canonical(folderOf(path), ignored) != own)
    return -1;
  return std::atoi(name.c_str());
}

/// The path after all links, which need not exist; sets errno and returns
/// nothing if they go in a circle.
static std::string followLinks(fs::path path) {
  constexpr int kMostLinks = 40; // as the system's own limit
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code ignored;
    if (ownDescriptor(path) >= 0 || !fs::is_symlink(path, ignored))
      return path.string();
    // An absolute target replaces the folder.
    path = folderOf(path) / fs::read_symlink(path, ignored);
  }
  errno = ELOOP;
  return {};
}

/// What the names of files on the way to `target` begin with; all names fit
/// the system's limit of 255 bytes.
static std::string partialPrefix(const std::string &target) {
  constexpr size_t kLongest = 220;
  fs::path path(target);
  std::string name = path.filename().string();
  std::string prefix = name.substr(0, kLongest) + ".partial-";
  return path.has_parent_path() ? (path.parent_path() / prefix).string()
                                : prefix;
}

//===----------------------------------------------------------------------===//
// AtomicFile
//===----------------------------------------------------------------------===//

AtomicFile::AtomicFile(const std::string &path, unsigned mode) : path(path) {
  target = followLinks(path);
  if (target.empty() && !path.empty())
    fail("create");
  int own = path == "-" ? STDOUT_FILENO : ownDescriptor(target);
  struct stat status;
  if (own >= 0)
    openDescriptor(own);
  else if (stat(target.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    openDirectly();
  else
    openPartial(mode);
}

void AtomicFile::openDescriptor(int descriptor) {
  int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  file = copy < 0 ? nullptr : fdopen(copy, "wb");
  if (!file)
    fail("write");
}

void AtomicFile::openDirectly() {
  int descriptor = open(target.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  file = descriptor < 0 ? nullptr : fdopen(descriptor, "wb");
  if (!file)
    fail("write");
}

/// Gives a new file the owner and permissions of the one it will replace.
static bool takeOver(int descriptor, const struct stat &from) {
  struct stat now;
  if (fstat(descriptor, &now) != 0)
    return false;
  // Only root may give files away; everybody else becomes the owner.
  if ((now.st_uid != from.st_uid || now.st_gid != from.st_gid) &&
      fchown(descriptor, from.st_uid, from.st_gid) != 0 && errno != EPERM)
    return false;
  return fchmod(descriptor, from.st_mode & 0777) == 0;
}

void AtomicFile::openPartial(unsigned mode) {
  FileCall call("open", path);
  struct stat status;
  bool exists = stat(target.c_str(), &status) == 0;
  // The folder's permissions would allow to replace a write-protected file.
  if (exists && faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) != 0)
    fail("write");
  std::string name = partialPrefix(target) + std::to_string(getpid());
  partial = name;
  int descriptor = -1;
  // One process may write a file twice, and process numbers come again.
  for (int attempt = 1; attempt < 1000; ++attempt) {
    // Before the file is there: a signal may come as soon as it is.
    removal.emplace(partial.c_str());
    descriptor = open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                      exists ? 0600 : mode);
    if (descriptor >= 0 || errno != EEXIST)
      break;
    removal.reset();
    partial = name + "-" + std::to_string(attempt);
  }
  if (descriptor < 0)
    fail("create");
  // The lock says that the writer lives.
  tryLock(descriptor);
  bool taken = !exists || takeOver(descriptor, status);
  file = taken ? fdopen(descriptor, "wb") : nullptr;
  if (file)
    return;
  int error = errno;
  close(descriptor);
  std::remove(partial.c_str());
  errno = error;
  fail("create");
}

AtomicFile::~AtomicFile() {
  if (!file)
    return;
  closeFile();
  FileCall call("unlink", path);
  if (!partial.empty())
    std::remove(partial.c_str());
}

void AtomicFile::fail(const char *action) const {
  const char *why = std::strerror(errno);
  throw Error(std::string("cannot ") + action + " " +
              (path == "-" ? "standard output" : "'" + path + "'") + ": " +
              why);
}

/// A write has failed.
void AtomicFile::lose() {
  lost = errno;
  fail("write");
}

void AtomicFile::requireAll() const {
  errno = lost;
  if (lost != 0)
    fail("write");
}

void AtomicFile::write(std::string_view bytes) {
  requireAll();
  FileCall call("write", path);
  if (pieces)
    collect(bytes);
  else if (std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size())
    lose();
}

void AtomicFile::flush() {
  requireAll();
  FileCall call("write", path);
  endBypass();
  if (std::fflush(file) != 0)
    lose();
}

void AtomicFile::sync() {
  flush();
  FileCall call("fsync", path);
  // Pipes and terminals cannot be waited for.
  if (fsync(fileno(file)) != 0 && errno != EINVAL && errno != ENOTSUP)
    lose();
}

/// Returns errno, or 0.
int AtomicFile::closeFile() {
  FileCall call("close", path);
  std::FILE *closing = file;
  file = nullptr;
  return std::fclose(closing) != 0 ? errno : 0;
}

void AtomicFile::commit() {
  requireAll();
  endBypass();
  int error = closeFile();
  if (error == 0 && !partial.empty()) {
    FileCall call("rename", path);
    if (std::rename(partial.c_str(), target.c_str()) != 0)
      error = errno;
  }
  if (error == 0)
    return;
  if (!partial.empty())
    std::remove(partial.c_str());
  errno = error;
  fail("write");
}

//===----------------------------------------------------------------------===//
// Past the cache
//===----------------------------------------------------------------------===//

/// Of memory, places and sizes, as every disk accepts them.
static constexpr size_t kAlignment = 4096;
static constexpr size_t kPieceBytes = size_t{4} << 20;

/// False if it was so before or cannot be.
static bool setDirect(int descriptor, bool direct) {
  int flags = fcntl(descriptor, F_GETFL);
  return flags >= 0 && ((flags & O_DIRECT) != 0) != direct &&
         fcntl(descriptor, F_SETFL, flags ^ O_DIRECT) == 0;
}

void AtomicFile::bypassCache() {
  // What is no regular file of our own is written through.
  if (partial.empty() || !setDirect(fileno(file), true))
    return;
  pieces.reset(static_cast<char *>(aligned_alloc(kAlignment, kPieceBytes)));
  if (!pieces)
    setDirect(fileno(file), false);
}

void AtomicFile::collect(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t now = std::min(kPieceBytes - collected, bytes.size());
    std::memcpy(pieces.get() + collected, bytes.data(), now);
    collected += now;
    bytes.remove_prefix(now);
    if (collected == kPieceBytes)
      writeCollected();
  }
}

void AtomicFile::writeCollected() {
  const char *from = pieces.get();
  while (collected > 0) {
    ssize_t written = ::write(fileno(file), from, collected);
    if (written >= 0) {
      from += written;
      collected -= static_cast<size_t>(written);
    } else if (errno == EINVAL && setDirect(fileno(file), false)) {
      // Some file systems refuse only now, and all do after a part of a block.
    } else if (errno != EINTR) {
      lose();
    }
  }
}

/// The rest, which is no whole number of blocks, goes through the cache, and so
/// does what comes after it.
void AtomicFile::endBypass() {
  if (!pieces)
    return;
  setDirect(fileno(file), false);
  writeCollected();
  pieces.reset();
}

void fsdp::writeFileAtomically(const std::string &path,
                               std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

//===----------------------------------------------------------------------===//
// Folders and whole files
//===----------------------------------------------------------------------===//

/// Whether a writer still holds the file.
static bool isHeld(const fs::path &partial) {
  int descriptor = openLocked(partial.string(),
                              O_RDONLY | O_CLOEXEC | O_NOFOLLOW, LockWait::No);
  if (descriptor < 0)
    return errno != ENOENT;
  close(descriptor);
  return false;
}

void fsdp::removePartialFiles(const std::string &path) {
  std::string target = followLinks(path);
  if (target.empty()) // links in a circle lead to no folder
    return;
  std::string prefix = fs::path(partialPrefix(target)).filename().string();
  std::error_code ignored;
  for (const fs::directory_entry &entry :
       fs::directory_iterator(folderOf(target), ignored)) {
    std::string name = entry.path().filename().string();
    if (name.compare(0, prefix.size(), prefix) == 0 && !isHeld(entry.path()))
      fs::remove(entry.path(), ignored);
  }
}

void fsdp::makeDirectories(const std::string &path) {
  FileCall call("mkdir", path);
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    throw Error("cannot create the folder '" + path + "': " + error.message());
}

void fsdp::makeDurableDirectories(const std::string &path) {
  std::error_code ignored;       // makeDirectories says what is wrong
  std::vector<fs::path> parents; // of those that are not there
  fs::path place = fs::absolute(path, ignored).lexically_normal();
  while (!fs::exists(place, ignored) && place.has_relative_path()) {
    place = place.parent_path();
    parents.push_back(place);
  }
  makeDirectories(path);
  for (const fs::path &parent : parents)
    syncFolder(parent.string());
}

/// Opens with the flags and waits; `what` is for messages.
static void syncPath(const std::string &path, int flags, const char *what) {
  FileCall call("fsync", path);
  // Non-blocking, or a pipe would be waited for.
  int descriptor =
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
  int error = descriptor < 0 || fsync(descriptor) != 0 ? errno : 0;
  if (descriptor >= 0)
    close(descriptor);
  // Some file systems have nothing to wait for and say so.
  if (error != 0 && error != EINVAL && error != ENOTSUP)
    throw Error(std::string("cannot write ") + what + "'" + path +
                "': " + std::strerror(error));
}

void fsdp::syncFolder(const std::string &path) {
  syncPath(path, O_DIRECTORY, "the folder ");
}

void fsdp::syncFolderAndFiles(const std::string &path) {
  for (const fs::directory_entry &entry : fs::directory_iterator(path))
    syncPath(entry.path().string(), 0, "");
  syncFolder(path);
}

[[noreturn]] static void failToRead(const std::string &path,
                                    const std::string &what,
                                    const std::string &why) {
  throw Error("cannot read " + what + " '" + path + "': " + why);
}

int fsdp::openToRead(const std::string &path, const std::string &what,
                     FileKind kind) {
  FileCall call("open", path);
  bool isAny = kind == FileKind::Any;
  int descriptor =
      open(path.c_str(), O_RDONLY | O_CLOEXEC | (isAny ? 0 : O_NONBLOCK));
  if (descriptor < 0)
    failToRead(path, what, std::strerror(errno));
  struct stat status = {};
  // Reading says of a directory that it is one.
  if (isAny || fstat(descriptor, &status) != 0 || S_ISREG(status.st_mode) ||
      S_ISDIR(status.st_mode))
    return descriptor;
  close(descriptor);
  failToRead(path, what, "it is no regular file");
}

std::string fsdp::readWholeFile(const std::string &path,
                                const std::string &what, FileKind kind,
                                size_t most) {
  std::string text;
  int descriptor = openToRead(path, what, kind);
  FileCall call("read", path);
  ssize_t count = 1;
  // A byte more than a regular file has, so that its end is seen at once.
  struct stat status = {};
  fstat(descriptor, &status);
  size_t room = std::max<size_t>(
      std::min(static_cast<size_t>(status.st_size), most) + 1, 4096);
  size_t size = 0;
  for (; count > 0 && size <= most; size += static_cast<size_t>(count)) {
    text.resize(std::max(2 * size, room)); // so at most twice `most`
    do
      count = read(descriptor, text.data() + size, text.size() - size);
    while (count < 0 && errno == EINTR);
    if (count == 0)
      text.resize(size);
  }
  int error = errno;
  close(descriptor);
  if (count < 0)
    failToRead(path, what, std::strerror(error));
  if (size > most)
    failToRead(path, what,
               ("it has more than " + std::to_string(most) + " bytes").c_str());
  return text;
}
