//===- Pulse.h - How beats travel between ranks -----------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_COLLECTIVES_PULSE_H
#define FSDP_RUNTIME_COLLECTIVES_PULSE_H

#include "LastCollectives.h"
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

/// Through the control pages of the arenas, which the ranks have mapped.
std::unique_ptr<Pulse> createSharedPulse(const Arena &arena, const World &world,
                                         const LastCollectives &progress);
/// Through messages, which bring the words too. Collective over the job.
std::unique_ptr<Pulse> createMPIPulse(const World &world,
                                      const LastCollectives &progress);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COLLECTIVES_PULSE_H
