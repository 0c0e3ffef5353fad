//===- Launch.h - Starting and finding the ranks of a job -------*- C++ -*-===//
#ifndef FSDP_RUNTIME_LAUNCH_H
#define FSDP_RUNTIME_LAUNCH_H

#include <optional>
#include <string>
#include <vector>

namespace fsdp::rt {

/// What the environment says about this process's place in a job.
struct LaunchEnvironment {
  int rank, size;
  int localRank, localSize; // on this machine
};

/// Reads the variables of torchrun, PMI, Open MPI, MVAPICH2 and Slurm, in
/// this order; nothing if no launcher started this process. Throws
/// fsdp::Error that names the variables if they contradict each other.
std::optional<LaunchEnvironment> detectLaunch();

/// Gives the rank its own cores, `threads` of them, if every rank of this
/// machine can have its own. Returns whether it did.
bool bindToOwnCores(const LaunchEnvironment &place, int threads);

/// Starts this program's executable with `args` as `ranks` ranks on this
/// machine and waits for them. Returns the exit status of the job; if a rank
/// was lost, prints one message that names it.
int runLocalRanks(int ranks, int threads, const std::vector<std::string> &args);

/// OpenMP reads its environment when it is loaded: sets what a rank with
/// `threads` compute threads needs and starts the executable again if
/// something was missing.
void ensureThreadEnvironment(int threads, char **argv);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCH_H
