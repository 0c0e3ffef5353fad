//===- Paths.cpp - Where a path leads -------------------------------------===//
#include "fsdp/Support/Paths.h"
#include "fsdp/Support/Error.h"
#include <filesystem>

using namespace fsdp;

std::string fsdp::absolutePath(const std::string &path) {
  if (path.empty())
    return path;
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error)
    throw Error("cannot tell where '" + path +
                "' is, because the current directory cannot be read: " +
                error.message() + "; change to a directory that exists");
  return absolute.string();
}
