//===- MPIPulse.h - Beats as messages ---------------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_COLLECTIVES_MPIPULSE_H
#define FSDP_RUNTIME_COLLECTIVES_MPIPULSE_H

#include "runtime/liveness/Pulse.h"

namespace fsdp::rt {

/// Through messages, which bring the words too. Collective over the job.
std::unique_ptr<Pulse> createMPIPulse(const World &world,
                                      const LastCollectives &progress);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COLLECTIVES_MPIPULSE_H
