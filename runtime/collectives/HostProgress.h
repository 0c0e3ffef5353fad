//===- HostProgress.h - Which collectives a CPU rank is in ------*- C++ -*-===//
#ifndef FSDP_RUNTIME_COLLECTIVES_HOSTPROGRESS_H
#define FSDP_RUNTIME_COLLECTIVES_HOSTPROGRESS_H

#include "runtime/liveness/LivenessMonitor.h"

namespace fsdp::rt {

/// The progress counters of a rank's channels, which its threads write.
class HostProgress final : public RankProbe {
public:
  /// `room` is for a counter per channel, zeroed, where others read them too;
  /// null: they are in memory of their own.
  HostProgress(ContextChannels channels, std::byte *room)
      : RankProbe(std::move(channels)), own(room ? 0 : this->channels.count),
        cells(room ? reinterpret_cast<Cell *>(room) : own.data()) {}

  // Where calls are issued.

  void beginProgram(int index) { count.beginProgram(index); }
  /// The counter of the program's next collective, `index` in the artifact's
  /// table.
  uint64_t next(int index) { return count.next(index); }

  // Where the collectives of a channel run.

  void enter(size_t channel, uint64_t counter) { store(channel, counter); }
  void leave(size_t channel, uint64_t counter) {
    store(channel, ProgressCounter::after(counter));
  }

  uint64_t readCounters(uint64_t *counters) const override {
    for (size_t i = 0; i < channels.count; ++i)
      counters[i] = cells[i].load(std::memory_order_relaxed);
    return 0; // no launch repeats a counter
  }

private:
  using Cell = std::atomic<uint64_t>;
  void store(size_t channel, uint64_t counter) {
    cells[channel].store(counter, std::memory_order_relaxed);
  }

  std::vector<Cell> own;
  Cell *cells;
  ProgressCount count;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COLLECTIVES_HOSTPROGRESS_H
