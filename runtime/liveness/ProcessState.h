//===- ProcessState.h - Whether a process runs ------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_LIVENESS_PROCESSSTATE_H
#define FSDP_RUNTIME_LIVENESS_PROCESSSTATE_H

#include <cstdint>
#include <string>

namespace fsdp::rt {

/// A process of this machine. The start time tells it from a later process
/// with the same number.
struct ProcessState {
  char state = 0; // as in /proc/PID/stat: 'R', 'S', 'T' …; 0: there is none
  uint64_t startTime = 0;
};
ProcessState processState(int64_t pid);

/// True if a signal or a debugger has stopped the process.
bool isStopped(const ProcessState &process);

/// So much of a machine's name goes from rank to rank.
inline constexpr size_t kHostCharacters = 63;
/// This machine's name, cut to that.
std::string thisHost();
bool isThisHost(const std::string &host);

/// Why nothing is heard of a process of a rank, as far as this machine knows:
/// "it is stopped" and the like.
const char *whyIsSilent(int64_t pid, const std::string &host);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LIVENESS_PROCESSSTATE_H
