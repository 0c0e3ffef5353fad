//===- manifest.cpp - Any text as the manifest of an artifact -------------===//
#include "fsdp/Artifact/Manifest.h"
#include "Fuzz.h"
#include "runtime/checkpoint/native/CheckpointFolder.h"

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

/// A box lies in the tensor and in what the rank stores.
static void checkView(const RangeInfo &range, const ShardView &view) {
  for (size_t d = 0; d < range.full.size(); ++d)
    require(0 <= view.offsets[d] && 0 <= view.sizes[d] &&
            view.end(d) <= range.full[d] && view.sizes[d] <= view.stored[d] &&
            view.stored[d] == range.shape[d]);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  useOrRefuse([&] {
    Manifest manifest = parseManifest(textOf(data, size), "m.json");
    for (int64_t rank : {int64_t{0}, manifest.ranks() - 1}) {
      for (const RangeInfo &range : manifest.ranges)
        checkView(range, manifest.shardView(range, rank));
      checkpoint::ownedBoxes(manifest, rank);
    }
  });
  return 0;
}
