//===- Health.h - Whether the ranks of a job live ---------------*- C++ -*-===//
//
// A collective cannot tell a rank that is dead or stopped from a slow one. So a
// thread of every rank beats over a connection to rank 0, whatever the program
// computes, and rank 0 beats back. When a rank is silent, ends without a word
// or says what is wrong with it, rank 0 prints one message and tells all ranks
// to end. Where rank 0 itself is lost, a rank that it has named says so.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_LIVENESS_HEALTH_H
#define FSDP_RUNTIME_LIVENESS_HEALTH_H

#include "fsdp/Rendezvous/Environment.h"
#include "runtime/rendezvous/Transfer.h"
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace fsdp::rt {

/// What all ranks have reported.
struct RankReports {
  std::vector<std::string> texts; // by rank
  /// Ranks that are lost or have not beaten lately: their reports are old.
  std::vector<int> silent;
};

/// What a rank does, for the thread that beats. Calls come from that thread,
/// one at a time.
class HealthSubject {
public:
  virtual ~HealthSubject() = default;
  /// What rank 0 is to know of this rank. Once a beat.
  virtual std::string report() = 0;
  /// What is wrong with this rank; empty: nothing. Once a beat.
  virtual std::string problem() = 0;
  /// On rank 0, by the last reports of all ranks: what is wrong with the job;
  /// empty: nothing. Once a beat.
  virtual std::string judge(const RankReports &reports) = 0;
  /// On rank 0: where ranks wait for others, to be put behind a message; may be
  /// empty.
  virtual std::string whereRanksWait(const RankReports &reports) = 0;
  /// The process is about to end. Returns soon, whatever hangs.
  virtual void abandon() = 0;
};

struct HealthLimits {
  /// Seconds of silence that end the job; 0: none do.
  double silence;
  /// Seconds between two beats.
  double period;
};
/// For a heartbeat of so many seconds, or none (0), and collectives that may
/// take so many.
HealthLimits healthLimits(double heartbeat, double timeout);

class Health {
public:
  /// `sockets` are those of Lines::health.
  Health(int rank, int size, const std::vector<int> &sockets,
         HealthLimits limits);
  /// Leaves the job: the end of this process is no alarm any more. Rank 0 waits
  /// for the others to leave.
  ~Health();
  Health(const Health &) = delete;
  Health &operator=(const Health &) = delete;

  double period() const { return limits.period; }

  /// `subject` is asked until another is; null: nobody is.
  void watch(HealthSubject *subject);

  /// True once it is decided that this process ends.
  bool isEnding() const { return ending; }
  /// Does not return if the process is ending, which is the beating thread's
  /// work then.
  void holdIfEnding() const;
  /// The caller will end the process and says why. Does not return if somebody
  /// else does already.
  void claimEnd();
  /// Behind claimEnd: the others end too, with the same status, and print
  /// nothing.
  void tellEnd(int status);
  /// Something is wrong with this rank. Ends the job.
  [[noreturn]] void fail(const std::string &problem);

private:
  enum class Kind : uint32_t { Hello, Beat, Problem, Ending, Leaving };
  enum class State { Here, Left, Lost };
  /// The other end of a connection.
  struct Peer {
    int rank = 0, socket = -1;
    State state = State::Here;
    std::string received, unsent; // parts of messages
    int64_t pid = 0;
    std::string host;
    std::string report;
    int64_t silentBeats = 0;
    bool wasHeard = false;
    /// Whether it has said who it is.
    bool hasBegun() const { return pid != 0; }
  };

  void loop();
  void poll(Time until);
  void receive(Peer &peer);
  void take(Peer &peer, Kind kind, const std::string &text);
  void say(Peer &peer, Kind kind, const std::string &text);
  static void flush(Peer &peer);
  void note(const std::string &text);
  void beat();
  void listen();
  void decide();
  bool isDone() const;
  void wake() const;
  std::string lostRanks() const;
  RankReports reports() const;
  int chooseDeputy() const;
  [[noreturn]] void end(const std::string &message, int status);

  const int rank;
  const HealthLimits limits;
  std::mutex mutex; // of all below but the atomics
  std::vector<Peer> peers;
  HealthSubject *subject = nullptr;
  std::string ownReport, problem;
  int64_t beatsToVerdict = -1; // -1: there is nothing wrong
  int32_t deputy = -1;         // -1: rank 0 has not said yet
  bool isLeaving = false;
  std::atomic<bool> ending{false};
  int wakeEvent = -1;
  std::thread thread;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LIVENESS_HEALTH_H
