//===- OutputRelay.h - What the ranks print, on its way ---------*- C++ -*-===//
//
// The launcher has to know when the reader of a job's output goes away, or when
// it cannot be written. So ranks write to a pipe of ours, whose bytes go to
// standard output from here.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_LAUNCH_OUTPUTRELAY_H
#define FSDP_RUNTIME_LAUNCH_OUTPUTRELAY_H

#include <poll.h>
#include <string>

namespace fsdp::rt {

class OutputRelay {
public:
  /// Takes the read end of a pipe and passes on to `to`.
  OutputRelay(int from, int to) : from(from), to(to) {}
  ~OutputRelay();
  OutputRelay(const OutputRelay &) = delete;
  OutputRelay &operator=(const OutputRelay &) = delete;

  /// What to wait for: that there are bytes, or room for those at hand.
  pollfd awaited() const;
  /// Moves one portion after awaited() has come. Never waits itself: the
  /// launcher has more to look after than a slow reader. After a failed write
  /// everything is read and dropped, so that the ranks go on.
  void move();
  /// Moves what is left in the pipe. Waits for a slow reader until a signal
  /// comes.
  void finish();

  /// errno of the write that failed; 0: none did.
  int error() const { return failure; }

private:
  void take();
  void pass();

  int from; // -1: its end was reached
  int to;
  std::string held; // taken and not passed on yet
  int failure = 0;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCH_OUTPUTRELAY_H
