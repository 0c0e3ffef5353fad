//===- Environment.h - Which launcher started this process ------*- C++ -*-===//
#ifndef FSDP_RENDEZVOUS_ENVIRONMENT_H
#define FSDP_RENDEZVOUS_ENVIRONMENT_H

#include <optional>
#include <string>

namespace fsdp::rt {

/// What the environment says about this process's place in a job.
struct LaunchEnvironment {
  int rank, size;
  int localRank, localSize; // on this machine
  /// The variables that say so; null for a process that runs alone.
  const char *rankName = nullptr, *sizeName = nullptr;
};

/// Reads the variables of torchrun, PMI, Open MPI, MVAPICH2 and Slurm, in
/// this order (but Slurm's where PMI's are only copies of them); nothing if no
/// launcher started this process. Throws
/// fsdp::Error that names the variables if they contradict each other.
std::optional<LaunchEnvironment> detectLaunch();

/// The name of this machine.
std::string hostName();

/// Gives the rank its own cores, `threads` of them, if every rank of this
/// machine can have its own. Returns whether it did.
bool bindToOwnCores(const LaunchEnvironment &place, int threads);

/// The exit status of ranks that end for another's sake.
constexpr int kLostJobStatus = 3;

/// Set for ranks of a local job: the process that started it.
constexpr const char *kLauncherVariable = "FSDP_LAUNCHER";

/// What to type for a job that `place` speaks of, when MPI knows of `known`
/// processes.
std::string explainMissingMPI(const LaunchEnvironment &place, int known);

/// OpenMP reads its environment when it is loaded: sets what a rank with
/// `threads` compute threads needs, before the rank's program starts.
void setThreadEnvironment(int threads);

} // namespace fsdp::rt

#endif // FSDP_RENDEZVOUS_ENVIRONMENT_H
