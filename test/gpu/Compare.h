//===- Compare.h - Whether two results are equal, on the GPU ----*- C++ -*-===//
#ifndef FSDP_TEST_GPU_COMPARE_H
#define FSDP_TEST_GPU_COMPARE_H

#include <cstddef>
#include <cstdint>
#ifndef FSDP_CUDA_SHIM
#include <cuda_runtime_api.h>

namespace fsdp::gpu {

/// Adds to `differences`, in the GPU's memory, how many elements of two bytes
/// differ; `bytes` is even.
cudaError_t issueCompare(cudaStream_t stream, const void *a, const void *b,
                         size_t bytes, unsigned long long *differences);

} // namespace fsdp::gpu
#endif

#endif // FSDP_TEST_GPU_COMPARE_H
