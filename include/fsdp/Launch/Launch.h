//===- Launch.h - Starting the ranks of a job -------------------*- C++ -*-===//
#ifndef FSDP_LAUNCH_LAUNCH_H
#define FSDP_LAUNCH_LAUNCH_H

#include "fsdp/Target/Target.h"
#include <string>
#include <vector>

namespace fsdp::rt {

/// How a job ended: its exit status and, if that is not 0, why. There is
/// nothing to say where the reader of its output has gone.
struct JobEnd {
  int status;
  std::string message;
};

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

/// The program of a rank, beside this one: fsdp-rank- and the target's name.
/// Throws fsdp::Error if this build has none for `target`.
std::string rankProgram(const Target &target);
/// The same of what measures a machine: fsdp-calibrate- and the target's name.
std::string calibrateProgram(const Target &target);

} // namespace fsdp::rt

#endif // FSDP_LAUNCH_LAUNCH_H
