//===- Progress.h - Which collective a GPU is in ----------------*- C++ -*-===//
//
// A stream writes the channel's progress counter in the host's memory before
// every collective and after it. The host reads them without a call of CUDA,
// which could wait for what hangs. The writes are stream memory operations:
// they need no place on a multiprocessor, as kernels do, and no copy engine,
// are on the stream of the collective, and are nodes of a graph like any other.
// Events would say the same, but to ask for them is a call of the driver, and
// after a replay they say less: a counter says which collective of which
// program it is.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CUDA_PROGRESS_H
#define FSDP_RUNTIME_CUDA_PROGRESS_H

#include "fsdp/Runtime/Types.h"
#include "runtime/liveness/ProgressCounter.h"
#include <atomic>
#include <cuda_runtime_api.h>
#include <vector>

namespace fsdp::rt {

class Progress {
public:
  /// The driver's cuStreamWriteValue64.
  using WriteValue = int(cudaStream_t, unsigned long long address,
                         uint64_t value, unsigned flags);
  /// Null where the driver or the current GPU has no 64-bit stream memory
  /// operations. Throws fsdp::Error.
  static WriteValue *findWrite();

  /// Throws fsdp::Error.
  Progress(size_t channels, WriteValue *writeValue);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// The next collectives are those of a run of this program.
  void beginProgram(int index);
  /// The next program's collectives count as those of the first run. For all
  /// ranks at once, while none is in a collective.
  void restart() { count = {}; }
  /// Something is launched that has been issued before.
  void countLaunch() { ++launched; }
  /// Before the next collective, `index` in the artifact's table, and after it.
  void enter(size_t channel, cudaStream_t stream, int index);
  void leave(size_t channel, cudaStream_t stream);

  uint64_t counter(size_t channel) const {
    return __atomic_load_n(counters + channel, __ATOMIC_RELAXED);
  }
  /// Programs and steps launched so far. Any thread.
  uint64_t launches() const { return launched; }

private:
  void write(size_t channel, cudaStream_t stream, uint64_t counter);

  WriteValue *const writeValue;
  uint64_t *counters = nullptr; // pinned, by channel
  ProgressCount count;
  uint64_t inside = 0; // the counter of the collective at hand
  std::atomic<uint64_t> launched{0};
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_PROGRESS_H
