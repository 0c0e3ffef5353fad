//===- checkpoint.cpp - Any text as the index of a checkpoint -------------===//
//
// The marker is the checksum of the index: it has no parser. What is accepted
// is covered by its boxes, and means the same when it is written again.
//
//===----------------------------------------------------------------------===//
#include "Fuzz.h"
#include "runtime/checkpoint/native/Index.h"

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::test;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text = textOf(data, size);
  useOrRefuse([&] {
    Index index = parseIndex(text, "index");
    std::string written = indexText(index);
    require(indexText(parseIndex(written, "index")) == written);
    Contents twice = index.contents;
    addPart(twice, index.contents, "index");
  });
  useOrRefuse([&] { parsePart(text, "part"); });
  return 0;
}
