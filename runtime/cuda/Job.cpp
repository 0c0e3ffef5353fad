//===- Job.cpp - The ranks of a job, without MPI --------------------------===//
//
// Ranks meet at MASTER_ADDR:MASTER_PORT, as torchrun's do: rank 0 listens, the
// others connect. What goes over these connections is small and outside the
// step path: NCCL's identifier, choices that all ranks must share, results.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Runtime/Context.h"
#include "fsdp/Runtime/Launch.h"
#include "fsdp/Support/Error.h"
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;

namespace {

/// The connections of this process: on rank 0 one per rank, elsewhere that to
/// rank 0 at position 0.
struct Job {
  World world;
  std::vector<int> sockets;
  bool isJoined = false;
};

Job &theJob() {
  static Job job;
  return job;
}

constexpr int kConnectSeconds = 120;

} // namespace

//===----------------------------------------------------------------------===//
// Sockets
//===----------------------------------------------------------------------===//

static void sendAll(int socket, const void *data, int64_t bytes) {
  auto *from = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t sent = ::send(socket, from, size_t(bytes), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent <= 0)
      abortWorld("lost the connection to another rank");
    from += sent;
    bytes -= sent;
  }
}

static void receiveAll(int socket, void *data, int64_t bytes) {
  auto *to = static_cast<char *>(data);
  while (bytes > 0) {
    ssize_t got = ::recv(socket, to, size_t(bytes), 0);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      abortWorld("lost the connection to another rank");
    to += got;
    bytes -= got;
  }
}

static std::string variable(const char *name, const char *otherwise) {
  const char *text = std::getenv(name);
  return text ? text : otherwise;
}

/// The place where ranks meet. The caller frees the list.
static addrinfo *meetingPoint(bool listens) {
  std::string host = variable("MASTER_ADDR", "127.0.0.1");
  std::string port = variable("MASTER_PORT", "29500");
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = listens ? AI_PASSIVE : 0;
  int status = getaddrinfo(listens ? nullptr : host.c_str(), port.c_str(),
                           &hints, &found);
  if (status != 0)
    throw Error("MASTER_ADDR=" + host + " MASTER_PORT=" + port + ": " +
                gai_strerror(status));
  return found;
}

static int openSocket(const addrinfo &at) {
  int s = ::socket(at.ai_family, at.ai_socktype, at.ai_protocol);
  int on = 1;
  if (s >= 0)
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return s;
}

/// Rank 0 takes a connection from each other rank, which says who it is.
static void acceptRanks(Job &job) {
  addrinfo *at = meetingPoint(/*listens=*/true);
  int listener = openSocket(*at), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  bool listens = ::bind(listener, at->ai_addr, at->ai_addrlen) == 0 &&
                 ::listen(listener, job.world.size) == 0;
  freeaddrinfo(at);
  if (!listens)
    throw Error("cannot listen on MASTER_PORT=" +
                variable("MASTER_PORT", "29500") + ": " + std::strerror(errno));
  job.sockets.assign(size_t(job.world.size), -1);
  for (int i = 1; i < job.world.size; ++i) {
    int s = ::accept(listener, nullptr, nullptr);
    int32_t rank = -1;
    if (s >= 0)
      receiveAll(s, &rank, sizeof rank);
    if (rank < 1 || rank >= job.world.size || job.sockets[size_t(rank)] >= 0)
      throw Error("rank " + std::to_string(rank) +
                  " came to the meeting point, but the job has ranks 0 to " +
                  std::to_string(job.world.size - 1) + ", each once");
    job.sockets[size_t(rank)] = s;
  }
  ::close(listener);
}

/// The other ranks come as soon as rank 0 listens.
static void connectToFirst(Job &job) {
  addrinfo *at = meetingPoint(/*listens=*/false);
  auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(kConnectSeconds);
  int s = -1;
  while (true) {
    s = openSocket(*at);
    if (s >= 0 && ::connect(s, at->ai_addr, at->ai_addrlen) == 0)
      break;
    ::close(s);
    if (std::chrono::steady_clock::now() > deadline) {
      freeaddrinfo(at);
      throw Error("rank " + std::to_string(job.world.rank) +
                  " cannot reach rank 0 at MASTER_ADDR, MASTER_PORT: " +
                  std::strerror(errno));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  freeaddrinfo(at);
  int32_t rank = job.world.rank;
  sendAll(s, &rank, sizeof rank);
  job.sockets = {s};
}

//===----------------------------------------------------------------------===//
// Context.h
//===----------------------------------------------------------------------===//

World rt::joinWorld() {
  Job &job = theJob();
  if (job.isJoined)
    return job.world;
  if (auto place = detectLaunch())
    job.world = {place->rank, place->size};
  if (job.world.size > 1 && job.world.rank == 0)
    acceptRanks(job);
  else if (job.world.size > 1)
    connectToFirst(job);
  job.isJoined = true;
  return job.world;
}

void rt::leaveWorld() {
  for (int s : theJob().sockets)
    if (s >= 0)
      ::close(s);
  theJob() = {};
}

void rt::abortWorld(const std::string &message, int exitCode) {
  // The others lose their connection to this process and end too.
  std::fprintf(stderr, "rank %d: %s\n", theJob().world.rank, message.c_str());
  std::_Exit(exitCode);
}

/// Rank 0 gets every rank's bytes in order; elsewhere `all` is not used.
static void gatherAtFirst(const void *mine, int64_t bytes, char *all) {
  Job &job = theJob();
  if (job.world.rank != 0) {
    sendAll(job.sockets[0], mine, bytes);
    return;
  }
  std::memcpy(all, mine, size_t(bytes));
  for (int r = 1; r < job.world.size; ++r)
    receiveAll(job.sockets[size_t(r)], all + r * bytes, bytes);
}

static void broadcastFromFirst(void *data, int64_t bytes) {
  Job &job = theJob();
  if (job.world.rank != 0) {
    receiveAll(job.sockets[0], data, bytes);
    return;
  }
  for (int r = 1; r < job.world.size; ++r)
    sendAll(job.sockets[size_t(r)], data, bytes);
}

void rt::barrier() {
  double nothing = 0;
  allReduceSum(&nothing, 1);
}

void rt::broadcast(void *data, int64_t bytes, int root) {
  World world = joinWorld();
  if (root != 0 && world.rank == root)
    sendAll(theJob().sockets[0], data, bytes);
  if (root != 0 && world.rank == 0)
    receiveAll(theJob().sockets[size_t(root)], data, bytes);
  broadcastFromFirst(data, bytes);
}

void rt::allReduceSum(double *values, int count) {
  World world = joinWorld();
  int64_t bytes = count * int64_t(sizeof(double));
  std::vector<double> all(size_t(world.size) * size_t(count));
  gatherAtFirst(values, bytes, reinterpret_cast<char *>(all.data()));
  if (world.rank == 0)
    for (int i = 0; i < count; ++i) {
      values[i] = all[size_t(i)];
      for (int r = 1; r < world.size; ++r)
        values[i] += all[size_t(r) * count + i];
    }
  broadcastFromFirst(values, bytes);
}

void rt::gather(const void *mine, int64_t bytes, void *all, int root) {
  World world = joinWorld();
  std::vector<char> received(
      world.rank == 0 ? size_t(bytes) * size_t(world.size) : 0);
  gatherAtFirst(mine, bytes, received.data());
  int64_t total = bytes * world.size;
  if (world.rank == 0 && root == 0)
    std::memcpy(all, received.data(), size_t(total));
  else if (world.rank == 0)
    sendAll(theJob().sockets[size_t(root)], received.data(), total);
  else if (world.rank == root)
    receiveAll(theJob().sockets[0], all, total);
}
