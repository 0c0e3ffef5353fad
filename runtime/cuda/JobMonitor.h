//===- JobMonitor.h - Whether the ranks of a job live ------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CUDA_JOBMONITOR_H
#define FSDP_RUNTIME_CUDA_JOBMONITOR_H

#include "fsdp/Core/Context.h"
#include "runtime/liveness/Health.h"

namespace fsdp::rt {

/// Watches over the other ranks; null for a rank that is alone.
Health *jobHealth();

/// Collective. Throws fsdp::Error on all ranks if `problem` is not empty on
/// some: that of the first of these.
void requireOnAll(const World &world, const std::string &problem);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_JOBMONITOR_H
