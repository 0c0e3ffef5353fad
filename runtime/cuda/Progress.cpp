//===- Progress.cpp - Which collective a GPU is in ------------------------===//
#include "Progress.h"
#include "CudaContext.h"
#include <cstring>

using namespace fsdp;
using namespace fsdp::rt;

Progress::Progress(size_t channels) {
  const char *const what = "the driver's cuStreamWriteValue64";
  void *found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  require(cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &found,
                                           CUDART_VERSION, cudaEnableDefault,
                                           &result),
          what);
  if (result != cudaDriverEntryPointSuccess || !found)
    throw Error(std::string(what) + ": there is none; install a newer driver");
  writeValue = reinterpret_cast<WriteValue *>(found);
  void *pinned = nullptr;
  size_t bytes = channels * sizeof *words;
  require(cudaMallocHost(&pinned, bytes), "memory for progress");
  std::memset(pinned, 0, bytes);
  words = static_cast<uint64_t *>(pinned);
}

Progress::~Progress() { cudaFreeHost(words); }

void Progress::beginProgram(int index) {
  countLaunch();
  place = {uint16_t(place.run + 1), uint16_t(index), 0, false};
}

void Progress::write(size_t channel, cudaStream_t stream) {
  auto address = reinterpret_cast<uintptr_t>(words + channel);
  // Errors of the driver have the same numbers as those of the runtime.
  check(cudaError_t(writeValue(stream, address, wordOf(place), /*flags=*/0)),
        "progress of collectives");
}

void Progress::enter(size_t channel, cudaStream_t stream) {
  place.isInside = true;
  write(channel, stream);
}

void Progress::leave(size_t channel, cudaStream_t stream) {
  place.isInside = false;
  write(channel, stream);
  ++place.number;
}
