//===- CudaProbe.cpp - What a context on a GPU tells the monitor
//-----------===//
#include "CudaProbe.h"
#include "runtime/collectives/Groups.h"
#include <future>
#include <thread>

using namespace fsdp;
using namespace fsdp::rt;

/// Without counters nobody knows where a rank is.
static ContextChannels channelsOf(const CudaContext &c,
                                  const std::vector<int64_t> &meshAxes,
                                  double limit) {
  return {c.artifact, c.progress ? c.channels.size() : 0,
          [artifact = c.artifact, meshAxes](int rank, size_t channel) {
            auto groups = size_t(artifact->groups);
            return groupRanks(artifact->group[channel % groups], meshAxes,
                              rank);
          },
          limit};
}

CudaProbe::CudaProbe(CudaContext &c, LivenessMonitor &monitor,
                     const std::vector<int64_t> &meshAxes, double timeout)
    : RankProbe(channelsOf(c, meshAxes, timeout)), c(c), monitor(monitor) {
  monitor.watch(this);
}

CudaProbe::~CudaProbe() { monitor.watch(nullptr); }

std::unique_lock<std::timed_mutex> CudaProbe::issuing() {
  std::unique_lock<std::timed_mutex> lock(issue);
  if (monitor.isEnding()) {
    lock.unlock();
    monitor.holdIfEnding();
  }
  return lock;
}

uint64_t CudaProbe::readCounters(uint64_t *counters) const {
  for (size_t i = 0; i < channels.count; ++i)
    counters[i] = c.progress->counter(i);
  return c.progress ? c.progress->launches() : 0;
}

std::string CudaProbe::findProblem() {
  for (size_t i = 0; i < c.channels.size(); ++i) {
    if (!c.channels[i])
      continue;
    ncclResult_t status = c.channels[i]->asynchronousError();
    if (status != ncclSuccess && status != ncclInProgress)
      return std::string("NCCL reports an error on stream ") +
             streamName(Stream(i / size_t(c.artifact->groups))) + ": " +
             statusText(status);
  }
  return {};
}

/// Neither waits for ever for a thread that is inside of NCCL nor for NCCL.
void CudaProbe::abandon() {
  std::unique_lock<std::timed_mutex> lock(issue, std::chrono::seconds(1));
  if (!lock)
    return;
  // Each may wait for the kernels of the others, and for graphs that hold its
  // own: all are told before any is waited for.
  std::vector<std::future<void>> aborted;
  auto abort = [&](auto &&how) {
    std::packaged_task<void()> task(how);
    aborted.push_back(task.get_future());
    std::thread(std::move(task)).detach();
  };
  for (auto &channel : c.channels)
    if (channel)
      abort([&channel] { channel->abort(); });
  abort([this] { ncclCommAbort(c.worldCommunicator); });
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (std::future<void> &one : aborted)
    one.wait_until(end);
}
