//===- ProgressCounter.h - Which collective a channel is in -----*- C++ -*-===//
//
// A channel is a stream and a group of ranks. It has one counter of 64 bits:
// the host of a CPU or the stream of a GPU writes it before and after every
// collective. Whoever reads it knows the collective by it, without asking the
// rank, which may be stopped or dead.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_LIVENESS_PROGRESSCOUNTER_H
#define FSDP_RUNTIME_LIVENESS_PROGRESSCOUNTER_H

#include "fsdp/Runtime/Artifact.h"
#include <cstdint>
#include <string>

namespace fsdp::rt {

/// What a counter says. From its high bits it has the run (8), the program (8),
/// the number + 1 (23), the index (24) and whether the channel is inside (1). 0
/// stands for no collective so far.
struct ProgressCounter {
  uint8_t run;     // of programs, where they are issued; modulo 2^8
  uint8_t program; // in the artifact's table
  uint32_t number; // of the program's collectives from 0, whatever channel
  uint32_t index;  // in the artifact's table of collectives
  bool isInside;   // it has begun and not ended

  static constexpr uint32_t kMostNumbers = (1U << 23) - 1,
                            kMostIndices = 1U << 24, kMostPrograms = 1U << 8;
  static constexpr uint64_t kInside = 1;

  /// Of one with number < kMostNumbers and index < kMostIndices.
  constexpr uint64_t encode() const {
    return uint64_t(run) << 56 | uint64_t(program) << 48 |
           uint64_t(number + 1) << 25 | uint64_t(index) << 1 |
           (isInside ? kInside : 0);
  }
  /// Of one that is not 0.
  static constexpr ProgressCounter decode(uint64_t counter) {
    return {uint8_t(counter >> 56), uint8_t(counter >> 48),
            uint32_t(counter >> 25 & kMostNumbers) - 1,
            uint32_t(counter >> 1 & (kMostIndices - 1)),
            (counter & kInside) != 0};
  }
  /// After the collective, from that inside.
  static constexpr uint64_t after(uint64_t inside) { return inside & ~kInside; }
};

/// What of an artifact does not fit into a counter; empty: all does.
inline std::string checkProgressCounters(const fsdp_artifact &artifact) {
  if (uint32_t(artifact.programs) <= ProgressCounter::kMostPrograms &&
      uint32_t(artifact.collectives) <= ProgressCounter::kMostIndices)
    return {};
  return "the artifact has " + std::to_string(artifact.programs) +
         " programs and " + std::to_string(artifact.collectives) +
         " collectives; " + std::to_string(ProgressCounter::kMostPrograms) +
         " and " + std::to_string(ProgressCounter::kMostIndices) +
         " are the most that a heartbeat can name";
}

/// Counts collectives where they are issued. One thread issues them.
class ProgressCount {
public:
  /// The next collectives are those of a run of this program.
  void beginProgram(int program) {
    place = {uint8_t(place.run + 1), uint8_t(program), 0, 0, true};
  }
  /// The counter inside of the program's next collective, `index` in the
  /// artifact's table. After kMostNumbers it begins with 0 again.
  uint64_t next(int index) {
    place.index = uint32_t(index);
    uint64_t counter = place.encode();
    place.number = (place.number + 1) % ProgressCounter::kMostNumbers;
    return counter;
  }

private:
  ProgressCounter place{};
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LIVENESS_PROGRESSCOUNTER_H
