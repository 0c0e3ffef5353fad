//===- FolderLock.cpp - One job at a time writes to a folder --------------===//
#include "FolderLock.h"
#include "RunHeader.h"
#include "fsdp/Runtime/Launch.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsdp;
using nlohmann::json;

/// What the holder wrote about itself. Empty if it has not yet.
static json readHolder(int descriptor) {
  char text[4096];
  ssize_t length = pread(descriptor, text, sizeof text, 0);
  json holder = json::parse(text, text + std::max<ssize_t>(length, 0), nullptr,
                            /*allow_exceptions=*/false);
  return holder.is_object() ? holder : json::object();
}

static bool isOurLauncher(const json &holder) {
  const char *launcher = std::getenv(rt::kLauncherVariable);
  return launcher && holder.value("host", "") == rt::hostName() &&
         std::to_string(holder.value("process", 0)) == launcher;
}

static Error inUse(const std::string &folder, const json &holder) {
  std::string who = "another job";
  if (holder.contains("process"))
    who = "process " + std::to_string(holder.value("process", 0)) + " on " +
          holder.value("host", "") + " since " + holder.value("since", "") +
          ", with the artifact '" + holder.value("artifact", "") + "'";
  return Error("the folder '" + folder + "' is in use by " + who +
               "; wait for it, or choose another --job.dump_folder");
}

/// Whether the locked file is still the one of this name: a holder removes it
/// when it lets go.
static bool isNamed(int descriptor, const std::string &file) {
  struct stat locked, present;
  return fstat(descriptor, &locked) == 0 && stat(file.c_str(), &present) == 0 &&
         locked.st_ino == present.st_ino && locked.st_dev == present.st_dev;
}

FolderLock::FolderLock(const std::string &folder, const std::string &artifact)
    : file(folder + "/run.lock") {
  while (descriptor < 0) {
    // mpirun inherits it: the folder is in use until the ranks have ended,
    // even if their launcher is killed.
    int opened = open(file.c_str(), O_RDWR | O_CREAT, 0666);
    if (opened < 0)
      throw Error("cannot make '" + file + "': " + std::strerror(errno));
    if (flock(opened, LOCK_EX | LOCK_NB) != 0) {
      int error = errno;
      json holder = readHolder(opened);
      close(opened);
      if (error == EWOULDBLOCK && isOurLauncher(holder))
        return;
      if (error == EWOULDBLOCK)
        throw inUse(folder, holder);
      throw Error("cannot lock '" + file + "': " + std::strerror(error) +
                  "; choose a --job.dump_folder on a file system with locks");
    }
    if (isNamed(opened, file))
      descriptor = opened;
    else
      close(opened);
  }
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

void FolderLock::release() {
  if (descriptor < 0)
    return;
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  close(descriptor);
  descriptor = -1;
}
