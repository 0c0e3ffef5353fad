//===- Explain.cpp - What an exception means to a user --------------------===//
#include "fsdp/Support/Explain.h"
#include "fsdp/Support/Text.h"
#include <filesystem>
#include <new>
#include <system_error>

using namespace fsdp;

std::string fsdp::explain(const std::exception &error) {
  if (dynamic_cast<const std::bad_alloc *>(&error))
    return "out of memory: the system gives this process no more of it; raise "
           "its limit (ulimit -v, or that of the container or the job), or end "
           "other processes";
  using FileError = std::filesystem::filesystem_error;
  if (auto *file = dynamic_cast<const FileError *>(&error))
    return "cannot use '" + printableLine(file->path1().string()) +
           "': " + file->code().message() + "; name a path that can be reached";
  auto *system = dynamic_cast<const std::system_error *>(&error);
  // Of the standard library only threads end so.
  if (system && system->code() == std::errc::resource_unavailable_try_again)
    return "cannot start a thread, or there is no memory for its stack: " +
           system->code().message() +
           "; raise the limits of memory and of processes (ulimit -v, -u, or "
           "those of the container or the job)";
  return error.what();
}
