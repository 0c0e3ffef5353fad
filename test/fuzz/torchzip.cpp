//===- torchzip.cpp - Any bytes as an archive of torch.save ---------------===//
#include "runtime/checkpoint/dcp/TorchZip.h"
#include "Fuzz.h"
#include "fsdp/Artifact/Manifest.h"
#include "runtime/checkpoint/dcp/TorchSave.h"
#include "runtime/checkpoint/store/BlockChecksums.h"

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::test;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static volatile uint64_t sink;
  std::string bytes = textOf(data, size);
  useOrRefuse([&] {
    TorchZip zip(bytes, "archive");
    for (const ZipEntry &entry : zip.entries()) {
      require(entry.data.data() >= bytes.data() &&
              entry.data.data() + entry.data.size() <= bytes.data() + size);
      sink = crc32Of(entry.data);
    }
  });
  // Every byte that the tensor claims is read.
  useOrRefuse([&] {
    TorchTensor tensor = readTorchTensor(bytes, "archive");
    int64_t count = rt::elementCount(tensor.shape) * sizeOf(tensor.dtype);
    for (int64_t i = 0; i < count; ++i)
      sink = static_cast<uint64_t>(tensor.data[i]);
  });
  useOrRefuse([&] { readTorchInteger(bytes, "archive"); });
  return 0;
}
