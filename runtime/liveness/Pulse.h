//===- Pulse.h - How beats travel between ranks -----------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_LIVENESS_PULSE_H
#define FSDP_RUNTIME_LIVENESS_PULSE_H

#include "LastCollectives.h"
#include <chrono>
#include <memory>
#include <optional>

namespace fsdp::rt {

/// Beats of a rank go to the next one in a ring. One thread at a time uses it.
class Pulse {
public:
  virtual ~Pulse() = default;
  virtual void beat() = 0;
  /// Whether the rank before has beaten since the last call, or has ended.
  virtual bool heard() = 0;
  /// Tells the next rank that no beat will follow. Collective.
  virtual void end() = 0;
  /// Asks every rank but `silent` (-1: none) for its words, in a few seconds;
  /// of one that does not answer they are those of its last beat, or not known.
  /// Nothing if another rank has asked for the same end of the job, which it
  /// has then had some seconds for. The pulse is of no other use behind it.
  virtual std::optional<std::vector<ProgressWords>> ask(int silent) = 0;
};

// What every kind of pulse goes by.

/// Stands for "no beat follows".
inline constexpr uint64_t kEnded = ~uint64_t(0);

/// So long the rank that speaks may take to end the job.
inline constexpr std::chrono::seconds kSpeechTime{10};
/// Whoever asks, or waits for the one that does, beats as often.
inline constexpr std::chrono::milliseconds kBeatTime{250};

inline int nextOf(const World &world) { return (world.rank + 1) % world.size; }

inline int previousOf(const World &world) {
  return (world.rank + world.size - 1) % world.size;
}

/// Through the control pages of the arenas, which the ranks have mapped.
std::unique_ptr<Pulse> createSharedPulse(const Arena &arena, const World &world,
                                         const LastCollectives &progress);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LIVENESS_PULSE_H
