//===- SaveWatch.cpp - Noticing a save that hangs -------------------------===//
#include "SaveWatch.h"
#include "fsdp/Rendezvous/Environment.h"
#include "fsdp/Support/FileCalls.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Support/Signals.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cstdio>

using namespace fsdp;
using namespace fsdp::rt;

SaveWatch::SaveWatch(World world, double limitSeconds)
    : world(world), limit(limitSeconds) {
  if (limit > 0)
    thread = std::thread([this] { loop(); });
}

SaveWatch::~SaveWatch() {
  if (!thread.joinable())
    return;
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  thread.join();
}

void SaveWatch::begin(std::string begun) {
  std::lock_guard<std::mutex> lock(mutex);
  work = std::move(begun);
  changed.notify_all();
}

void SaveWatch::end() {
  std::lock_guard<std::mutex> lock(mutex);
  work.clear();
}

void SaveWatch::loop() {
  std::chrono::duration<double> period(std::clamp(limit / 8, 0.05, 1.0));
  std::unique_lock<std::mutex> lock(mutex);
  while (!stopping) {
    if (work.empty()) {
      changed.wait(lock);
      continue;
    }
    look();
    changed.wait_for(lock, period);
  }
}

void SaveWatch::look() {
  std::optional<WaitingCall> waiting = longestFileCall();
  if (!waiting || waiting->seconds < limit)
    return;
  std::string what = work + " waits for the file system: " + waiting->call +
                     " of '" + waiting->path + "' has not come back";
  if (waiting->seconds >= kPatience * limit) {
    // The file system that does not answer would not remove them either.
    forgetFilesOnSignal();
    abortWorld(what + format(" within %g s; the whole job was ended",
                             kPatience * limit),
               kLostJobStatus);
  }
  if (named == waiting->number)
    return;
  named = waiting->number;
  printMessage(kRunWarning,
               format("rank %d: %s within %g s (FSDP_FILE_TIMEOUT sets the "
                      "limit); the job ends if it has not within %g s",
                      world.rank, what.c_str(), limit, kPatience * limit));
}
