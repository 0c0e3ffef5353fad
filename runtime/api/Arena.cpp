//===- Arena.cpp - The one allocation of a rank ---------------------------===//
#include "Arena.h"
#include "../collectives/Job.h"
#include "Trace.h"
#include "fsdp/Runtime/Variables.h"
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

using namespace fsdp::rt;

Arena::~Arena() {
  for (std::byte *p : peers)
    if (p && p != own)
      munmap(p, mapped);
  if (own)
    munmap(own, mapped);
  if (fd >= 0)
    close(fd);
}

/// What is wrong if the arenas of this machine's ranks are larger than its
/// memory: the kernel would grant them and end a rank when it touches them.
static std::string exceedsMachine(uint64_t mapped) {
  std::vector<char> here = job::ranksOfThisNode();
  struct sysinfo info;
  if (sysinfo(&info) != 0)
    return {};
  double memory =
      (double(info.totalram) + double(info.totalswap)) * double(info.mem_unit);
  auto ranks = std::count(here.begin(), here.end(), 1);
  if (double(mapped) * double(ranks) <= memory)
    return {};
  return "the arenas of this machine's ranks, " + std::to_string(ranks) +
         " x " + std::to_string(mapped) +
         " bytes, are more than its memory of " +
         std::to_string(uint64_t(memory)) + " bytes";
}

std::string Arena::create(uint64_t size, const World &world) {
  bytes = size;
  mapped = (size + 4095) / 4096 * 4096 + kControlBytes;
  std::string problem = exceedsMachine(mapped);
  // Sharing memory takes all ranks.
  if (!job::everyone(problem.empty()))
    return problem.empty() ? "another rank has too little memory" : problem;
  if (world.size > 1 && wantsSharedMemory() && createShared(world))
    return {};
  void *p = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    return "cannot allocate the arena of " + std::to_string(size) +
           " bytes: " + std::strerror(errno);
  own = static_cast<std::byte *>(p);
  madvise(own, mapped, MADV_HUGEPAGE);
  // Touched now, so that memory runs out here and not in the middle of a step.
  std::memset(own, 0, mapped);
  return {};
}

namespace {
/// How a rank on the same node finds the file behind an arena.
struct Handle {
  int64_t pid, fd, nonce;
};
} // namespace

/// Every rank of the node must succeed, or none shares: the transport of a
/// channel has to be the same on both of its sides.
bool Arena::createShared(const World &world) {
  bool created = false;
  fd = memfd_create("fsdp-arena", MFD_CLOEXEC);
  if (fd >= 0 && ftruncate(fd, off_t(mapped)) == 0) {
    void *p = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p != MAP_FAILED) {
      own = static_cast<std::byte *>(p);
      created = true;
    }
  }
  if (job::everyone(created) && job::everyone(mapPeers(world))) {
    std::memset(own, 0, mapped);
    // Nobody may use a control word before it is zero.
    barrier();
    return true;
  }
  for (std::byte *p : peers)
    if (p && p != own)
      munmap(p, mapped);
  peers.clear();
  if (own)
    munmap(own, mapped);
  own = nullptr;
  if (fd >= 0)
    close(fd);
  fd = -1;
  return false;
}

bool Arena::mapPeers(const World &world) {
  int64_t nonce = int64_t(getpid()) << 32 ^ int64_t(now());
  std::memcpy(own, &nonce, sizeof nonce);
  Handle mine{getpid(), fd, nonce};
  std::vector<Handle> all(size_t(world.size));
  job::allGather(&mine, sizeof mine, all.data());
  std::vector<char> sameNode = job::ranksOfThisNode();
  peers.assign(size_t(world.size), nullptr);
  peers[size_t(world.rank)] = own;
  bool good = true;
  for (int r = 0; r < world.size && good; ++r) {
    if (r == world.rank || !sameNode[size_t(r)])
      continue;
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%lld/fd/%lld",
                  static_cast<long long>(all[size_t(r)].pid),
                  static_cast<long long>(all[size_t(r)].fd));
    int file = open(path, O_RDWR | O_CLOEXEC);
    void *p = file < 0 ? MAP_FAILED
                       : mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                              MAP_SHARED, file, 0);
    if (file >= 0)
      close(file);
    good = p != MAP_FAILED;
    if (good) {
      peers[size_t(r)] = static_cast<std::byte *>(p);
      // Another process may have this pid in another namespace.
      good = std::memcmp(p, &all[size_t(r)].nonce, sizeof(int64_t)) == 0;
    }
  }
  // No rank clears its nonce before all have looked at it.
  barrier();
  return good;
}
