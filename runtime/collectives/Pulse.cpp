//===- Pulse.cpp - How beats travel between ranks -------------------------===//
#include "Pulse.h"
#include <atomic>
#include <mpi.h>

using namespace fsdp::rt;

/// Stands for "no beat follows".
static constexpr uint64_t kEnded = ~uint64_t(0);

static int nextOf(const World &world) { return (world.rank + 1) % world.size; }

static int previousOf(const World &world) {
  return (world.rank + world.size - 1) % world.size;
}

namespace {

class SharedPulse final : public Pulse {
public:
  SharedPulse(std::byte *mine, const std::byte *theirs)
      : mine(*reinterpret_cast<std::atomic<uint64_t> *>(mine)),
        theirs(*reinterpret_cast<const std::atomic<uint64_t> *>(theirs)) {}

  void beat() override { mine.fetch_add(1, std::memory_order_relaxed); }
  bool heard() override {
    uint64_t now = theirs.load(std::memory_order_relaxed);
    bool isNew = now != seen || now == kEnded;
    seen = now;
    return isNew;
  }
  void end() override { mine.store(kEnded); }

private:
  std::atomic<uint64_t> &mine;
  const std::atomic<uint64_t> &theirs;
  uint64_t seen = 0;
};

class MPIPulse final : public Pulse {
public:
  explicit MPIPulse(const World &world)
      : next(nextOf(world)), previous(previousOf(world)) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    listen();
  }
  ~MPIPulse() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized)
      MPI_Comm_free(&comm);
  }

  void beat() override {
    int isSent = 0;
    MPI_Test(&sending, &isSent, MPI_STATUS_IGNORE);
    // A stopped rank takes no messages: they must not pile up.
    if (!isSent)
      return;
    ++sent;
    MPI_Isend(&sent, 1, MPI_UINT64_T, next, 0, comm, &sending);
  }
  bool heard() override {
    bool any = hasEnded;
    for (int isHere = 1; isHere && !hasEnded;) {
      MPI_Test(&receiving, &isHere, MPI_STATUS_IGNORE);
      if (isHere)
        take();
      any |= isHere;
    }
    return any;
  }
  void end() override {
    MPI_Wait(&sending, MPI_STATUS_IGNORE);
    sent = kEnded;
    MPI_Isend(&sent, 1, MPI_UINT64_T, next, 0, comm, &sending);
    // Every message is taken before the communicator goes.
    while (!hasEnded) {
      MPI_Wait(&receiving, MPI_STATUS_IGNORE);
      take();
    }
    MPI_Wait(&sending, MPI_STATUS_IGNORE);
  }

private:
  void listen() {
    MPI_Irecv(&received, 1, MPI_UINT64_T, previous, 0, comm, &receiving);
  }

  /// A message is here: waits for the next, unless it was the last.
  void take() {
    hasEnded = received == kEnded;
    if (!hasEnded)
      listen();
  }

  int next, previous;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request sending = MPI_REQUEST_NULL, receiving = MPI_REQUEST_NULL;
  uint64_t sent = 0, received = 0;
  bool hasEnded = false;
};

} // namespace

std::unique_ptr<Pulse> fsdp::rt::createSharedPulse(const Arena &arena,
                                                   const World &world) {
  return std::make_unique<SharedPulse>(
      arena.control(world.rank) + Arena::kPulseAt,
      arena.control(previousOf(world)) + Arena::kPulseAt);
}

std::unique_ptr<Pulse> fsdp::rt::createMPIPulse(const World &world) {
  return std::make_unique<MPIPulse>(world);
}
