//===- GoldenInitialTest.cpp - First values against the golden files ------===//
//
// The golden training run starts from values made in numpy. They must be the
// values that an artifact starts from, and the angles must be those of Llama
// 3.1 at positions beyond its original context.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Artifact/Manifest.h"
#include "fsdp/Data/Initialize.h"
#include "fsdp/Families/Rotary.h"
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace fsdp::rt;

static nlohmann::json readGolden(const std::string &name) {
  std::ifstream file(std::string(FSDP_GOLDEN_DIR "/") + name);
  return nlohmann::json::parse(file);
}

/// The initialiser that the model library gives to a tensor of this name.
struct Normal {
  double std, cut;
};
static Normal normalOf(const std::string &name, double dim) {
  if (name == "tok_embeddings.weight")
    return {1, 0};
  if (name == "output.weight")
    return {1 / std::sqrt(dim), 3};
  bool toResidual = name.find("wo.") != std::string::npos ||
                    name.find("w2.") != std::string::npos ||
                    name.find("w3.") != std::string::npos;
  if (!toResidual)
    return {0.02, 0};
  double layer = std::stod(name.substr(std::string("layers.").size()));
  return {0.02 / std::sqrt(2 * (layer + 1)), 0};
}

TEST(GoldenInitial, ParametersOfLlamaDebugStartAsInTheGoldenRun) {
  nlohmann::json golden = readGolden("llama_debug.json");
  uint64_t seed = golden["seed"], stride = golden["index_stride"];
  ASSERT_EQ(golden["tensors"].size(), 57u);
  for (const nlohmann::json &tensor : golden["tensors"]) {
    std::string name = tensor["name"];
    SCOPED_TRACE(name);
    if (tensor["shape"].size() == 1)
      continue; // Norms start at 1.
    uint64_t elements =
        tensor["shape"][0].get<uint64_t>() * tensor["shape"][1].get<uint64_t>();
    Normal normal = normalOf(name, golden["model"]["dim"]);
    uint64_t k = 0;
    for (float expected : tensor["initial"])
      EXPECT_EQ(normalValue(seed, name, k++ * stride % elements, normal.std,
                            normal.cut),
                expected);
    double squares = 0;
    for (uint64_t i = 0; i < elements; ++i)
      squares +=
          std::pow(normalValue(seed, name, i, normal.std, normal.cut), 2);
    EXPECT_NEAR(std::sqrt(squares) / tensor["initial_norm"].get<double>(), 1,
                1e-9);
  }
}

TEST(GoldenInitial, RotaryTablesHoldTheAnglesOfLlama31) {
  const nlohmann::json golden = readGolden("nn_ops.json");
  for (const nlohmann::json &table : golden["rotary_tables"]) {
    Initializer init;
    init.kind = Initializer::Kind::RotaryTable;
    fsdp::DecoderConfig config;
    config.headDim = table["head_dim"];
    config.ropeTheta = table["theta"];
    config.ropeFactor = table["factor"];
    config.ropeLow = table["low"];
    config.ropeHigh = table["high"];
    config.ropeOriginal = table["original"];
    init.frequencies = fsdp::rotaryNumbers(config, /*seqLen=*/1).frequencies;
    init.start = table["start"];
    RangeInfo range;
    range.name = "rope_table";
    range.dtype = DType::F32;
    range.full = {table["positions"], table["head_dim"].get<int64_t>() / 2, 2};
    range.shape = range.full;
    range.init = init;
    std::vector<float> values(table["values"].size());
    range.bytes = values.size() * sizeof(float);
    initializeRange(Manifest(), range, 0, 0,
                    reinterpret_cast<std::byte *>(values.data()));
    // f32 has a unit in the last place of 6e-8 below 1; an angle of 9000 is
    // itself exact to 2e-12.
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(values[i], table["values"][i].get<double>(), 4e-8) << i;
  }
}
