//===- SharedHeartbeats.cpp - Heartbeats through shared memory ------------===//
#include "HeartbeatTransport.h"
#include "ProcessState.h"
#include "runtime/core/Arena.h"
#include <algorithm>
#include <atomic>
#include <cstring>
#include <poll.h>
#include <unistd.h>

using namespace fsdp::rt;

namespace {

/// Stands for "no heartbeat follows".
constexpr uint64_t kLeft = ~uint64_t(0);

/// What a rank has in its control pages; all zero at first.
struct SharedRow {
  std::atomic<int64_t> pid;
  std::atomic<uint64_t> heartbeats;
  /// What is wrong with the rank; longer texts are cut.
  std::atomic<uint32_t> problemBytes;
  char problem[768];
};
static_assert(sizeof(SharedRow) <= Arena::kControlBytes - Arena::kHeartbeatAt);

class SharedHeartbeats final : public HeartbeatTransport {
public:
  SharedHeartbeats(std::vector<std::byte *> pages, int rank, size_t channels)
      : pages(std::move(pages)), rank(rank), seen(this->pages.size()),
        counters(channels) {
    row(rank).pid = getpid();
  }

  void send(const ProgressTable &) override { ++row(rank).heartbeats; }
  std::optional<int> receive(ProgressTable &table, double now) override;
  void wait(int wake, Time end) override {
    pollfd file{wake, POLLIN, 0};
    poll(&file, 1, millisecondsUntil(end));
  }
  void tellProblem(const std::string &problem) override {
    size_t bytes = std::min(problem.size(), sizeof row(rank).problem);
    std::memcpy(row(rank).problem, problem.data(), bytes);
    row(rank).problemBytes = uint32_t(bytes);
  }
  /// Their launcher ends them.
  void tellEnd(int) override {}
  void leave() override { row(rank).heartbeats = kLeft; }
  bool mayGo(const ProgressTable &) const override { return true; }
  bool isLive() const override { return true; }

private:
  SharedRow &row(int r) const {
    return *reinterpret_cast<SharedRow *>(pages[size_t(r)] +
                                          Arena::kHeartbeatAt);
  }
  void read(int r, ProgressTable &table, double now);

  const std::vector<std::byte *> pages;
  const int rank;
  std::vector<uint64_t> seen;     // heartbeats, by rank
  std::vector<uint64_t> counters; // of the rank that is read
};

} // namespace

void SharedHeartbeats::read(int r, ProgressTable &table, double now) {
  RankRow &its = table.row(r);
  if (its.state == RankState::NotBegun) {
    its.pid = row(r).pid;
    if (its.pid == 0)
      return;
    its.state = RankState::Here;
    its.host = thisHost();
    its.heard = now;
  }
  uint64_t heartbeats = row(r).heartbeats;
  if (heartbeats == kLeft)
    its.state = RankState::Left;
  if (heartbeats != seen[size_t(r)])
    its.heard = now;
  seen[size_t(r)] = heartbeats;
  // Also those of a rank that is silent.
  auto *cells = reinterpret_cast<const std::atomic<uint64_t> *>(
      pages[size_t(r)] + Arena::kProgressAt);
  for (size_t i = 0; i < counters.size(); ++i)
    counters[i] = cells[i].load(std::memory_order_relaxed);
  table.take(r, /*launches=*/0, counters.data(), counters.size(), now);
  uint32_t bytes = row(r).problemBytes;
  if (bytes > 0 && bytes <= sizeof row(r).problem)
    table.stateProblem(r, {row(r).problem, bytes}, now);
}

std::optional<int> SharedHeartbeats::receive(ProgressTable &table, double now) {
  for (int r = 0; r < table.ranks(); ++r)
    if (r != rank)
      read(r, table, now);
  return std::nullopt;
}

std::unique_ptr<HeartbeatTransport>
fsdp::rt::makeSharedHeartbeats(std::vector<std::byte *> pages, int rank,
                               size_t channels) {
  return std::make_unique<SharedHeartbeats>(std::move(pages), rank, channels);
}
