//===- Pulse.h - How beats travel between ranks -----------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_COLLECTIVES_PULSE_H
#define FSDP_RUNTIME_COLLECTIVES_PULSE_H

#include "../api/Arena.h"
#include <memory>

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
};

/// Through the control pages of the arenas, which the ranks have mapped.
std::unique_ptr<Pulse> createSharedPulse(const Arena &arena,
                                         const World &world);
/// Through messages of 8 bytes. Collective over the job.
std::unique_ptr<Pulse> createMPIPulse(const World &world);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COLLECTIVES_PULSE_H
