//===- JobResources.cpp - What a job needs of its machine -----------------===//
#include "JobResources.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <system_error>

using namespace fsdp;
using namespace fsdp::rt;

void rt::allowOpenFiles(uint64_t needed, const std::string &who) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
    return;
  if (limit.rlim_max < needed)
    throw Error(
        "only " + std::to_string(limit.rlim_max) +
        " files may be open at once, but " + who + " " +
        std::to_string(needed) + "; raise the limit (ulimit -n " +
        std::to_string(needed) +
        ", or in a container --ulimit nofile=" + std::to_string(needed) + ")");
  limit.rlim_cur = needed;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// Bytes that files in `folder` may still take.
static uint64_t freeBytes(const std::string &folder) {
  struct statvfs status;
  if (statvfs(folder.c_str(), &status) != 0)
    return 0;
  return uint64_t{status.f_bavail} * status.f_frsize;
}

static std::string kibibytes(uint64_t bytes) {
  return std::to_string((bytes + 1023) / 1024) + " KiB";
}

/// A folder in `base`, which must have room for `needed` bytes.
static std::unique_ptr<SessionFolder> makeFolder(const std::string &base,
                                                 uint64_t needed,
                                                 const std::string &what,
                                                 const std::string &remedy) {
  std::unique_ptr<SessionFolder> folder;
  try {
    folder = std::make_unique<SessionFolder>(base);
  } catch (const std::system_error &error) {
    throw Error("cannot make a folder for " + what + " in " + base + ": " +
                error.code().message() + "; " + remedy);
  }
  uint64_t present = freeBytes(base);
  if (present < needed)
    throw Error(base + " has " + kibibytes(present) + " free, but " +
                kibibytes(needed) + " are needed for " + what + "; " + remedy);
  return folder;
}

/// Bytes of the segment through which a rank sends messages.
static uint64_t messageBytes() {
  const char *size = std::getenv("OMPI_MCA_btl_vader_segment_size");
  uint64_t segment = size ? std::strtoull(size, nullptr, 10) : 4 << 20;
  // One page for a segment's end, and one for its table.
  return segment + 8192;
}

void rt::checkFileSize() {
  // The files of mpirun's session have 4 MiB; with less, it hangs.
  uint64_t needed = std::max<uint64_t>(messageBytes(), 4 << 20);
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= needed)
    return;
  throw Error("a file may have " + kibibytes(limit.rlim_cur) +
              " at most, but MPI needs files of " + kibibytes(needed) +
              "; raise the limit (ulimit -f unlimited)");
}

JobFolders rt::makeJobFolders(int ranks) {
  const char *temporary = std::getenv("TMPDIR");
  JobFolders folders;
  // With a few MiB less than this, mpirun 4.1 hangs.
  folders.session =
      makeFolder(temporary && *temporary ? temporary : "/tmp", 10 << 20,
                 "mpirun's session",
                 "set TMPDIR to a folder where files of 10 MiB can be made");
  if (!std::getenv(kMessageFolder))
    folders.messages = makeFolder(
        "/dev/shm", static_cast<uint64_t>(ranks) * messageBytes(),
        "the messages of " + std::to_string(ranks) + " ranks",
        "free some, mount it larger (in a container --shm-size=1g), or set " +
            std::string(kMessageFolder) + " to another folder");
  return folders;
}
