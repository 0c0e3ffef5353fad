//===- RankWatch.h - The processes of a running job -------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_LAUNCH_RANKWATCH_H
#define FSDP_RUNTIME_LAUNCH_RANKWATCH_H

#include <cstdint>
#include <map>
#include <string>

namespace fsdp::rt {

/// Watches mpirun and its children, the ranks.
class RankWatch {
public:
  /// A process that is stopped for `limitSeconds` is too much; 0: never.
  RankWatch(int64_t mpirun, double limitSeconds);

  /// Seconds between two looks.
  double period() const { return seconds; }
  /// Looks once. Returns what is wrong if a process has been stopped in all
  /// looks for the limit: looks are counted, not time, so that a job that was
  /// suspended together with its launcher goes on.
  std::string look();
  /// Ends all ranks that were ever seen.
  void killRanks() const;

private:
  struct Process {
    uint64_t startTime = 0;
    int64_t stoppedLooks = 0;
  };
  std::string lookAt(int64_t pid, const std::string &name, Process &process);

  int64_t mpirun;
  double limit, seconds;
  Process launcher;
  std::map<int64_t, Process> ranks; // by number of process
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCH_RANKWATCH_H
