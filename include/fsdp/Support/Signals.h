//===- Signals.h - Nothing is left behind by Ctrl-C -------------*- C++ -*-===//
//
// What has to be undone when a signal ends the process. A handler of somebody
// else, and a signal that is ignored, are left as they are.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SUPPORT_SIGNALS_H
#define FSDP_SUPPORT_SIGNALS_H

#include "fsdp/Support/Error.h"
#include <csignal>
#include <string>
#include <sys/types.h>

namespace fsdp {

/// The signals that end a process which does not handle them and come from
/// somebody who wants it to end: a person, a batch system, a limit of time.
inline constexpr int kStopSignals[] = {SIGINT,  SIGTERM, SIGHUP, SIGQUIT,
                                       SIGUSR1, SIGUSR2, SIGXCPU};

/// Those of them at which a run that saves checkpoints saves one before it
/// ends.
inline constexpr int kSavingSignals[] = {SIGTERM, SIGINT, SIGUSR1};
/// A signal so soon after another is the same wish, on its way through another
/// process of the job.
inline constexpr double kSameWishSeconds = 0.5;

/// "stopped by signal 15 (Terminated)".
std::string stoppedBy(int signal);

/// Whether the signal is ignored, as SIGHUP under nohup and SIGINT after
/// `command &` in a script are.
bool isIgnored(int signal);

/// From here on signals that somebody sends, of kStopSignals and SIGALRM, are
/// handled in a thread of its own, and ~DeferredSignals delivers in its caller.
/// Call it before the process starts a thread: threads inherit the mask.
///
/// For a process that computes products. In some of oneDNN's before 3.12 the
/// stack pointer is an address in the heap, and a handler that interrupts one
/// overwrites what lies below it
/// (https://github.com/uxlfoundation/oneDNN/issues/4845).
void handleSignalsInOwnThread();

/// While it lives, a signal that ends the process removes a file first. A
/// limit on the size of files becomes an error of write, like a full disk.
class RemovedOnSignal {
public:
  /// `path` must outlive the object.
  explicit RemovedOnSignal(const char *path);
  ~RemovedOnSignal();
  RemovedOnSignal(const RemovedOnSignal &) = delete;
  RemovedOnSignal &operator=(const RemovedOnSignal &) = delete;

private:
  int slot = 0;
};

/// For a handler of one's own that ends the process: removes the files of all
/// RemovedOnSignal. Safe in a handler.
void removeFilesOnSignal();

/// Whatever ends the process from here on leaves those files: their file system
/// does not answer.
void forgetFilesOnSignal();

/// Thrown by what a signal interrupts, when it is undone.
class Interrupted : public Error {
public:
  Interrupted() : Error("interrupted") {}
};

/// While it lives, the stop signals only interrupt what is going on;
/// the outermost object delivers the signal when it dies, after the objects
/// that were made later have cleaned up.
class DeferredSignals {
public:
  DeferredSignals();
  ~DeferredSignals();
  DeferredSignals(const DeferredSignals &) = delete;
  DeferredSignals &operator=(const DeferredSignals &) = delete;

  /// For a process that answers stop signals itself: signals with `handler`
  /// keep it, and what `noted` returns, a signal or 0, is pending too. Before
  /// the first object.
  static void leaveTo(void (*handler)(int), int (*noted)());
  /// The signal that has come, or 0.
  static int pending();
  /// Throws Interrupted if one has.
  static void throwIfPending();
  /// Sends signals on to this process and its group; 0: to none.
  static void forwardTo(pid_t child);
};

} // namespace fsdp

#endif // FSDP_SUPPORT_SIGNALS_H
