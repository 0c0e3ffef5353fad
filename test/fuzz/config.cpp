//===- config.cpp - Any text as the description of a run ------------------===//
#include "Fuzz.h"
#include "fsdp/Config/RunConfig.h"

using namespace fsdp;
using namespace fsdp::test;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static MemoryFile file;
  useOrRefuse([&] {
    RunConfig config;
    loadConfig(config, file.write(data, size));
    resolveConfig(config, 4);
    compiledSettings(config);
  });
  return 0;
}
