//===- Schedule.cpp - Which operation runs next ---------------------------===//
#include "Server.h"
#include <algorithm>
#include <csignal>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <unistd.h>

using namespace fsdp::fake;

bool Server::allHostsWait() const {
  return std::all_of(processes.begin(), processes.end(),
                     [](auto &p) { return p->pending.has_value(); });
}

bool Server::anyHostWaits() const {
  return std::any_of(processes.begin(), processes.end(),
                     [](auto &p) { return p->pending.has_value(); });
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

static bool canRun(const Operation &operation) {
  return !operation.waitsFor || operation.waitsFor().empty();
}

/// Calls visit(operation, its candidate) for the heads of streams and for the
/// nodes of graphs that nothing stands before.
template <typename Visit> void Server::forEachHead(const Visit &visit) {
  for (auto &process : processes) {
    for (auto &[number, stream] : process->streams)
      if (!stream.queue.empty())
        visit(stream.queue.front(),
              Candidate{process.get(), stream.priority, stream.isLegacy,
                        &stream, nullptr, 0});
    for (auto &run : process->runs)
      for (size_t node : run->ready)
        visit(run->nodes[node].operation,
              Candidate{process.get(), run->nodes[node].priority,
                        /*isLegacy=*/false, nullptr, run, node});
  }
}

/// What could run.
std::vector<Server::Candidate> Server::candidates() {
  // A transfer looks at the heads of other streams.
  forEachHead([](const Operation &operation, const Candidate &) {
    if (operation.group)
      operation.group->isAtHead = true;
  });
  std::vector<Candidate> ready;
  forEachHead([&](const Operation &operation, Candidate candidate) {
    if (canRun(operation))
      ready.push_back(std::move(candidate));
  });
  return ready;
}

const Server::Candidate &Server::choose(const std::vector<Candidate> &ready) {
  if (options.policy == Options::Policy::Random)
    return ready[random() % ready.size()];
  // The legacy stream comes last: what is not ordered after it comes before.
  auto turn = [&](const Candidate &c) {
    if (c.isLegacy)
      return std::numeric_limits<int>::max();
    bool computeFirst = options.policy == Options::Policy::ComputeFirst;
    return computeFirst ? -c.priority : c.priority;
  };
  return *std::min_element(
      ready.begin(), ready.end(),
      [&](const auto &a, const auto &b) { return turn(a) < turn(b); });
}

/// Runs one operation; false if none can run.
bool Server::step() {
  std::vector<Candidate> ready = candidates();
  if (ready.empty())
    return false;
  execute(choose(ready));
  return true;
}

void Server::execute(const Candidate &chosen) {
  Process &process = *chosen.process;
  Operation operation;
  if (chosen.run) {
    operation = chosen.run->take(chosen.node);
  } else {
    operation = std::move(chosen.stream->queue.front());
    chosen.stream->queue.pop_front();
  }
  trace.executed(process, operation);
  setRunning(process.name() + ", " + operation.what);
  try {
    operation.run();
  } catch (const std::runtime_error &e) {
    process.fail(operation.what + ": " + e.what());
  }
  if (chosen.run)
    chosen.run->finish(chosen.node);
  setRunning("");
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

void Process::fail(const std::string &text) {
  if (!failure.empty())
    return;
  failure = text;
  std::fprintf(stderr, "fakecuda: %s: %s\n", name().c_str(), text.c_str());
  dropWork();
}

void Process::dropWork() {
  for (auto &[number, stream] : streams)
    stream.queue.clear();
  runs.clear();
}

/// All hosts wait and nothing can run: it never will.
void Server::reportDeadlock() {
  std::string text = "deadlock: every host waits and nothing can run";
  for (auto &process : processes) {
    text += "\n  " + process->name() + " waits for " + process->pending->what;
    for (auto &[number, stream] : process->streams)
      if (!stream.queue.empty())
        text += "\n  " + process->name() + ", stream " +
                std::to_string(number) + ": " + stream.queue.front().waitsFor();
  }
  std::fprintf(stderr, "fakecuda: %s\n", text.c_str());
  isStuck = false; // the hosts get an answer
  for (auto &process : processes) {
    process->failure = text;
    process->dropWork();
  }
}

//===----------------------------------------------------------------------===//
// Faults of the memory
//===----------------------------------------------------------------------===//

static char running[256];

void fsdp::fake::setRunning(const std::string &what) {
  std::snprintf(running, sizeof running, "%s", what.c_str());
}

/// Uses nothing that a signal may not.
static void reportFault(int signal, siginfo_t *info, void *) {
  char text[400];
  int length =
      std::snprintf(text, sizeof text,
                    "fakecuda: %s touches %p, which is not its "
                    "memory\n",
                    *running ? running : "the device itself", info->si_addr);
  ssize_t ignored = ::write(STDERR_FILENO, text, size_t(length));
  (void)ignored;
  ::_exit(128 + signal);
}

void fsdp::fake::installFaultHandler() {
  struct sigaction action{};
  action.sa_sigaction = reportFault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}
