//===- FolderLock.cpp - One job at a time writes to a folder --------------===//
#include "FolderLock.h"
#include "RunHeader.h"
#include "fsdp/Runtime/Launch.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/FileLock.h"
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace fsdp;
using nlohmann::json;

/// What the holder wrote about itself. Empty if it has not yet.
static json readHolder(const std::string &file) {
  std::ifstream text(file);
  json holder = json::parse(text, nullptr, /*allow_exceptions=*/false);
  return holder.is_object() ? holder : json::object();
}

static bool isOurLauncher(const json &holder) {
  const char *launcher = std::getenv(rt::kLauncherVariable);
  return launcher && holder.value("host", "") == rt::hostName() &&
         std::to_string(holder.value("process", 0)) == launcher;
}

static Error inUse(const std::string &folder, const json &holder,
                   const std::string &option) {
  std::string who = "another job";
  if (holder.contains("process"))
    who = "process " + std::to_string(holder.value("process", 0)) + " on " +
          holder.value("host", "") + " since " + holder.value("since", "") +
          ", with the artifact '" + holder.value("artifact", "") + "'";
  return Error("the folder '" + folder + "' is in use by " + who +
               "; wait for it, or choose another " + option);
}

FolderLock::FolderLock(const std::string &folder, const std::string &artifact,
                       const std::string &option)
    : file(folder + "/" + kFile) {
  // mpirun inherits it: the folder is in use until the ranks have ended, even
  // if their launcher is killed.
  descriptor = openLocked(file, O_RDWR | O_CREAT, LockWait::No);
  if (descriptor < 0 && errno == EWOULDBLOCK) {
    json holder = readHolder(file);
    if (isOurLauncher(holder))
      return;
    throw inUse(folder, holder, option);
  }
  if (descriptor < 0)
    throw Error("cannot lock '" + file + "': " + std::strerror(errno) +
                "; choose a " + option + " where files can be made and locked");
  removal.emplace(file.c_str());
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
  removal.reset();
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  close(descriptor);
  descriptor = -1;
}
