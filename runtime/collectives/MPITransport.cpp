//===- MPITransport.cpp - Point-to-point messages, no copies --------------===//
#include "Transport.h"
#include "runtime/core/Timeline.h"
#include <algorithm>
#include <mpi.h>
#include <sched.h>
#include <time.h>

using namespace fsdp::rt;

namespace {

/// MPI counts are 32 bits; larger tensors go in pieces of this many bytes.
constexpr int64_t kMaxCount = int64_t(1) << 30;

class MPITransport final : public Transport {
public:
  MPITransport(MPI_Comm comm, int ranks, int transfers, double timeoutSeconds)
      : Transport(timeoutSeconds), comm(comm) {
    requests.reserve(size_t(2) * (ranks - 1) * std::max(transfers, 1));
  }
  ~MPITransport() override {
    // A program may leave the job before its last context dies.
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized)
      MPI_Comm_free(&comm);
  }

  void open() override { requests.clear(); }
  const std::byte *swap(int peer, const std::byte *send, int64_t sendBytes,
                        const std::byte *, std::byte *space,
                        int64_t bytes) override {
    // Messages of one pair of ranks do not overtake: no tags are needed.
    for (int64_t at = 0; at < bytes; at += kMaxCount)
      MPI_Irecv(space + at, int(std::min(kMaxCount, bytes - at)), MPI_BYTE,
                peer, 0, comm, &requests.emplace_back());
    for (int64_t at = 0; at < sendBytes; at += kMaxCount)
      MPI_Isend(send + at, int(std::min(kMaxCount, sendBytes - at)), MPI_BYTE,
                peer, 0, comm, &requests.emplace_back());
    return space;
  }
  void close() override;
  void done() override {}

private:
  MPI_Comm comm;
  std::vector<MPI_Request> requests;
};

} // namespace

/// Polls, because MPI moves bytes only inside its calls, but gives the core
/// away between polls: a compute thread shares it.
void MPITransport::close() {
  int64_t begin = now();
  for (int polls = 0;; ++polls) {
    int complete = 0;
    MPI_Testall(int(requests.size()), requests.data(), &complete,
                MPI_STATUSES_IGNORE);
    if (complete)
      return;
    if (polls < 20) {
      sched_yield();
      continue;
    }
    timespec pause{0, 50 * 1000};
    nanosleep(&pause, nullptr);
    checkTime(begin);
  }
}

std::unique_ptr<Transport>
fsdp::rt::createMPITransport(const std::vector<int> &ranks, int me,
                             int transfers, double timeoutSeconds) {
  // The lowest rank names the group; order within it is the group's.
  int color = *std::min_element(ranks.begin(), ranks.end());
  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, color, me, &comm);
  return std::make_unique<MPITransport>(comm, int(ranks.size()), transfers,
                                        timeoutSeconds);
}
