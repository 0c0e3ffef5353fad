//===- Heartbeat.h - Noticing a rank that was stopped -----------*- C++ -*-===//
//
// A collective cannot tell a stopped rank from a slow one. So a thread of every
// rank beats while its process is scheduled, whatever the program computes,
// and listens to the rank before it. When that has been silent for too long,
// the job ends with a message that names it. The ranks form a ring: of any
// stopped ones, the last before a running one is noticed.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_COLLECTIVES_HEARTBEAT_H
#define FSDP_RUNTIME_COLLECTIVES_HEARTBEAT_H

#include "../api/Arena.h"
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace fsdp::rt {

/// How a beat travels from a rank to the next one.
class Pulse;

class Heartbeat {
public:
  /// Collective over the job. A silence of `limitSeconds` ends it; 0, or a
  /// single rank, means no heartbeat.
  Heartbeat(const Arena &arena, const World &world, double limitSeconds);
  /// Collective, unless an exception is under way, after which the job must
  /// be ended. Silence is no alarm from here on.
  ~Heartbeat();

private:
  /// The rank that this one listens to.
  struct Neighbour {
    int64_t pid;
    char host[64];
  };

  void loop();
  [[noreturn]] void report() const;

  World world;
  double limit;
  std::chrono::duration<double> period{1};
  Neighbour before{};
  std::unique_ptr<Pulse> pulse;
  std::mutex mutex;
  std::condition_variable changed;
  bool begun = false, stopping = false;
  std::thread thread;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COLLECTIVES_HEARTBEAT_H
