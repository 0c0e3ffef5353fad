//===- CpuContext.h - The CPU context, seen from inside ---------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CPU_CPUCONTEXT_H
#define FSDP_RUNTIME_CPU_CPUCONTEXT_H

#include "fsdp/Artifact/Mesh.h"
#include "fsdp/Core/Context.h"
#include "runtime/collectives/Channel.h"
#include "runtime/collectives/HostProgress.h"
#include "runtime/collectives/StreamWorker.h"
#include "runtime/core/Arena.h"
#include "runtime/core/DataErrors.h"
#include "runtime/core/ObservedCall.h"
#include "runtime/core/RunPrograms.h"
#include "runtime/core/Timeline.h"
#include "runtime/onednn/BlockedAttention.h"
#include "runtime/onednn/Gemm.h"
#include <atomic>

namespace fsdp::rt {

class CpuContext : public Context {
public:
  const fsdp_artifact *artifact = nullptr;
  int threads = 1;
  World world;
  Arena arena;
  Timeline timeline;
  std::atomic<unsigned> dataErrors{0};

  std::vector<std::unique_ptr<Gemm>> gemms;
  /// Null: the reference kernel.
  std::vector<std::unique_ptr<BlockedAttention>> attentions;

  /// This rank's place in every group.
  std::vector<Coordinate> places;
  /// A channel that does not come to an end needs both, up to its own end. The
  /// second is null without a heartbeat.
  std::unique_ptr<HostProgress> progress;
  std::unique_ptr<LivenessMonitor> monitor;
  /// Channels by (stream, group): a communicator carries one total order. Null
  /// for a group without a collective.
  std::vector<std::unique_ptr<Channel>> channels;
  Events events;
  /// Null for the compute stream, which is the calling thread, and for the
  /// copy stream until a program uses it. Programs are issued by one thread.
  std::unique_ptr<StreamWorker> workers[kStreams];
  /// Of one command.
  int maxPointers = 0;

  /// Null but while a program is observed.
  CallObserver *observer = nullptr;

  /// The programs of a step, and what was wrong with the data of the last.
  std::vector<int> step;
  std::string stepError;

  /// Null for the compute stream.
  StreamWorker *worker(Stream stream) {
    if (stream == Stream::Copy && !workers[int(stream)])
      startWorker(stream);
    return workers[int(stream)].get();
  }
  void startWorker(Stream stream);

  Channel &channel(Stream stream, int group) {
    return *channels[size_t(stream) * size_t(artifact->groups) + size_t(group)];
  }
};

/// Every context of this runtime is one.
inline CpuContext &cpuContext(Context &context) {
  return static_cast<CpuContext &>(context);
}
inline const CpuContext &cpuContext(const Context &context) {
  return static_cast<const CpuContext &>(context);
}

/// A call that runs on the calling thread. Ends the job if `stream` is not the
/// compute stream: only collectives and copies run on the others.
class ComputeCall : ObservedCall {
public:
  ComputeCall(CpuContext &c, Stream stream, const char *what);
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CPU_CPUCONTEXT_H
