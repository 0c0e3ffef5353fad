//===- JobResources.cpp - What a job needs of its machine -----------------===//
#include "JobResources.h"
#include "fsdp/Support/Error.h"
#include <filesystem>
#include <iterator>
#include <sys/resource.h>
#include <system_error>

using namespace fsdp;
using namespace fsdp::rt;

uint64_t rt::countOpenFiles() {
  std::error_code ignored;
  std::filesystem::directory_iterator files("/proc/self/fd", ignored);
  return uint64_t(std::distance(begin(files), end(files)));
}

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
