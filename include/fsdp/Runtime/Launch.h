//===- Launch.h - Starting and finding the ranks of a job -------*- C++ -*-===//
#ifndef FSDP_RUNTIME_LAUNCH_H
#define FSDP_RUNTIME_LAUNCH_H

#include "fsdp/Runtime/Target.h"
#include <optional>
#include <string>
#include <vector>

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

/// How a job ended: its exit status and, if that is not 0, why. There is
/// nothing to say where the reader of its output has gone.
struct JobEnd {
  int status;
  std::string message;
};

/// The exit status of ranks that end for another's sake.
constexpr int kLostJobStatus = 3;

constexpr int kMaxLocalRanks = 4096;

/// Ranks to start on this machine.
struct LocalJob {
  Target target;
  int ranks;
  /// Compute threads of each.
  int threads;
  /// The program and its arguments.
  std::vector<std::string> command;
  /// Ranks that save before they end at a signal have so many seconds for it;
  /// 0: they do not.
  double graceSeconds = 0;
};

/// Starts the ranks as children of this process and waits for them; none
/// outlives it. Ranks on CPUs share memory, those on GPUs meet as torchrun's
/// do. Throws fsdp::Error if the machine lacks what they need.
JobEnd runLocalRanks(const LocalJob &job);

/// Set for ranks of a local job: the process that started it.
constexpr const char *kLauncherVariable = "FSDP_LAUNCHER";

/// What to type for a job that `place` speaks of, when MPI knows of `known`
/// processes.
std::string explainMissingMPI(const LaunchEnvironment &place, int known);

/// OpenMP reads its environment when it is loaded: sets what a rank with
/// `threads` compute threads needs, before the rank's program starts.
void setThreadEnvironment(int threads);

/// The program of a rank, beside this one: fsdp-rank-cpu or fsdp-rank-cuda.
/// Throws fsdp::Error if this build has none for `target`.
std::string rankProgram(Target target);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCH_H
