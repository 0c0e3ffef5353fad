//===- LivenessMonitor.cpp - Whether the ranks of a job live --------------===//
#include "LivenessMonitor.h"
#include "ProcessState.h"
#include "fsdp/Rendezvous/Environment.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Support/Signals.h"
#include <cstdio>
#include <exception>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

using namespace fsdp;
using namespace fsdp::rt;

[[noreturn]] static void hold() {
  for (;;)
    ::pause();
}

LivenessMonitor::LivenessMonitor(int rank, int size, LivenessLimits limits,
                                 std::unique_ptr<HeartbeatTransport> transport,
                                 RankProbe *probe, EndJob endJob)
    : rank(rank), transport(std::move(transport)), endJob(std::move(endJob)),
      limits(limits), table(size), probe(nullptr),
      wakeEvent(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  RankRow &own = table.row(rank);
  own.state = RankState::Here;
  own.pid = getpid();
  own.host = thisHost();
  watch(probe);
  thread = std::thread([this] { loop(); });
  std::unique_lock<std::mutex> lock(mutex);
  begun.wait(lock, [this] { return hasBegun(); });
}

LivenessMonitor::~LivenessMonitor() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    probe = nullptr;
    isLeaving = true;
    isAbandoned = std::uncaught_exceptions() > 0;
    if (!isAbandoned)
      transport->leave();
  }
  wake();
  thread.join();
  ::close(wakeEvent);
}

void LivenessMonitor::wake() const {
  uint64_t one = 1;
  (void)!::write(wakeEvent, &one, sizeof one);
}

void LivenessMonitor::watch(RankProbe *newProbe) {
  std::lock_guard<std::mutex> lock(mutex);
  probe = newProbe;
  size_t channels = probe ? probe->channels.count : 0;
  limits.collective = probe ? probe->channels.limit : 0;
  counters.assign(channels, 0);
  table.setChannels(channels, probe ? probe->channels.ranksOf : nullptr);
}

void LivenessMonitor::beginStage(std::string what, double limit) {
  std::lock_guard<std::mutex> lock(mutex);
  table.row(rank).stage = {std::move(what), limit, now};
}

void LivenessMonitor::endStage() {
  std::lock_guard<std::mutex> lock(mutex);
  table.row(rank).stage = {};
}

//===----------------------------------------------------------------------===//
// The thread
//===----------------------------------------------------------------------===//

bool LivenessMonitor::hasBegun() const {
  bool areHere = true;
  for (int r = 0; r < (rank == 0 ? table.ranks() : 1); ++r)
    areHere &= table.row(r).state != RankState::NotBegun;
  return heartbeats > 0 && areHere;
}

bool LivenessMonitor::mayGo() const {
  return isAbandoned || (isLeaving && transport->mayGo(table));
}

/// Silence is counted in own heartbeats, not in time: when the whole machine or
/// job was suspended, everybody goes on where they were.
void LivenessMonitor::loop() {
  auto period = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(limits.period));
  for (Time next = Clock::now();;) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (auto status = transport->receive(table, now))
        endProcess("", *status);
      if (mayGo())
        return;
      if (Clock::now() >= next) {
        advance();
        next = Clock::now() + period;
      } else if (nameBackup()) {
        transport->send(table);
      }
      if (hasBegun())
        begun.notify_all();
    }
    transport->wait(wakeEvent, next);
    uint64_t ignored = 0;
    (void)!::read(wakeEvent, &ignored, sizeof ignored);
  }
}

/// True if it is another than before. The others hear of it at once: without a
/// backup each of them would speak for a first rank that is lost.
bool LivenessMonitor::nameBackup() {
  if (rank != 0 && !transport->isLive())
    return false;
  int chosen = chooseBackup(table, 0);
  return std::exchange(table.backup, chosen) != chosen;
}

void LivenessMonitor::advance() {
  RankRow &own = table.row(rank);
  own.heard = now;
  if (probe) {
    uint64_t launches = probe->readCounters(counters.data());
    table.take(rank, launches, counters.data(), counters.size(), now);
    if (std::string problem = probe->findProblem(); !problem.empty())
      table.stateProblem(rank, problem, now);
  }
  nameBackup();
  transport->send(table);
  act(detectFailure(table, now, limits, rank));
  now = double(++heartbeats) * limits.period;
}

void LivenessMonitor::act(const Failure &failure) {
  if (failure.kind == Failure::None)
    return;
  switch (failure.speaker) {
  case Failure::Coordinator:
    table.row(rank).told = now;
    return transport->tellProblem(describeProblem(failure, source()));
  case Failure::Another:
    if (endJob || failure.ranks[0] == rank)
      return;
    endProcess("", kLostJobStatus);
  case Failure::This:
    endFor(failure);
  }
}

//===----------------------------------------------------------------------===//
// The end of the process
//===----------------------------------------------------------------------===//

void LivenessMonitor::holdIfEnding() const {
  if (ending)
    hold();
}

void LivenessMonitor::claimEnd() {
  if (ending.exchange(true))
    hold();
}

void LivenessMonitor::tellEnd(int status) {
  std::lock_guard<std::mutex> lock(mutex);
  transport->tellEnd(status);
}

void LivenessMonitor::fail(const std::string &problem) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    table.stateProblem(rank, problem, now);
  }
  hold();
}

ReportSource LivenessMonitor::source() const {
  return {table, limits, probe ? probe->channels.artifact : nullptr,
          transport->isLive()};
}

void LivenessMonitor::endFor(const Failure &failure) {
  bool isOfRank =
      failure.kind == Failure::Problem || failure.kind == Failure::StageStuck;
  std::string message = describeFailure(failure, source());
  if (endJob)
    endJob(isOfRank ? failure.ranks[0] : -1, message);
  endProcess(
      (isOfRank ? "rank " + std::to_string(failure.ranks[0]) + ": " : "") +
          message,
      kLostJobStatus);
}

/// With the mutex, which whoever ends the process already may need.
void LivenessMonitor::endProcess(const std::string &message, int status) {
  if (ending.exchange(true)) {
    mutex.unlock();
    hold();
  }
  transport->tellEnd(status);
  if (!message.empty())
    printMessage("fsdp", message);
  if (probe)
    probe->abandon();
  // Somebody who hangs while he prints does not hold this up.
  if (ftrylockfile(stdout) == 0) {
    std::fflush(stdout);
    funlockfile(stdout);
  }
  removeFilesOnSignal();
  _exit(status);
}
