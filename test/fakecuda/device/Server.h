//===- Server.h - The stand-in device ---------------------------*- C++ -*-===//
//
// One process serves all ranks of a job: streams are queues, and the scheduler
// chooses which head of a queue runs next. Nothing runs while a host still
// issues work, so that the choice is as free as it can be.
//
// Connections.cpp  sockets, answers, the loop
// Issue.cpp        what a call does
// Capture.cpp      what it does, or must not do, while streams are captured
// Schedule.cpp     which operation runs next; deadlocks
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_FAKECUDA_SERVER_H
#define FSDP_TEST_FAKECUDA_SERVER_H

#include "Capture.h"
#include "Collectives.h"
#include "Fault.h"
#include "Library.h"
#include "Trace.h"
#include <random>

namespace fsdp::fake {

struct Options {
  /// Which of the operations that could run does: any, those of the streams of
  /// least priority first (compute), or of the greatest (communication).
  enum class Policy { Random, ComputeFirst, CommunicationFirst };
  Policy policy = Policy::Random;
  uint64_t seed = 1;
  int threads = 1;
  /// Where nothing can run any more, hosts wait for ever.
  bool hangs = false;
  /// Kernels, libraries, fills and copies do nothing, but for those from and to
  /// pageable memory of a host.
  bool isDry = false;
  std::string tracePrefix, fault;
};

class Server {
public:
  /// `listener` accepts processes; `signals` tells of the job's end.
  Server(const Options &options, int listener, int signals, int job);

  /// Serves until the job has ended; its exit status.
  int run();

private:
  // Connections.cpp
  int timeout() const;
  bool poll();
  void accept();
  bool receive(Process &process);
  bool handleSignal();
  void remove(Process &process);
  bool settle();
  void answer(Process &process, Status status, const std::vector<char> &bytes,
              int file = -1);
  void answerFailure(Process &process);
  void answerRefusal(Process &process, const Refusal &refusal);

  // Issue.cpp
  using Body = std::vector<char>;
  void handle(Process &process, const Header &header, Body body);
  void obey(Process &process, Call call, const Body &body);
  void answerAsked(Process &process);
  void issue(Process &process, Call call, const Body &body);
  void ask(Process &process, Call call, const Body &body);
  void allocate(Process &process, const Allocate &call);
  void find(Process &process, const Body &body);
  void rendezvous(Process &process, const char *what, uint32_t comm);
  void copyOut(Process &process, const HostCopy &call);
  void waitFor(Process &process, const char *what, std::function<bool()> isDone,
               std::function<std::vector<char>()> result = nullptr);
  void query(Process &process, const std::function<bool()> &isDone);
  std::function<bool()> streamIsDone(Process &process, const StreamCall &call);
  std::function<bool()> eventIsDone(Process &process, const EventCall &call);
  void enqueue(Process &process, uint32_t stream, Operation operation);
  void enqueue(Process &process, uint32_t stream, std::string what,
               std::function<void()> run);
  /// Work that a dry device leaves out.
  void compute(Process &process, uint32_t stream, std::string what,
               std::function<void()> run);
  void launch(Process &process, const Body &body);
  void copyIn(Process &process, const Body &body);
  void copyStale(Process &process, const Body &body);
  Operation makeTransfer(Process &process, const Group &call,
                         const std::vector<Transfer> &transfers);
  void transfer(Process &process, const Body &body);
  void elapsed(Process &process, const EventPair &call);
  void record(Process &process, const EventCall &call);
  void wait(Process &process, const EventCall &call);
  DeviceStream &streamOf(Process &process, uint32_t number);

  // Capture.cpp
  void checkCapture(Process &process, Call call, const Body &body);
  void addNode(Process &process, Capture &capture, uint32_t stream,
               std::string what, std::function<Operation()> make);
  bool captureRecord(Process &process, const EventCall &call);
  bool captureWait(Process &process, const EventCall &call);
  void beginCapture(Process &process, const BeginCapture &call);
  void endCapture(Process &process, const EndCapture &call);
  void describeCapture(Process &process, const StreamCall &call);
  void instantiate(Process &process, const Instantiate &call);
  void launchGraph(Process &process, const GraphCall &call);

  // Schedule.cpp
  /// The head of a stream, or a node of a graph that runs.
  struct Candidate {
    Process *process;
    int priority;
    bool isLegacy;
    DeviceStream *stream; // null for a node
    std::shared_ptr<GraphRun> run;
    size_t node;
  };
  bool step();
  template <typename Visit> void forEachHead(const Visit &visit);
  std::vector<Candidate> candidates();
  const Candidate &choose(const std::vector<Candidate> &ready);
  void execute(const Candidate &chosen);
  bool allHostsWait() const;
  bool anyHostWaits() const;
  void reportDeadlock();

  const Options options;
  const int listener, signals, job;
  int status = 0;
  std::vector<std::unique_ptr<Process>> processes; // connected
  /// Communicators may still name them.
  std::vector<std::unique_ptr<Process>> gone;
  bool isQuiet = false; // no host has said anything for a while
  bool isStuck = false; // nothing can run until a host says something

  Memory memory;
  Collectives collectives{memory};
  Library library;
  Trace trace;
  Fault fault;
  std::optional<Refusal> refusal; // of the call that is handled
  std::mt19937_64 random;
};

/// What runs now, for the message about a fault in it.
void installFaultHandler();
void setRunning(const std::string &what);

} // namespace fsdp::fake

#endif // FSDP_TEST_FAKECUDA_SERVER_H
