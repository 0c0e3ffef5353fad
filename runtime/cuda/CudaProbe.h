//===- CudaProbe.h - What a context on a GPU tells the monitor ---*- C++
//-*-===//
//
// In which collective every channel is, and errors that NCCL has found
// meanwhile. When the job is to end, it aborts the communicators, so that
// nobody waits for a stream that does not come to an end.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CUDA_CUDAPROBE_H
#define FSDP_RUNTIME_CUDA_CUDAPROBE_H

#include "CudaContext.h"
#include "runtime/liveness/LivenessMonitor.h"

namespace fsdp::rt {

class CudaProbe final : public RankProbe {
public:
  /// `timeout` is in seconds, of a collective.
  CudaProbe(CudaContext &c, LivenessMonitor &monitor,
            const std::vector<int64_t> &meshAxes, double timeout);
  ~CudaProbe() override;
  CudaProbe(const CudaProbe &) = delete;
  CudaProbe &operator=(const CudaProbe &) = delete;

  /// Held while collectives are issued: communicators are not aborted under
  /// their user's hands. Does not return once the job is ending.
  std::unique_lock<std::timed_mutex> issuing();
  /// Does not return if the job is ending: what aborted collectives have left
  /// is no result.
  void holdIfEnding() const { monitor.holdIfEnding(); }

  uint64_t readCounters(uint64_t *counters) const override;
  std::string findProblem() override;
  void abandon() override;

private:
  CudaContext &c;
  LivenessMonitor &monitor;
  std::timed_mutex issue;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_CUDAPROBE_H
