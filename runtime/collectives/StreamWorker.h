//===- StreamWorker.h - Streams beside the compute stream -------*- C++ -*-===//
#ifndef FSDP_RUNTIME_COLLECTIVES_STREAMWORKER_H
#define FSDP_RUNTIME_COLLECTIVES_STREAMWORKER_H

#include "fsdp/Runtime/Runtime.h"
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace fsdp::rt {

class Channel;
class Timeline;

/// Events as counters: the n-th record of an event completes count n. A wait
/// refers to the last record issued before it.
class Events {
public:
  void create(int count);
  /// Counts one more record of `event` as issued; gives its number.
  uint64_t issue(int event) { return ++issued[size_t(event)]; }
  uint64_t lastIssued(int event) const { return issued[size_t(event)]; }
  void complete(int event, uint64_t number);
  void wait(int event, uint64_t number);

private:
  std::vector<uint64_t> issued; // touched by the issuing thread only
  std::vector<uint64_t> done;
  std::mutex mutex;
  std::condition_variable changed;
};

/// One stream: a thread that executes commands in order. Slots are
/// preallocated; issuing waits while all are taken, which cannot deadlock
/// because a command depends only on commands issued before it.
class StreamWorker {
public:
  StreamWorker(Stream stream, Events &events, Timeline &timeline,
               int maxPointers);
  ~StreamWorker();

  /// `counter` as of Channel::run.
  void collective(Channel &channel, const CollectiveDesc &desc,
                  uint64_t counter, Ptrs in, Ptrs out, Ptrs workspace);
  void copy(Ptr from, Ptr to, int64_t bytes);
  void record(int event, uint64_t number);
  void wait(int event, uint64_t number);
  /// Returns when everything issued so far is done.
  void join();

private:
  enum class Kind : uint8_t { Collective, Copy, Record, Wait, Stop };
  struct Command {
    Kind kind;
    int event = 0;
    uint64_t number = 0; // of a record; the counter of a collective
    Channel *channel = nullptr;
    const CollectiveDesc *desc = nullptr;
    int64_t bytes = 0;
    // in, out, workspace; from, to of a copy.
    std::vector<Ptr> pointers;
    int outAt = 0, workspaceAt = 0;
  };
  static constexpr uint64_t kSlots = 1024;

  Command &beginIssue(Kind kind);
  void endIssue();
  void loop();
  void execute(Command &c);

  Stream stream;
  Events &events;
  Timeline &timeline;
  std::vector<Command> slots;
  uint64_t head = 0, tail = 0; // executed, issued; under `mutex`
  std::mutex mutex;
  std::condition_variable issuedOne, executedOne;
  std::thread thread;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COLLECTIVES_STREAMWORKER_H
