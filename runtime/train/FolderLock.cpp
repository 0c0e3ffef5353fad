//===- FolderLock.cpp - One job at a time writes to a folder --------------===//
#include "FolderLock.h"
#include "RunHeader.h"
#include "fsdp/Rendezvous/Environment.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/FileLock.h"
#include "fsdp/Support/Json.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Support/Text.h"
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace fsdp;
using nlohmann::json;

namespace {
/// What the holder wrote about itself; anybody may have changed the file since.
struct Holder {
  int process = 0; // 0: nothing that can be read
  std::string host, since, artifact;
};
} // namespace

static Holder readHolder(const std::string &file) {
  constexpr size_t most = 1 << 16;
  std::ifstream text(file);
  std::string start(most, '\0');
  text.read(start.data(), most);
  start.resize(static_cast<size_t>(text.gcount()));
  json all = parseJsonOrNull(start);
  if (!all.is_object() || !all["process"].is_number_integer())
    return {};
  auto process = all["process"].get<int64_t>();
  if (process < 1 || process > std::numeric_limits<int>::max())
    return {};
  auto line = [&](const char *key) {
    return all[key].is_string() ? printableLine(all[key].get<std::string>())
                                : "?";
  };
  return {static_cast<int>(process), line("host"), line("since"),
          line("artifact")};
}

static bool isOurLauncher(const Holder &holder) {
  const char *launcher = std::getenv(rt::kLauncherVariable);
  return launcher && holder.host == rt::hostName() &&
         std::to_string(holder.process) == launcher;
}

static Error inUse(const std::string &folder, const Holder &holder,
                   const std::string &option) {
  std::string who = "another job";
  if (holder.process != 0)
    who = "process " + std::to_string(holder.process) + " on " + holder.host +
          " since " + holder.since + ", with the artifact '" + holder.artifact +
          "'";
  return Error("the folder '" + folder + "' is in use by " + who +
               "; wait for it, or choose another " + option);
}

/// Whether the process that took the folder was one of this machine and is
/// gone.
static bool hasEnded(const Holder &holder) {
  return holder.process > 0 && holder.host == rt::hostName() &&
         kill(holder.process, 0) != 0 && errno == ESRCH;
}

/// Behind a link, or under this name by chance, may be a file of somebody else.
[[noreturn]] static void refuseForeign(const std::string &file,
                                       const std::string &what,
                                       const std::string &option) {
  throw Error("'" + file + "' is " + what +
              " and would be overwritten; move it away, or choose another " +
              option);
}

void FolderLock::failToLock(const std::string &option) const {
  int error = errno;
  std::error_code ignored;
  if (std::filesystem::is_symlink(
          std::filesystem::symlink_status(file, ignored)))
    refuseForeign(file, "a symbolic link to another file", option);
  errno = error;
  throw Error("cannot lock '" + file + "': " + std::strerror(errno) +
              "; choose a " + option +
              " where files can be created and locked");
}

/// Holds the file together with the other processes of the job.
void FolderLock::share(const std::string &folder, const std::string &option) {
  if (tryShare(descriptor))
    return;
  if (errno == EWOULDBLOCK)
    throw inUse(folder, readHolder(file), option);
  failToLock(option);
}

/// To open a folder makes network file systems look again.
static void lookAgain(const std::filesystem::path &folder) {
  std::error_code ignored;
  std::filesystem::directory_iterator(folder.parent_path(), ignored);
  std::filesystem::directory_iterator(folder, ignored);
}

void FolderLock::join(const std::string &folder, const std::string &option) {
  using namespace std::chrono;
  // What the first rank has just made another machine may see later.
  auto patience = steady_clock::now() + seconds(60);
  while ((descriptor = open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW)) <
         0) {
    bool isAbsent = errno == ENOENT || errno == ESTALE;
    if (!isAbsent || steady_clock::now() > patience)
      failToLock(option);
    lookAgain(folder);
    std::this_thread::sleep_for(milliseconds(100));
  }
  share(folder, option);
}

/// A job that was killed leaves its file behind, an empty one if it had no time
/// or room to write.
void FolderLock::requireOwnFile(const std::string &option) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0)
    failToLock(option);
  bool isRegular = S_ISREG(status.st_mode);
  if (isRegular && (status.st_size == 0 || readHolder(file).process != 0))
    return;
  close(descriptor);
  descriptor = -1;
  refuseForeign(file, isRegular ? "not the lock of a job" : "no regular file",
                option);
}

void FolderLock::describeSelf(const std::string &artifact) {
  json holder = {{"process", getpid()},
                 {"host", rt::hostName()},
                 {"since", timestamp()},
                 {"artifact", artifact}};
  std::string text =
      holder.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  if (ftruncate(descriptor, 0) != 0 ||
      pwrite(descriptor, text.data(), text.size(), 0) < 0)
    throw Error("cannot write '" + file + "': " + std::strerror(errno));
}

FolderLock::FolderLock(const std::string &folder, const std::string &artifact,
                       const std::string &option)
    : file(folder + "/" + kFile) {
  using namespace std::chrono;
  // Ranks end with their launcher, unless a file system holds them; what a
  // machine held that is lost, NFS gives back after 90.
  auto patience = steady_clock::now() + seconds(100);
  auto silence = steady_clock::now() + seconds(3);
  // Ranks inherit the descriptor.
  while ((descriptor = openLocked(file, O_RDWR | O_CREAT | O_NOFOLLOW,
                                  LockWait::No)) < 0) {
    if (errno != EWOULDBLOCK)
      failToLock(option);
    Holder holder = readHolder(file);
    if (isOurLauncher(holder)) {
      join(folder, option);
      return;
    }
    if (!hasEnded(holder) || steady_clock::now() > patience)
      throw inUse(folder, holder, option);
    if (steady_clock::now() > silence) {
      printMessage("fsdp-run",
                   format("'%s' is still held by ranks of a job whose process "
                          "%d has ended; waiting for them",
                          file.c_str(), holder.process));
      silence = patience + seconds(1); // once
    }
    std::this_thread::sleep_for(milliseconds(50));
  }
  requireOwnFile(option);
  removal.emplace(file.c_str());
  describeSelf(artifact);
  share(folder, option);
}

std::unique_ptr<FolderLock> FolderLock::joinFirst(const std::string &joined) {
  std::unique_ptr<FolderLock> lock(new FolderLock(joined + "/" + kFile));
  lock->join(joined, "--checkpoint.folder that all ranks see");
  return lock;
}

void FolderLock::release(double patienceSeconds) {
  if (descriptor < 0)
    return;
  bool hasTaken = removal.has_value();
  removal.reset();
  std::error_code ignored;
  // Under its name the others hold it until they have ended too, which ranks
  // that were just killed do in a moment.
  bool isAlone = hasTaken && tryLock(descriptor);
  constexpr double kLook = 0.02;
  for (double waited = 0; hasTaken && !isAlone && waited < patienceSeconds;
       waited += kLook) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kLook));
    isAlone = tryLock(descriptor);
  }
  if (isAlone)
    std::filesystem::remove(file, ignored);
  close(descriptor);
  descriptor = -1;
}
