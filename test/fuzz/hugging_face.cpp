//===- hugging_face.cpp - Any text as a file of Hugging Face --------------===//
//
// A configuration that is accepted describes the same model when it is written
// and read again; files of an accepted index lie beside it. Then the text is
// one file of a directory whose other one is good: what is accepted is read.
//
//===----------------------------------------------------------------------===//
#include "Fuzz.h"
#include "runtime/checkpoint/huggingface/HuggingFace.h"
#include "runtime/checkpoint/huggingface/WeightMap.h"
#include "test/unit/runtime/PlantedFamily.h"

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::test;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static AddedFamily family(plantedFamily());
  static PlantedDirectory directory;
  std::string text = textOf(data, size);
  useOrRefuse([&] {
    rt::ModelInfo model = readModelConfig(text).model;
    std::string written = writeModelConfig(model, rt::DType::BF16, {});
    require(modelDifference(readModelConfig(written).model, model).empty());
  });
  useOrRefuse([&] {
    for (const auto &[tensor, file] : parseWeightMap(text, "index"))
      require(file.find('/') == std::string::npos && file != "..");
  });
  for (const char *name : {"config.json", "model.safetensors"})
    useOrRefuse([&] { directory.readWith(name, text); });
  return 0;
}
