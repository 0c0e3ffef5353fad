//===- JobMonitor.h - Whether the ranks of a job live -----------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CUDA_JOBMONITOR_H
#define FSDP_RUNTIME_CUDA_JOBMONITOR_H

#include "fsdp/Core/Context.h"
#include "runtime/liveness/LivenessMonitor.h"

namespace fsdp::rt {

/// Null for a rank that is alone.
LivenessMonitor *jobMonitor();

/// Collective. Throws fsdp::Error on all ranks if `problem` is not empty on
/// some: that of the first of these.
void requireOnAll(const World &world, const std::string &problem);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_JOBMONITOR_H
