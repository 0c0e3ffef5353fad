//===- Job.cpp - The ranks of a job, without MPI --------------------------===//
//
// Every rank has a connection to rank 0 (Rendezvous.h). What goes over them is
// small and outside the step path: NCCL's identifier, choices that all ranks
// must share, results. A second one carries heartbeats (LivenessMonitor.h).
//
//===----------------------------------------------------------------------===//
#include "JobMonitor.h"
#include "fsdp/Core/Context.h"
#include "fsdp/Core/Variables.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Signals.h"
#include "fsdp/Support/Text.h"
#include "runtime/rendezvous/Rendezvous.h"
#include <algorithm>
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
  LivenessMonitor *monitor = nullptr; // ends with leaveWorld, not by itself
  bool isJoined = false;
};

} // namespace

static Job &theJob() {
  static Job job;
  return job;
}

LivenessMonitor *rt::jobMonitor() { return theJob().monitor; }

/// That the rank has ended comes before what this one sees of it.
[[noreturn]] static void lose(int rank) {
  std::string problem = "lost the connection to rank " + std::to_string(rank);
  if (LivenessMonitor *monitor = jobMonitor())
    monitor->fail(problem);
  abortWorld(problem);
}

/// To rank 0, or from there to another.
static void sendTo(int rank, const void *data, int64_t bytes) {
  if (!sendAll(theJob().sockets[size_t(rank)], data, size_t(bytes)))
    lose(rank);
}

static void receiveFrom(int rank, void *data, int64_t bytes) {
  if (!receiveAll(theJob().sockets[size_t(rank)], data, size_t(bytes)))
    lose(rank);
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
    if (place->size > 1) {
      Lines lines = rendezvous(rendezvousEndpoint(*place), place->rank,
                               place->size, joinTimeout());
      job.sockets = lines.data;
      LivenessLimits limits =
          livenessLimits(heartbeatLimit(), collectiveTimeout());
      limits.begin = joinTimeout();
      job.monitor = new LivenessMonitor(
          place->rank, place->size, limits,
          makeTcpHeartbeats(place->rank, place->size, lines.heartbeats,
                            /*channels=*/0));
    }
  }
  job.isJoined = true;
  return job.world;
}

void rt::leaveWorld() {
  delete theJob().monitor;
  for (int s : theJob().sockets)
    if (s >= 0)
      ::close(s);
  theJob() = {};
}

void rt::abortWorld(const std::string &message, int exitCode) {
  LivenessMonitor *monitor = jobMonitor();
  if (monitor)
    monitor->claimEnd();
  std::fflush(stdout);
  World world = theJob().world;
  std::string who =
      world.size > 1 ? "rank " + std::to_string(world.rank) + ": " : "";
  std::fprintf(stderr, "fsdp: %s%s\n", who.c_str(), printable(message).c_str());
  if (monitor)
    monitor->tellEnd(exitCode);
  removeFilesOnSignal();
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

void rt::requireOnAll(const World &world, const std::string &problem) {
  int32_t mine = problem.empty() ? world.size : world.rank;
  std::vector<int32_t> all(size_t(world.size));
  gather(&mine, sizeof mine, all.data());
  int32_t first = *std::min_element(all.begin(), all.end());
  broadcast(&first, sizeof first);
  if (first == world.size)
    return;
  char text[1024] = {};
  problem.copy(text, sizeof text - 1);
  broadcast(text, sizeof text, first);
  throw Error(first == world.rank
                  ? problem
                  : "rank " + std::to_string(first) + " says: " + text);
}
