//===- Parallel.h - Splitting work for the compute threads ------*- C++ -*-===//
#ifndef FSDP_RUNTIME_ONEDNN_PARALLEL_H
#define FSDP_RUNTIME_ONEDNN_PARALLEL_H

#include <cstdint>
#include <omp.h>

namespace fsdp::rt {

/// Below this many elements the start of a parallel region costs more than it
/// saves.
constexpr int64_t kParallelElements = 1 << 15;

/// Calls body(begin, end, thread) on pieces of [0, count), split at multiples
/// of `grain`; an item is `elements` elements of work.
template <typename Body>
void parallelFor(int threads, int64_t count, int64_t elements, int64_t grain,
                 const Body &body) {
  bool isSmall =
      elements < kParallelElements && count * elements < kParallelElements;
  if (threads <= 1 || count <= grain || isSmall) {
    if (count > 0)
      body(int64_t(0), count, 0);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    int64_t team = omp_get_num_threads(), me = omp_get_thread_num();
    int64_t pieces = (count + grain - 1) / grain;
    int64_t begin = pieces * me / team * grain;
    int64_t end = pieces * (me + 1) / team * grain;
    end = end < count ? end : count;
    if (begin < end)
      body(begin, end, int(me));
  }
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_ONEDNN_PARALLEL_H
