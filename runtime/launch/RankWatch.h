//===- RankWatch.h - The processes of a running job -------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_LAUNCH_RANKWATCH_H
#define FSDP_RUNTIME_LAUNCH_RANKWATCH_H

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace fsdp::rt {

/// Watches the ranks that a launcher has started.
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
  /// Sends a signal to the ranks that are not among `told`, which then has
  /// them.
  void tellRanks(int signal, std::set<int64_t> &told) const;

private:
  struct Process {
    std::string name;
    uint64_t startTime = 0;
    int64_t stoppedLooks = 0;
  };
  /// A process at one look.
  struct Seen {
    int64_t pid;
    const std::string &name;
    double stoppedFor; // seconds
    bool isThere;      // and has not ended
  };
  Seen lookAt(int64_t pid, Process &process) const;

  double limit, seconds;
  std::map<int64_t, Process> ranks; // by number of process
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCH_RANKWATCH_H
