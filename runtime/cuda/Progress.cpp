//===- Progress.cpp - Which collective a GPU is in ------------------------===//
#include "Progress.h"
#include "CudaContext.h"
#include <cstring>
#include <cuda.h>

using namespace fsdp;
using namespace fsdp::rt;

/// The version of CUDA that brought these functions in the form used here: the
/// driver need not know the toolkit's.
static constexpr unsigned kVersionOfFunctions = 12000;

/// A function of the driver, which the runtime's library finds; null where the
/// driver lacks it.
template <typename Function> static Function *ofDriver(const char *name) {
  void *found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  require(cudaGetDriverEntryPointByVersion(name, &found, kVersionOfFunctions,
                                           cudaEnableDefault, &result),
          name);
  return result == cudaDriverEntryPointSuccess
             ? reinterpret_cast<Function *>(found)
             : nullptr;
}

Progress::WriteValue *Progress::findWrite() {
  auto *attributeOf =
      ofDriver<decltype(cuDeviceGetAttribute)>("cuDeviceGetAttribute");
  auto *write = ofDriver<WriteValue>("cuStreamWriteValue64");
  int device = 0, canWrite = 0;
  require(cudaGetDevice(&device), "the GPU");
  // The driver numbers GPUs as the runtime does. One that does not know the
  // attribute has no such operations.
  bool isKnown =
      attributeOf &&
      attributeOf(&canWrite, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
                  device) == CUDA_SUCCESS;
  return isKnown && canWrite ? write : nullptr;
}

Progress::Progress(size_t channels, WriteValue *writeValue)
    : writeValue(writeValue) {
  void *pinned = nullptr;
  size_t bytes = channels * sizeof *counters;
  require(cudaMallocHost(&pinned, bytes), "memory for progress");
  std::memset(pinned, 0, bytes);
  counters = static_cast<uint64_t *>(pinned);
}

Progress::~Progress() { cudaFreeHost(counters); }

void Progress::beginProgram(int index) {
  countLaunch();
  count.beginProgram(index);
}

void Progress::write(size_t channel, cudaStream_t stream, uint64_t counter) {
  auto address = reinterpret_cast<uintptr_t>(counters + channel);
  check(cudaError_t(writeValue(stream, address, counter, /*flags=*/0)),
        "progress of collectives");
}

void Progress::enter(size_t channel, cudaStream_t stream, int index) {
  inside = count.next(index);
  write(channel, stream, inside);
}

void Progress::leave(size_t channel, cudaStream_t stream) {
  write(channel, stream, ProgressCounter::after(inside));
}
