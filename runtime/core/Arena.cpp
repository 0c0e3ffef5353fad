//===- Arena.cpp - The one allocation of a rank ---------------------------===//
#include "Arena.h"
#include "Job.h"
#include "Timeline.h"
#include "fsdp/Core/Variables.h"
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/sysinfo.h>
#include <unistd.h>

using namespace fsdp::rt;

/// A segment of System V ends with the last process that has it.
static void unmap(std::byte *at, uint64_t bytes, bool isSegment) {
  if (isSegment)
    shmdt(at);
  else
    munmap(at, bytes);
}

Arena::~Arena() {
  for (std::byte *p : peers)
    if (p && p != own)
      unmap(p, mapped, segment >= 0);
  if (own)
    unmap(own, mapped, segment >= 0);
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
  std::string why;
  if (world.size > 1 && wantsSharedMemory() && createShared(world, why))
    return {};
  if (world.size > 1 && !job::usesMPI())
    return "the ranks of this machine cannot share arenas of " +
           std::to_string(mapped) + " bytes" + why +
           "; start them with 'mpirun -n " + std::to_string(world.size) +
           " fsdp-run …', whose ranks send each other messages";
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
  int64_t pid, fd, segment, nonce;
};
} // namespace

static std::byte *placeOf(void *at, const void *failed) {
  return at == failed ? nullptr : static_cast<std::byte *>(at);
}
static std::byte *mapFile(int file, uint64_t bytes) {
  return placeOf(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0),
      MAP_FAILED);
}

/// Where a file may not be so large: a limit on the size of files counts
/// memory that has a descriptor, but no segment of System V.
std::byte *Arena::makeSegment() {
  segment = shmget(IPC_PRIVATE, mapped, IPC_CREAT | 0600);
  if (segment < 0)
    return nullptr;
  std::byte *at =
      placeOf(shmat(segment, nullptr, 0), reinterpret_cast<void *>(-1));
  // It goes with the last that has it; peers find it by its number until then.
  shmctl(segment, IPC_RMID, nullptr);
  return at;
}

/// Every rank of the node must succeed, or none shares: the transport of a
/// channel has to be the same on both of its sides.
bool Arena::createShared(const World &world, std::string &why) {
  fd = memfd_create("fsdp-arena", MFD_CLOEXEC);
  if (fd >= 0 && ftruncate(fd, off_t(mapped)) == 0)
    own = mapFile(fd, mapped);
  if (!own)
    own = makeSegment();
  int error = own ? 0 : errno;
  auto mapsPeers = [&] {
    errno = 0;
    bool areMapped = mapPeers(world);
    error = areMapped ? 0 : errno;
    return areMapped;
  };
  if (job::everyone(own) && job::everyone(mapsPeers())) {
    std::memset(own, 0, mapped);
    // Nobody may use a control word before it is zero.
    barrier();
    return true;
  }
  for (std::byte *p : peers)
    if (p && p != own)
      unmap(p, mapped, segment >= 0);
  peers.clear();
  if (own)
    unmap(own, mapped, segment >= 0);
  own = nullptr;
  if (fd >= 0)
    close(fd);
  fd = segment = -1;
  if (error != 0)
    why = std::string(" (") + std::strerror(error) + ")";
  return false;
}

static std::byte *mapPeer(const Handle &handle, uint64_t bytes) {
  if (handle.segment >= 0)
    return placeOf(shmat(int(handle.segment), nullptr, 0),
                   reinterpret_cast<void *>(-1));
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%lld/fd/%lld",
                static_cast<long long>(handle.pid),
                static_cast<long long>(handle.fd));
  int file = open(path, O_RDWR | O_CLOEXEC);
  std::byte *at = file < 0 ? nullptr : mapFile(file, bytes);
  if (file >= 0)
    close(file);
  return at;
}

bool Arena::mapPeers(const World &world) {
  int64_t nonce = int64_t(getpid()) << 32 ^ int64_t(now());
  std::memcpy(own, &nonce, sizeof nonce);
  Handle mine{getpid(), fd, segment, nonce};
  std::vector<Handle> all(size_t(world.size));
  job::allGather(&mine, sizeof mine, all.data());
  std::vector<char> sameNode = job::ranksOfThisNode();
  peers.assign(size_t(world.size), nullptr);
  peers[size_t(world.rank)] = own;
  bool good = true;
  int error = 0;
  for (int r = 0; r < world.size && good; ++r) {
    if (r == world.rank || !sameNode[size_t(r)])
      continue;
    // All have the same: their limits are those of one launcher.
    bool isSame = (all[size_t(r)].segment < 0) == (segment < 0);
    std::byte *p = isSame ? mapPeer(all[size_t(r)], mapped) : nullptr;
    error = isSame && !p ? errno : 0;
    peers[size_t(r)] = p;
    // Another process may have this pid in another namespace.
    good = p && std::memcmp(p, &all[size_t(r)].nonce, sizeof(int64_t)) == 0;
  }
  // No rank clears its nonce before all have looked at it.
  barrier();
  errno = error;
  return good;
}
