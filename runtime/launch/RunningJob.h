//===- RunningJob.h - A job on this machine, until it ends ------*- C++ -*-===//
#ifndef FSDP_RUNTIME_LAUNCH_RUNNINGJOB_H
#define FSDP_RUNTIME_LAUNCH_RUNNINGJOB_H

#include "JobOutput.h"
#include "OutputRelay.h"
#include "RankWatch.h"
#include "fsdp/Launch/Launch.h"
#include "fsdp/Rendezvous/Environment.h"
#include <array>
#include <chrono>
#include <functional>
#include <set>
#include <sys/types.h>

namespace fsdp::rt {

/// Pipes must not take the place of a standard stream that is closed. Comes
/// before anything that opens files.
void openStandardStreams();

/// The ranks of a job from their start to their end: what they print is passed
/// on, signals are sent to them, and if one fails or stops, all are ended. One
/// at a time in a process.
class RunningJob {
public:
  /// `graceSeconds`: see LocalJob. When one has failed, the others are told to
  /// end, and `endSeconds` later those are killed that are still there. Throws
  /// fsdp::Error if there are no pipes.
  RunningJob(double graceSeconds, double endSeconds);
  ~RunningJob();
  RunningJob(const RunningJob &) = delete;
  RunningJob &operator=(const RunningJob &) = delete;

  /// Starts a process that calls `become`, which does not return, with pipes
  /// for its output and errors. Throws fsdp::Error; the processes so far are
  /// then ended.
  void start(const std::string &name, const std::function<void()> &become);
  /// Waits for all of them.
  JobEnd wait();

private:
  using Clock = std::chrono::steady_clock;
  struct Process {
    pid_t pid; // 0: it has ended
    std::string name;
  };

  int passOn(int milliseconds);
  void readErrors();
  void takeLines();
  bool lostReader() const;
  void reap();
  void takeStatus(const std::string &name, int status);
  JobEnd explain() const;
  void lookAfter();
  void letRanksSave();
  void send(int signal);
  void endSoon();

  /// Ends of pipes: the processes' errors and output.
  std::array<int, 2> errorPipe, printPipe;
  int errors; // the read end of the error pipe; -1: it was closed
  OutputRelay relay;
  /// The job is not to outlive the reader of its output.
  bool endsWithReader = false;
  RankWatch watch;
  JobOutput output;
  std::vector<Process> processes;
  size_t running = 0;
  std::string unfinished; // a line without its end
  std::string stopped;    // what is wrong with a process that was stopped
  std::string lost;       // which process a signal ended that was not ours
  int status = 0;         // of the first process that failed
  std::string first;      // which one
  std::set<int> sent;     // signals
  double grace;           // seconds; 0: a signal ends the job
  double endSeconds;      // of ranks that are told to end
  std::set<int64_t> told; // ranks that know of the signal
  /// A signal ends the job, and it is not to save; or it did not in time.
  bool endsAtOnce = false, isLate = false;
  std::optional<Clock::time_point> deadline; // of a job that was told to end
  bool isGrace = false; // the deadline is that of ranks that save
  Clock::time_point lastLook = Clock::now();
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCH_RUNNINGJOB_H
