//===- Job.h - Helpers over all ranks, outside the step path ----*- C++ -*-===//
#ifndef FSDP_RUNTIME_CORE_JOB_H
#define FSDP_RUNTIME_CORE_JOB_H

#include "fsdp/Core/Context.h"

namespace fsdp::rt::job {

/// True if ranks can send messages; those of a local job share memory alone.
bool usesMPI();
/// True if `mine` is true on every rank.
bool everyone(bool mine);
/// `all` gets the bytes of each rank in order.
void allGather(const void *mine, int64_t bytes, void *all);
/// As abortWorld, with a message of rank `rank`; -1: of this one.
[[noreturn]] void abortFor(int rank, const std::string &message, int exitCode);
/// Entry r is true if rank r runs on this machine.
std::vector<char> ranksOfThisNode();

} // namespace fsdp::rt::job

#endif // FSDP_RUNTIME_CORE_JOB_H
