//===- Compare.cu - Whether two results are equal, on the GPU -------------===//
//
// Results of several gigabytes stay where they are: a link to the host moves
// less than a hundredth of what the GPU's memory does.
//
//===----------------------------------------------------------------------===//
#include "Compare.h"

namespace fsdp::gpu {

constexpr int64_t kThreads = 256, kPerThread = 64;

/// Adds the number of elements of two bytes in which `a` and `b` differ.
__global__ void countDifferences(const uint16_t *a, const uint16_t *b,
                                 int64_t count,
                                 unsigned long long *differences) {
  int64_t first = int64_t(blockIdx.x) * kThreads * kPerThread + threadIdx.x;
  unsigned long long mine = 0;
  for (int64_t k = 0; k < kPerThread; ++k)
    if (int64_t i = first + k * kThreads; i < count)
      mine += a[i] != b[i];
  if (mine > 0)
    atomicAdd(differences, mine);
}

} // namespace fsdp::gpu

#ifndef FSDP_CUDA_SHIM
cudaError_t fsdp::gpu::issueCompare(cudaStream_t stream, const void *a,
                                    const void *b, size_t bytes,
                                    unsigned long long *differences) {
  auto count = int64_t(bytes / sizeof(uint16_t));
  auto blocks = unsigned((count - 1) / (kThreads * kPerThread) + 1);
  void *arguments[] = {&a, &b, &count, &differences};
  return cudaLaunchKernel(reinterpret_cast<const void *>(countDifferences),
                          dim3(blocks), dim3(unsigned(kThreads)), arguments, 0,
                          stream);
}
#endif
