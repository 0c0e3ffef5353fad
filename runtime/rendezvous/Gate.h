//===- Gate.h - A count of arrivals that processes share --------*- C++ -*-===//
#ifndef FSDP_RUNTIME_RENDEZVOUS_GATE_H
#define FSDP_RUNTIME_RENDEZVOUS_GATE_H

#include <atomic>
#include <climits>
#include <cstdint>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace fsdp::rt {

/// One rank's arrivals, on a cache line of memory that several processes have
/// mapped; zeroed memory is one that nobody has come to. Waiting threads sleep
/// in the kernel: they share the cores with compute.
struct alignas(64) Gate {
  std::atomic<uint32_t> arrived;
  std::atomic<uint32_t> sleepers;

  /// The owner has come for the time `round`.
  void arrive(uint32_t round) {
    arrived.store(round);
    if (sleepers.load() != 0)
      futex(FUTEX_WAKE, INT_MAX, nullptr);
  }

  /// Returns once the owner has come for the time `round`; calls
  /// `everySecond` meanwhile.
  template <typename Function>
  void await(uint32_t round, const Function &everySecond) {
    auto here = [&] { return int32_t(arrived.load() - round) >= 0; };
    // A peer is often only a moment behind.
    for (int i = 0; i < 40; ++i) {
      if (here())
        return;
      __builtin_ia32_pause();
    }
    sleepers.fetch_add(1);
    for (;;) {
      uint32_t seen = arrived.load();
      if (int32_t(seen - round) >= 0)
        break;
      timespec second{1, 0};
      futex(FUTEX_WAIT, seen, &second);
      everySecond();
    }
    sleepers.fetch_sub(1);
  }

private:
  void futex(int operation, uint32_t value, const timespec *timeout) {
    syscall(SYS_futex, &arrived, operation, value, timeout, nullptr, 0);
  }
};
static_assert(sizeof(Gate) == 64);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_RENDEZVOUS_GATE_H
