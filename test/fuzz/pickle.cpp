//===- pickle.cpp - Any bytes as a pickle ---------------------------------===//
//
// With the names that a checkpoint's metadata may have. What is accepted has no
// value in itself, and a metadata's boxes lie in their tensors.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/dcp/Pickle.h"
#include "Fuzz.h"
#include "runtime/checkpoint/dcp/DcpMetadata.h"

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::test;

/// Values may be shared so often that no walk ends: some are enough.
static void walk(const PickleValue &value, int &left) {
  for (const PickleValue *item : value.items) {
    require(item->depth < value.depth && value.depth <= kMaxPickleDepth);
    if (left-- > 0)
      walk(*item, left);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string bytes = textOf(data, size);
  useOrRefuse([&] {
    Pickle pickle(bytes, "pickle", {"torch.Size", "torch.float32"});
    int left = 10000;
    walk(pickle.root(), left);
  });
  useOrRefuse([&] {
    for (const DcpItem &item : readDcpMetadata(bytes, "metadata"))
      for (const DcpBox &box : item.boxes)
        for (size_t d = 0; d < item.shape.size(); ++d)
          require(box.offsets.at(d) + box.sizes.at(d) <= item.shape[d]);
  });
  return 0;
}
