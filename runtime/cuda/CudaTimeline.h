//===- CudaTimeline.h - When a GPU did what ---------------------*- C++ -*-===//
//
// With FSDP_TRACE every launch lies between two events of its stream; their
// times are read when the program has ended, and go to the same Chrome trace as
// on the CPU. Events cost time on the GPU and keep kernels from following each
// other closely, so a traced run says what takes long and not how fast it is.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CUDA_CUDATIMELINE_H
#define FSDP_RUNTIME_CUDA_CUDATIMELINE_H

#include "runtime/core/Timeline.h"
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

namespace fsdp::rt {

class CudaContext;

/// What the host issues while it lives has this name in profilers.
class ProfilerRange {
public:
  explicit ProfilerRange(const char *name) { nvtxRangePushA(name); }
  ~ProfilerRange() { nvtxRangePop(); }
  ProfilerRange(const ProfilerRange &) = delete;
  ProfilerRange &operator=(const ProfilerRange &) = delete;
};

class CudaTimeline {
public:
  CudaTimeline(const std::string &file, int rank, Timeline::CallNames names);
  ~CudaTimeline();
  CudaTimeline(const CudaTimeline &) = delete;
  CudaTimeline &operator=(const CudaTimeline &) = delete;

  /// A program begins: on the stream that all others wait for.
  void beginProgram(cudaStream_t stream, int index, const char *name);
  /// It ends: on the stream that has waited for all others.
  void endProgram(cudaStream_t stream);
  /// Reads the clocks, once the host has waited for that stream.
  void collect();
  /// Step `number` of the run, from `begin` of the steady clock until now.
  void addStep(int64_t number, int64_t begin) {
    timeline.addStep(number, begin);
  }
  /// Between programs. Throws fsdp::Error.
  void write() { timeline.write(); }

  void beginCall() { timeline.beginCall(); }
  void endCall() { timeline.endCall(); }

  /// What is issued on a stream while it lives. Does nothing without a
  /// timeline, or where nothing is issued.
  class Span {
  public:
    Span(CudaContext &c, Stream stream, const char *name, int64_t a = 0,
         int64_t b = 0, int64_t d = 0, int64_t e = 0);
    ~Span();
    Span(const Span &) = delete;
    Span &operator=(const Span &) = delete;

  private:
    CudaContext &c;
    Stream stream;
    size_t launch = 0;
    bool isOn;
  };

private:
  struct Launch {
    Timeline::Entry entry;
    size_t begin, end; // of `events`
  };
  /// Records the next event; events are used again in every program.
  size_t mark(cudaStream_t stream);

  Timeline timeline;
  std::vector<cudaEvent_t> events;
  size_t used = 0, first = 0, last = 0;
  const char *program = nullptr;
  std::vector<Launch> launches;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_CUDATIMELINE_H
