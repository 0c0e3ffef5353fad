//===- Heartbeat.cpp - Noticing a rank that was stopped -------------------===//
#include "Heartbeat.h"
#include "ProcessState.h"
#include "Pulse.h"
#include "fsdp/Rendezvous/Environment.h"
#include "fsdp/Support/Text.h"
#include "runtime/core/Job.h"
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <unistd.h>

using namespace fsdp::rt;

Heartbeat::Heartbeat(const Arena &arena, const World &world,
                     double limitSeconds, const LastCollectives &progress,
                     MakePulse messages)
    : world(world), progress(progress), limit(limitSeconds) {
  if (world.size == 1 || limit == 0)
    return;
  period = std::chrono::duration<double>(std::clamp(limit / 8, 0.05, 1.0));
  Neighbour mine{getpid(), {}};
  std::snprintf(mine.host, sizeof mine.host, "%s", hostName().c_str());
  std::vector<Neighbour> all(size_t(world.size));
  job::allGather(&mine, sizeof mine, all.data());
  int previous = (world.rank + world.size - 1) % world.size;
  before = all[size_t(previous)];
  bool isShared = arena.control(previous) && progress.areShared();
  pulse = job::everyone(isShared) ? createSharedPulse(arena, world, progress)
                                  : messages(world, progress);
  thread = std::thread([this] { loop(); });
  // What the first beat touches is resident before the first step.
  std::unique_lock<std::timed_mutex> lock(mutex);
  changed.wait(lock, [&] { return begun; });
}

Heartbeat::~Heartbeat() {
  if (!pulse)
    return;
  {
    std::lock_guard<std::timed_mutex> lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  thread.join();
  // An error on this rank ends the job. To wait for the others, which wait in
  // a collective, would keep it from being told; and MPI may still write into
  // the pulse, so it stays.
  if (std::uncaught_exceptions() > 0) {
    static_cast<void>(pulse.release());
    return;
  }
  pulse->end();
}

/// Silence is counted in own beats, not in time: when the whole machine or job
/// was suspended, everybody goes on where they were.
void Heartbeat::loop() {
  double silent = 0;
  std::unique_lock<std::timed_mutex> lock(mutex);
  while (!stopping) {
    pulse->beat();
    silent = pulse->heard() ? 0 : silent + 1;
    if (silent * period.count() > limit)
      report();
    begun = true;
    changed.notify_all();
    changed.wait_for(lock, period, [&] { return stopping; });
  }
}

void Heartbeat::report() {
  int rank = (world.rank + world.size - 1) % world.size;
  endJobLocked(
      format("no sign of life from rank %d (process %lld on %s) for %g s: %s "
             "(FSDP_HEARTBEAT sets the limit)",
             rank, static_cast<long long>(before.pid), before.host, limit,
             whyIsSilent(before.pid, before.host)),
      rank);
}

void Heartbeat::endJob(const std::string &problem) {
  // The thread that beats may hang in MPI.
  std::unique_lock<std::timed_mutex> lock(mutex, std::chrono::seconds(5));
  if (!lock)
    abortWorld(problem, kLostJobStatus);
  endJobLocked(problem, /*silent=*/-1);
}

void Heartbeat::endJobLocked(const std::string &problem, int silent) {
  if (!pulse)
    abortWorld(problem, kLostJobStatus);
  if (auto words = pulse->ask(silent))
    abortWorld(problem + progress.describe(*words, silent), kLostJobStatus);
  // The rank that speaks for the job has not come to it.
  abortWorld(problem, kLostJobStatus);
}
