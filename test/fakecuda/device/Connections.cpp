//===- Connections.cpp - Sockets, answers, the loop -----------------------===//
#include "Message.h"
#include "Server.h"
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fsdp::fake;

/// Hosts that say nothing for so long compute, or wait for another host; the
/// device goes on without them.
static constexpr auto kQuiet = std::chrono::milliseconds(4);

Server::Server(const Options &options, int listener, int signals, int job)
    : options(options), listener(listener), signals(signals), job(job),
      library(options.threads), trace(options.tracePrefix),
      fault(options.fault), random(options.seed) {}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

/// Sends it all, with a file if there is one. A process that is gone will be
/// noticed when it is read from.
static void sendAll(int socket, const char *from, size_t bytes, int file) {
  while (bytes > 0) {
    iovec part{const_cast<char *>(from), bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (file >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr *c = CMSG_FIRSTHDR(&message);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(c), &file, sizeof file);
    }
    ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent <= 0)
      return;
    file = -1;
    from += sent;
    bytes -= size_t(sent);
  }
}

void Server::answer(Process &process, Status status,
                    const std::vector<char> &bytes, int file) {
  Answer header{status, bytes.size()};
  std::vector<char> message = bytesOf(header);
  message.insert(message.end(), bytes.begin(), bytes.end());
  process.pending.reset();
  sendAll(process.socket, message.data(), message.size(), file);
}

void Server::answerFailure(Process &process) {
  answer(process, Status::Failed,
         std::vector<char>(process.failure.begin(), process.failure.end()));
}

void Server::answerRefusal(Process &process, const Refusal &refusal) {
  auto error = int32_t(refusal.error);
  std::vector<char> bytes(sizeof error + refusal.text.size());
  std::memcpy(bytes.data(), &error, sizeof error);
  std::memcpy(bytes.data() + sizeof error, refusal.text.data(),
              refusal.text.size());
  answer(process, Status::Refused, bytes);
}

/// Answers every host whose wait is over; true if there was one.
bool Server::settle() {
  bool any = false;
  for (auto &process : processes) {
    if (!process->pending)
      continue;
    if (!process->failure.empty()) {
      answerFailure(*process);
    } else if (process->pending->isDone()) {
      auto result = std::move(process->pending->result);
      answer(*process, Status::Done, result ? result() : std::vector<char>());
    } else {
      continue;
    }
    any = true;
  }
  return any;
}

//===----------------------------------------------------------------------===//
// Sockets
//===----------------------------------------------------------------------===//

void Server::accept() {
  int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket < 0)
    return;
  processes.push_back(std::make_unique<Process>());
  processes.back()->socket = socket;
  processes.back()->streams[kLegacyStream].isLegacy = true;
}

/// Takes what has come and handles every whole message; false at the end.
bool Server::receive(Process &process) {
  constexpr size_t kChunk = 1 << 16;
  std::vector<char> &input = process.input;
  size_t had = input.size();
  input.resize(had + kChunk);
  ssize_t got = ::recv(process.socket, input.data() + had, kChunk, 0);
  input.resize(had + size_t(std::max<ssize_t>(got, 0)));
  if (got < 0 && errno == EINTR)
    return true;
  if (got <= 0)
    return false;
  size_t at = 0;
  Header header;
  while (input.size() - at >= sizeof header) {
    std::memcpy(&header, input.data() + at, sizeof header);
    if (input.size() - at - sizeof header < header.bytes)
      break;
    const char *body = input.data() + at + sizeof header;
    at += sizeof header + header.bytes;
    handle(process, header, Body(body, body + header.bytes));
  }
  input.erase(input.begin(), input.begin() + std::ptrdiff_t(at));
  return true;
}

void Server::remove(Process &process) {
  ::close(process.socket);
  process.socket = -1;
  process.dropWork();
  memory.freeAllOf(process);
  auto found = std::find_if(processes.begin(), processes.end(),
                            [&](auto &p) { return p.get() == &process; });
  gone.push_back(std::move(*found));
  processes.erase(found);
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

/// True if the job has ended. Other signals are handed on to it.
bool Server::handleSignal() {
  signalfd_siginfo info;
  if (::read(signals, &info, sizeof info) != ssize_t(sizeof info))
    return false;
  if (info.ssi_signo != SIGCHLD) {
    ::kill(job, int(info.ssi_signo));
    return false;
  }
  int state = 0;
  if (::waitpid(job, &state, WNOHANG) != job)
    return false;
  status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  return true;
}

/// In milliseconds: 0 if there is something to do, -1 if only a message can
/// change anything.
int Server::timeout() const {
  if (!anyHostWaits() || isStuck)
    return -1;
  if (allHostsWait() || isQuiet)
    return 0;
  return int(kQuiet.count());
}

/// Takes what has come; false when the job has ended.
bool Server::poll() {
  std::vector<pollfd> files = {{signals, POLLIN, 0}, {listener, POLLIN, 0}};
  std::vector<Process *> owners;
  for (auto &process : processes) {
    files.push_back({process->socket, POLLIN, 0});
    owners.push_back(process.get());
  }
  int count = ::poll(files.data(), files.size(), timeout());
  if (count == 0)
    isQuiet = true;
  if (count <= 0)
    return true;
  isQuiet = isStuck = false;
  if (files[0].revents && handleSignal())
    return false;
  if (files[1].revents)
    accept();
  for (size_t i = 0; i < owners.size(); ++i)
    if (files[i + 2].revents && !receive(*owners[i]))
      remove(*owners[i]);
  return true;
}

int Server::run() {
  while (poll()) {
    if (settle() || processes.empty() || !(allHostsWait() || isQuiet) || step())
      continue;
    isStuck = true;
    if (!options.hangs && allHostsWait() &&
        !collectives.waitsForNewcomer(processes.size()))
      reportDeadlock();
  }
  if (fault.wasPlanted())
    return status;
  std::fprintf(stderr, "fakecuda: the fault was not planted: no such call\n");
  return status != 0 ? status : 1;
}
