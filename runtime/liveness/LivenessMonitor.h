//===- LivenessMonitor.h - Whether the ranks of a job live ------*- C++ -*-===//
//
// A collective cannot tell a rank that is dead or stopped from a slow one. So a
// thread of every rank sends heartbeats while its process is scheduled,
// whatever the program computes, keeps a table of all ranks, and ends the job
// if the failure detector says so. Both targets use it.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_LIVENESS_LIVENESSMONITOR_H
#define FSDP_RUNTIME_LIVENESS_LIVENESSMONITOR_H

#include "FailureReport.h"
#include "HeartbeatTransport.h"
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace fsdp::rt {

/// The channels of a context.
struct ContextChannels {
  const fsdp_artifact *artifact = nullptr; // by which collectives have names
  size_t count = 0;                        // 0: nobody counts their progress
  RanksOfChannel ranksOf;
  double limit = 0; // seconds of a collective; 0: for ever
};

/// What a context of a target adds to the own row. The monitor's thread calls
/// it, once per heartbeat.
class RankProbe {
public:
  explicit RankProbe(ContextChannels channels)
      : channels(std::move(channels)) {}
  virtual ~RankProbe() = default;

  const ContextChannels channels;

  /// Writes the counter of each channel; returns the launches so far.
  virtual uint64_t readCounters(uint64_t *counters) const = 0;
  /// What is wrong with this rank; empty: nothing.
  virtual std::string findProblem() { return {}; }
  /// The process is about to end. Returns soon, whatever hangs.
  virtual void abandon() {}
};

/// Ends the processes of all ranks with a message, of rank `about` (-1: of the
/// job), and does not return.
using EndJob = std::function<void(int about, const std::string &message)>;

class LivenessMonitor {
public:
  /// `probe` may be null, see watch(). Without `endJob` every rank ends by
  /// itself, with kLostJobStatus, and is told to by the others. With it the
  /// launcher ends those that are left, and has kSpeechSeconds to name a rank
  /// that is lost. Returns when all ranks that this one listens to have begun,
  /// so that what a heartbeat touches is resident.
  LivenessMonitor(int rank, int size, LivenessLimits limits,
                  std::unique_ptr<HeartbeatTransport> transport,
                  RankProbe *probe = nullptr, EndJob endJob = {});
  /// Leaves the job: the end of this process is no alarm any more. Waits until
  /// the others know, unless an exception is under way: it ends the job, and
  /// the others may wait in a collective.
  ~LivenessMonitor();
  LivenessMonitor(const LivenessMonitor &) = delete;
  LivenessMonitor &operator=(const LivenessMonitor &) = delete;

  /// `probe` is asked until another is; null: nobody is.
  void watch(RankProbe *probe);
  /// All ranks begin something that may take `limit` seconds, or end it.
  void beginStage(std::string what, double limit);
  void endStage();

  /// True once it is decided that this process ends.
  bool isEnding() const { return ending; }
  /// Does not return if the process is ending: the monitor's thread does that.
  void holdIfEnding() const;
  /// The caller will end the process and says why. Does not return if somebody
  /// else does already.
  void claimEnd();
  /// After claimEnd: the others end too, with the same status, and print
  /// nothing.
  void tellEnd(int status);
  /// Something is wrong with this rank. Ends the job. Any thread.
  [[noreturn]] void fail(const std::string &problem);

private:
  void loop();
  bool mayGo() const;
  ReportSource source() const;
  bool hasBegun() const;
  bool nameBackup();
  void advance();
  void act(const Failure &failure);
  [[noreturn]] void endFor(const Failure &failure);
  [[noreturn]] void endProcess(const std::string &message, int status);
  void wake() const;

  const int rank;
  const std::unique_ptr<HeartbeatTransport> transport;
  const EndJob endJob;
  std::mutex mutex; // of all below but the atomic
  std::condition_variable begun;
  LivenessLimits limits;
  ProgressTable table;
  RankProbe *probe;
  std::vector<uint64_t> counters; // of the own row
  int64_t heartbeats = 0;
  double now = 0; // of the next heartbeat
  bool isLeaving = false, isAbandoned = false;
  std::atomic<bool> ending{false};
  int wakeEvent = -1;
  std::thread thread;
};

/// While it lives, all ranks are in a stage.
class StageLimit {
public:
  /// `monitor` may be null: then there is no limit. Seconds.
  StageLimit(LivenessMonitor *monitor, std::string what, double limit)
      : monitor(monitor) {
    if (monitor)
      monitor->beginStage(std::move(what), limit);
  }
  ~StageLimit() {
    if (monitor)
      monitor->endStage();
  }
  StageLimit(const StageLimit &) = delete;
  StageLimit &operator=(const StageLimit &) = delete;

private:
  LivenessMonitor *monitor;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LIVENESS_LIVENESSMONITOR_H
