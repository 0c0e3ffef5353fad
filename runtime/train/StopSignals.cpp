//===- StopSignals.cpp - A run that saves before it ends ------------------===//
#include "StopSignals.h"
#include "fsdp/Support/Signals.h"
#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <ctime>
#include <unistd.h>

using namespace fsdp;

namespace {
/// What the handler needs; lock-free atomics are safe there.
struct {
  std::atomic<int> signal{0};
  std::atomic<double> since{0}; // seconds; 0: another thread notes it just now
  unsigned grace = 0;           // seconds
  struct sigaction before[NSIG];
} state;
} // namespace

static double secondsNow() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Hands the signal to whoever handled it before.
static void endBy(int signal) {
  removeFilesOnSignal();
  for (int other : kSavingSignals)
    sigaction(other, &state.before[other], nullptr);
  raise(signal); // arrives when the handler returns
}

static void note(int signal) {
  int none = 0;
  if (state.signal.compare_exchange_strong(none, signal)) {
    state.since = secondsNow();
    alarm(state.grace);
  } else if (double since = state.since;
             since != 0 && secondsNow() - since > kSameWishSeconds) {
    endBy(signal);
  }
}

static void endLate(int) { endBy(state.signal); }

void fsdp::catchStopSignals(double graceSeconds) {
  state.grace = static_cast<unsigned>(std::max(1.0, std::ceil(graceSeconds)));
  struct sigaction action{};
  action.sa_flags = SA_RESTART;
  // One at a time.
  sigemptyset(&action.sa_mask);
  for (int signal : kSavingSignals)
    sigaddset(&action.sa_mask, signal);
  sigaddset(&action.sa_mask, SIGALRM);
  action.sa_handler = endLate;
  sigaction(SIGALRM, &action, nullptr);
  action.sa_handler = note;
  for (int signal : kSavingSignals) {
    sigaction(signal, nullptr, &state.before[signal]);
    if (!isIgnored(signal))
      sigaction(signal, &action, nullptr);
  }
  DeferredSignals::leaveTo(note, stopSignal);
}

int fsdp::stopSignal() { return state.signal; }
