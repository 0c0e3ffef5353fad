//===- RankWatch.h - The processes of a running job -------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_LAUNCH_RANKWATCH_H
#define FSDP_RUNTIME_LAUNCH_RANKWATCH_H

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace fsdp::rt {

/// Watches the processes that a launcher has started: the ranks, or mpirun, and
/// then its children, the ranks.
class RankWatch {
public:
  /// A process that is stopped for `limitSeconds` is too much; 0: never.
  explicit RankWatch(double limitSeconds);

  /// Watches this process too.
  void add(int64_t pid, const std::string &name);

  /// Seconds between two looks.
  double period() const { return seconds; }
  /// Looks once. Returns what is wrong if a process has been stopped in all
  /// looks for the limit: looks are counted, not time, so that a job that was
  /// suspended together with its launcher goes on. Where another rank runs, it
  /// has a while to say so itself: it knows where the ranks are.
  std::string look();
  /// Ends all children of mpirun that were ever seen.
  void killRanks() const;
  /// Looks for ranks, and sends a signal to those that are not among `told`,
  /// which then has them.
  void tellRanks(int signal, std::set<int64_t> &told);
  /// A signal that waits for a process that blocks it, of those at which ranks
  /// save; 0: none does.
  int pendingSignal() const;

private:
  struct Process {
    uint64_t startTime = 0;
    int64_t stoppedLooks = 0;
  };
  /// A process at one look.
  struct Seen {
    int64_t pid;
    std::string name;
    double stoppedFor; // seconds
    bool isThere;      // and has not ended
  };
  Seen lookAt(int64_t pid, const std::string &name, Process &process) const;

  struct Started {
    std::string name;
    Process process;
  };

  double limit, seconds;
  // By number of process.
  std::map<int64_t, Started> started;
  std::map<int64_t, Process> ranks; // of mpirun
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCH_RANKWATCH_H
