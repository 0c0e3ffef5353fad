//===- Transfer.cpp - All bytes through a socket --------------------------===//
#include "Transfer.h"
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <poll.h>
#include <sys/socket.h>

using namespace fsdp::rt;

int fsdp::rt::millisecondsUntil(Time end) {
  auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count() + 1, 0, 60000));
}

bool fsdp::rt::await(int socket, short events, Time end) {
  while (Clock::now() < end) {
    pollfd ready{socket, events, 0};
    if (poll(&ready, 1, millisecondsUntil(end)) > 0)
      return true;
  }
  return false;
}

/// Calls `transfer` with the number of bytes that are through until it is
/// `bytes`.
template <typename Transfer>
static bool transferAll(int socket, size_t bytes, short events, Time end,
                        Transfer transfer) {
  for (size_t done = 0; done < bytes;) {
    ssize_t count = transfer(done);
    if (count > 0)
      done += static_cast<size_t>(count);
    else if (count == 0 || (errno != EINTR && errno != EAGAIN) ||
             !await(socket, events, end))
      return false;
  }
  return true;
}

bool fsdp::rt::sendAll(int socket, const void *data, size_t bytes, Time end) {
  const auto *from = static_cast<const char *>(data);
  return transferAll(socket, bytes, POLLOUT, end, [&](size_t done) {
    return ::send(socket, from + done, bytes - done, MSG_NOSIGNAL);
  });
}

bool fsdp::rt::receiveAll(int socket, void *data, size_t bytes, Time end) {
  auto *to = static_cast<char *>(data);
  return transferAll(socket, bytes, POLLIN, end, [&](size_t done) {
    return ::recv(socket, to + done, bytes - done, 0);
  });
}
