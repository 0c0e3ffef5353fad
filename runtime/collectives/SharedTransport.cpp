//===- SharedTransport.cpp - Through mapped arenas of one machine ---------===//
//
// Every rank runs the same program, so a tensor has the same offset in every
// arena and a peer's copy can be read where it is. What is left is order: a
// counter per rank and channel, raised when the rank arrives at a barrier.
// Waiting threads sleep in the kernel: they share the cores with compute.
//
//===----------------------------------------------------------------------===//
#include "../api/Trace.h"
#include "Transport.h"
#include <atomic>
#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

using namespace fsdp::rt;

namespace {

/// One rank's arrivals in one channel, on a cache line of the control pages.
struct alignas(64) Gate {
  std::atomic<uint32_t> arrived;
  std::atomic<uint32_t> sleepers;
};
static_assert(sizeof(Gate) == 64);

long futex(std::atomic<uint32_t> *word, int operation, uint32_t value,
           const timespec *timeout) {
  return syscall(SYS_futex, word, operation, value, timeout, nullptr, 0);
}

class SharedTransport final : public Transport {
public:
  SharedTransport(const Arena &arena, const std::vector<int> &ranks, int me,
                  int channel, double timeoutSeconds)
      : Transport(timeoutSeconds), base(arena.base()), me(me) {
    for (int r : ranks) {
      peers.push_back(arena.peer(r));
      gates.push_back(reinterpret_cast<Gate *>(arena.control(r)) + channel);
    }
  }

  void open() override { synchronize(); }
  const std::byte *swap(int peer, const std::byte *, int64_t,
                        const std::byte *source, std::byte *,
                        int64_t) override {
    return peers[size_t(peer)] + (source - base);
  }
  void close() override {}
  void done() override { synchronize(); }

private:
  void synchronize();
  void await(Gate &gate, uint32_t target);

  const std::byte *base;
  int me;
  uint32_t round = 0;
  std::vector<const std::byte *> peers;
  std::vector<Gate *> gates;
};

} // namespace

void SharedTransport::synchronize() {
  Gate &mine = *gates[size_t(me)];
  mine.arrived.store(++round);
  if (mine.sleepers.load() != 0)
    futex(&mine.arrived, FUTEX_WAKE, INT_MAX, nullptr);
  for (size_t p = 0; p < gates.size(); ++p)
    if (int(p) != me)
      await(*gates[p], round);
}

void SharedTransport::await(Gate &gate, uint32_t target) {
  auto here = [&] { return int32_t(gate.arrived.load() - target) >= 0; };
  // A peer is often only a moment behind.
  for (int i = 0; i < 40; ++i) {
    if (here())
      return;
    __builtin_ia32_pause();
  }
  int64_t begin = now();
  gate.sleepers.fetch_add(1);
  for (;;) {
    uint32_t seen = gate.arrived.load();
    if (int32_t(seen - target) >= 0)
      break;
    timespec second{1, 0};
    futex(&gate.arrived, FUTEX_WAIT, seen, &second);
    checkTime(begin);
  }
  gate.sleepers.fetch_sub(1);
}

std::unique_ptr<Transport>
fsdp::rt::createSharedTransport(const Arena &arena,
                                const std::vector<int> &ranks, int me,
                                int channel, double timeoutSeconds) {
  if (uint64_t(channel) >= Arena::kMaxChannels)
    return nullptr;
  for (int r : ranks)
    if (!arena.peer(r))
      return nullptr;
  return std::make_unique<SharedTransport>(arena, ranks, me, channel,
                                           timeoutSeconds);
}
