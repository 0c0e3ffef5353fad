//===- Board.cpp - Memory where the ranks of a local job meet -------------===//
#include "Board.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

using namespace fsdp;
using namespace fsdp::rt;

/// Bytes that a rank has on the board, and that it shows in one round.
static constexpr int64_t kPlaceBytes = 64 << 10;
static constexpr int64_t kShown = (kPlaceBytes - sizeof(Gate)) / 2;

/// What a rank has on the board. What it shows in one round stays until the
/// round after the next: by then all others have come to the next one, so that
/// they have read it.
struct Board::Place {
  Gate gate;
  std::byte shown[2][kShown];
};

static size_t bytesFor(int ranks) {
  return static_cast<size_t>(ranks) * kPlaceBytes;
}

int Board::create(int ranks) {
  static_assert(sizeof(Place) == kPlaceBytes);
  size_t bytes = bytesFor(ranks);
  std::string count = std::to_string(bytes >> 10);
  rlimit limit;
  // The system would end this process.
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
    throw Error("a file may have " + std::to_string(limit.rlim_cur >> 10) +
                " KiB at most, but " + std::to_string(ranks) +
                " ranks share memory of " + count +
                " KiB, which counts as one; raise the limit (ulimit -f "
                "unlimited)");
  int descriptor = memfd_create("fsdp-board", MFD_CLOEXEC);
  if (descriptor >= 0 && ftruncate(descriptor, static_cast<off_t>(bytes)) == 0)
    return descriptor;
  int error = errno;
  if (descriptor >= 0)
    close(descriptor);
  throw Error("cannot create the memory that the ranks share, " + count +
              " KiB: " + std::strerror(error));
}

Board::Board(int descriptor, int rank, int ranks) : rank(rank), ranks(ranks) {
  struct stat status;
  bool fits = fstat(descriptor, &status) == 0 &&
              status.st_size == static_cast<off_t>(bytesFor(ranks));
  void *at = fits ? mmap(nullptr, bytesFor(ranks), PROT_READ | PROT_WRITE,
                         MAP_SHARED, descriptor, 0)
                  : MAP_FAILED;
  if (at == MAP_FAILED)
    throw Error(std::string("environment: ") + kBoardVariable + " = " +
                std::to_string(descriptor) + " is no memory of " +
                std::to_string(ranks) + " ranks; only fsdp-run sets it");
  close(descriptor);
  places = static_cast<Place *>(at);
}

Board::~Board() { munmap(places, bytesFor(ranks)); }

template <typename Take>
void Board::exchange(const std::byte *mine, size_t count, const Take &take) {
  size_t half = ++round % 2;
  if (count > 0)
    std::memcpy(places[rank].shown[half], mine, count);
  places[rank].gate.arrive(round);
  for (int r = 0; r < ranks; ++r) {
    if (r != rank)
      places[r].gate.await(round, [] {});
    take(r, places[r].shown[half]);
  }
}

void Board::barrier() {
  exchange(nullptr, 0, [](int, const std::byte *) {});
}

void Board::collect(const void *mine, int64_t bytes, void *all, bool takes) {
  auto *from = static_cast<const std::byte *>(mine);
  auto *to = static_cast<std::byte *>(all);
  for (int64_t done = 0; done < bytes; done += kShown) {
    auto now = static_cast<size_t>(std::min(kShown, bytes - done));
    exchange(from + done, now, [&](int r, const std::byte *shown) {
      if (takes)
        std::memcpy(to + r * bytes + done, shown, now);
    });
  }
}

void Board::allGather(const void *mine, int64_t bytes, void *all) {
  collect(mine, bytes, all, /*takes=*/true);
}

void Board::gather(const void *mine, int64_t bytes, void *all, int root) {
  collect(mine, bytes, all, rank == root);
}

void Board::broadcast(void *data, int64_t bytes, int root) {
  auto *at = static_cast<std::byte *>(data);
  for (int64_t done = 0; done < bytes; done += kShown) {
    auto now = static_cast<size_t>(std::min(kShown, bytes - done));
    exchange(at + done, rank == root ? now : 0,
             [&](int r, const std::byte *shown) {
               if (r == root && r != rank)
                 std::memcpy(at + done, shown, now);
             });
  }
}
