//===- safetensors.cpp - Any file as safetensors --------------------------===//
#include "fsdp/Data/Safetensors.h"
#include "Fuzz.h"
#include "fsdp/Artifact/Manifest.h"

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

/// Every byte that a tensor claims is read.
static uint64_t sumOf(const SafetensorsFile &file) {
  uint64_t sum = 0;
  for (const TensorView &tensor : file.tensors())
    for (int64_t i = 0; i < elementCount(tensor.shape) * sizeOf(tensor.dtype);
         ++i)
      sum += static_cast<uint64_t>(tensor.data[i]);
  return sum;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static MemoryFile memory;
  static volatile uint64_t sink;
  useOrRefuse([&] {
    SafetensorsFile file(memory.write(data, size));
    require(file.header().size() <= size);
    sink = sumOf(file);
  });
  return 0;
}
