//===- OutputRelay.cpp - What the ranks print, on its way -----------------===//
#include "OutputRelay.h"
#include <cerrno>
#include <climits>
#include <unistd.h>

using namespace fsdp::rt;

OutputRelay::~OutputRelay() {
  if (from >= 0)
    close(from);
}

pollfd OutputRelay::awaited() const {
  return held.empty() ? pollfd{from, POLLIN, 0} : pollfd{to, POLLOUT, 0};
}

void OutputRelay::take() {
  // A pipe that has room for anything has room for so many bytes.
  held.resize(PIPE_BUF);
  ssize_t count = read(from, held.data(), held.size());
  bool isInterrupted = count < 0 && errno == EINTR;
  held.resize(count > 0 ? static_cast<size_t>(count) : 0);
  if (count <= 0 && !isInterrupted) {
    close(from);
    from = -1;
  }
  if (failure != 0)
    held.clear();
}

void OutputRelay::pass() {
  ssize_t count = write(to, held.data(), held.size());
  if (count >= 0) {
    held.erase(0, static_cast<size_t>(count));
  } else if (errno != EINTR && errno != EAGAIN) {
    failure = errno;
    held.clear();
  }
}

void OutputRelay::move() {
  if (held.empty())
    take();
  else
    pass();
}

void OutputRelay::finish() {
  for (;;) {
    pollfd ready = awaited();
    if (ready.fd < 0 || poll(&ready, 1, held.empty() ? 0 : -1) <= 0)
      return;
    move();
  }
}
