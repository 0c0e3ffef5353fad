//===- JobResources.h - What a job needs of its machine ---------*- C++ -*-===//
#ifndef FSDP_RUNTIME_RENDEZVOUS_JOBRESOURCES_H
#define FSDP_RUNTIME_RENDEZVOUS_JOBRESOURCES_H

#include <cstdint>
#include <string>

namespace fsdp::rt {

/// Of this process.
uint64_t countOpenFiles();

/// Raises the limit of open files to `needed`. `who` "needs" them, or "need".
/// Throws fsdp::Error that says what is short and what to do.
void allowOpenFiles(uint64_t needed, const std::string &who);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_RENDEZVOUS_JOBRESOURCES_H
