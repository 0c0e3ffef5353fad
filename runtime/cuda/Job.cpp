//===- Job.cpp - The ranks of a job, without MPI --------------------------===//
//
// Every rank has a connection to rank 0 (Meeting.h). What goes over them is
// small and outside the step path: NCCL's identifier, choices that all ranks
// must share, results.
//
//===----------------------------------------------------------------------===//
#include "../launch/Meeting.h"
#include "fsdp/Runtime/Context.h"
#include "fsdp/Runtime/Variables.h"
#include "fsdp/Support/Signals.h"
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
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

} // namespace

static Job &theJob() {
  static Job job;
  return job;
}

/// Calls `transfer` with the place of what is left until `bytes` are through to
/// or from `rank`.
template <typename Transfer>
static void transferAll(int rank, int64_t bytes, Transfer transfer) {
  for (int64_t done = 0; done < bytes;) {
    ssize_t count = transfer(theJob().sockets[size_t(rank)], done);
    if (count > 0)
      done += count;
    else if (count == 0 || errno != EINTR)
      abortWorld("lost the connection to rank " + std::to_string(rank));
  }
}

/// To rank 0, or from there to another.
static void sendTo(int rank, const void *data, int64_t bytes) {
  auto *from = static_cast<const char *>(data);
  transferAll(rank, bytes, [&](int socket, int64_t done) {
    return ::send(socket, from + done, size_t(bytes - done), MSG_NOSIGNAL);
  });
}

static void receiveFrom(int rank, void *data, int64_t bytes) {
  auto *to = static_cast<char *>(data);
  transferAll(rank, bytes, [&](int socket, int64_t done) {
    return ::recv(socket, to + done, size_t(bytes - done), 0);
  });
}

//===----------------------------------------------------------------------===//
// Context.h
//===----------------------------------------------------------------------===//

World rt::joinWorld() {
  Job &job = theJob();
  if (job.isJoined)
    return job.world;
  if (auto place = detectLaunch()) {
    job.world = {place->rank, place->size};
    if (place->size > 1)
      job.sockets =
          meet(meetingPlace(*place), place->rank, place->size, joinTimeout());
  }
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
  std::fflush(stdout);
  World world = theJob().world;
  std::string who =
      world.size > 1 ? "rank " + std::to_string(world.rank) + ": " : "";
  std::fprintf(stderr, "fsdp: %s%s\n", who.c_str(), message.c_str());
  removeFilesOnSignal();
  // The others lose their connection to this process and end too.
  _exit(exitCode);
}

/// Rank 0 gets every rank's bytes in order; elsewhere `all` is not used.
static void gatherAtFirst(const void *mine, int64_t bytes, char *all) {
  Job &job = theJob();
  if (job.world.rank != 0) {
    sendTo(0, mine, bytes);
    return;
  }
  std::memcpy(all, mine, size_t(bytes));
  for (int r = 1; r < job.world.size; ++r)
    receiveFrom(r, all + r * bytes, bytes);
}

static void broadcastFromFirst(void *data, int64_t bytes) {
  Job &job = theJob();
  if (job.world.rank != 0) {
    receiveFrom(0, data, bytes);
    return;
  }
  for (int r = 1; r < job.world.size; ++r)
    sendTo(r, data, bytes);
}

void rt::barrier() {
  double nothing = 0;
  allReduceSum(&nothing, 1);
}

void rt::broadcast(void *data, int64_t bytes, int root) {
  World world = joinWorld();
  if (root != 0 && world.rank == root)
    sendTo(0, data, bytes);
  if (root != 0 && world.rank == 0)
    receiveFrom(root, data, bytes);
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
    sendTo(root, received.data(), total);
  else if (world.rank == root)
    receiveFrom(0, all, total);
}
