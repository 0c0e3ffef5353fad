//===- Heartbeat.h - Noticing a rank that was stopped -----------*- C++ -*-===//
//
// A collective cannot tell a stopped rank from a slow one. So a thread of every
// rank beats while its process is scheduled, whatever the program computes,
// and listens to the rank before it. When that has been silent for too long,
// the job ends with a message that names it. The ranks form a ring: of any
// stopped ones, the last before a running one is noticed. What ends the job
// says of every rank which collectives it was in last.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_LIVENESS_HEARTBEAT_H
#define FSDP_RUNTIME_LIVENESS_HEARTBEAT_H

#include "LastCollectives.h"
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace fsdp::rt {

/// How a beat travels from a rank to the next one.
class Pulse;
/// Collective over the job.
using MakePulse = std::unique_ptr<Pulse> (*)(const World &world,
                                             const LastCollectives &progress);

class Heartbeat {
public:
  /// Collective over the job. A silence of `limitSeconds` ends it; 0, or a
  /// single rank, means no heartbeat. Ranks that do not share memory send beats
  /// as `messages` does. `progress` outlives it.
  Heartbeat(const Arena &arena, const World &world, double limitSeconds,
            const LastCollectives &progress, MakePulse messages);
  /// Collective, unless an exception is under way, after which the job must
  /// be ended. Silence is no alarm from here on.
  ~Heartbeat();

  /// Ends the job with the problem of this rank and, if there is a heartbeat,
  /// the last collectives of all ranks. Where several ranks would, one does.
  /// Any thread.
  [[noreturn]] void endJob(const std::string &problem);

private:
  /// The rank that this one listens to.
  struct Neighbour {
    int64_t pid;
    char host[64];
  };

  void loop();
  [[noreturn]] void report();
  [[noreturn]] void endJobLocked(const std::string &problem, int silent);

  World world;
  const LastCollectives &progress;
  double limit;
  std::chrono::duration<double> period{1};
  Neighbour before{};
  std::unique_ptr<Pulse> pulse;
  std::timed_mutex mutex;
  std::condition_variable_any changed;
  bool begun = false, stopping = false;
  std::thread thread;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LIVENESS_HEARTBEAT_H
