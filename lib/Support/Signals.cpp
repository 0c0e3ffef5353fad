//===- Signals.cpp - Nothing is left behind by Ctrl-C ---------------------===//
#include "fsdp/Support/Signals.h"
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <unistd.h>

using namespace fsdp;

static constexpr int kStopCount = sizeof kStopSignals / sizeof *kStopSignals;

/// Sets the handler of one signal and returns the one before it.
static struct sigaction setHandler(int signal, void (*handler)(int),
                                   int flags) {
  struct sigaction action = {}, previous = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, &previous);
  return previous;
}

/// Whether `handler` is what the signal has; a handler with SA_SIGINFO stands
/// in another member.
static bool hasHandler(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  sigaction(signal, nullptr, &action);
  return !(action.sa_flags & SA_SIGINFO) && action.sa_handler == handler;
}

/// Whether nobody handles or ignores the signal.
static bool isDefault(int signal) { return hasHandler(signal, SIG_DFL); }

std::string fsdp::stoppedBy(int signal) {
  return "stopped by signal " + std::to_string(signal) + " (" +
         strsignal(signal) + ")";
}

bool fsdp::isIgnored(int signal) { return hasHandler(signal, SIG_IGN); }

//===----------------------------------------------------------------------===//
// A thread for handlers
//===----------------------------------------------------------------------===//

void fsdp::handleSignalsInOwnThread() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : kStopSignals)
    sigaddset(&signals, signal);
  sigaddset(&signals, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([signals] {
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    for (;;)
      pause();
  }).detach();
}

/// As raise, also where another thread runs the handlers: a signal that ends
/// the process ends it here.
static void raiseHere(int signal) {
  sigset_t one, before;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(SIG_UNBLOCK, &one, &before);
  raise(signal);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// Paths to remove. A process writes one or two files at a time; one beyond
/// the table is only not removed.
static std::atomic<const char *> paths[16];

void fsdp::removeFilesOnSignal() {
  for (std::atomic<const char *> &path : paths)
    if (const char *name = path.exchange(nullptr))
      unlink(name);
}

void fsdp::forgetFilesOnSignal() {
  for (std::atomic<const char *> &path : paths)
    path = nullptr;
}

/// The handler was reset when it began, so the signal now ends the process.
static void removeAndEnd(int signal) {
  removeFilesOnSignal();
  raise(signal);
}

static void removeAtEndBy(int signal) {
  if (isDefault(signal))
    setHandler(signal, removeAndEnd, SA_RESETHAND);
}

RemovedOnSignal::RemovedOnSignal(const char *path) {
  for (int signal : kStopSignals)
    removeAtEndBy(signal);
  removeAtEndBy(SIGPIPE);
  if (isDefault(SIGXFSZ))
    setHandler(SIGXFSZ, SIG_IGN, 0);
  for (std::atomic<const char *> &entry : paths) {
    const char *none = nullptr;
    if (entry.compare_exchange_strong(none, path))
      return;
    ++slot;
  }
  slot = -1;
}

RemovedOnSignal::~RemovedOnSignal() {
  // Another thread's handler that took the path still reads it, and is about
  // to end the process.
  if (slot >= 0 && !paths[slot].exchange(nullptr))
    for (;;)
      pause();
}

//===----------------------------------------------------------------------===//
// Deferral
//===----------------------------------------------------------------------===//

// The handler may run in another thread.
static std::atomic<int> arrived{0};
static std::atomic<bool> defers{false};
static std::atomic<pid_t> child{0};
static int depth = 0;
static void (*answering)(int) = nullptr; // see leaveTo
static int (*notedSignal)() = nullptr;
static struct sigaction previous[kStopCount];

static void sendOn(int signal) {
  pid_t to = child;
  // Before the child has its group, the child alone.
  if (to > 0 && kill(-to, signal) != 0)
    kill(to, signal);
}

static void defer(int signal) {
  int error = errno;
  arrived = signal;
  sendOn(signal);
  // Began while the last object died, which no longer looks: on its return the
  // handler before it has the signal.
  if (int late = defers ? 0 : arrived.exchange(0))
    raise(late);
  errno = error;
}

/// Whether the process goes on with its own answer.
static bool isAnswered(int signal) {
  if (answering && hasHandler(signal, answering))
    return true;
  // LLVM answers SIGUSR1 and goes on.
  return signal == SIGUSR1 && !isDefault(signal);
}

DeferredSignals::DeferredSignals() {
  if (depth++ != 0)
    return;
  defers = true;
  for (int i = 0; i < kStopCount; ++i) {
    int signal = kStopSignals[i];
    sigaction(signal, nullptr, &previous[i]);
    // No SA_RESTART: a wait for a pipe's other end is given up, if it is this
    // thread's handler.
    if (!isIgnored(signal) && !isAnswered(signal))
      setHandler(signal, defer, 0);
  }
}

DeferredSignals::~DeferredSignals() {
  if (--depth != 0)
    return;
  for (int i = 0; i < kStopCount; ++i)
    sigaction(kStopSignals[i], &previous[i], nullptr);
  defers = false;
  if (int signal = arrived.exchange(0))
    raiseHere(signal);
}

void DeferredSignals::leaveTo(void (*handler)(int), int (*noted)()) {
  answering = handler;
  notedSignal = noted;
}

int DeferredSignals::pending() {
  int signal = arrived;
  return signal == 0 && notedSignal ? notedSignal() : signal;
}

void DeferredSignals::throwIfPending() {
  if (pending() != 0)
    throw Interrupted();
}

void DeferredSignals::forwardTo(pid_t process) {
  child = process;
  if (int signal = arrived)
    sendOn(signal);
}
