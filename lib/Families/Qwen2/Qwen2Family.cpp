//===- Qwen2Family.cpp - The table of Qwen2 and Qwen2.5 -------------------===//
//
// Yang et al., 2024. Llama with biases of queries, keys and values, and windows
// in the upper layers. Keys and defaults are those of transformers'
// Qwen2Config.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Support/CheckedSize.h"
#include "lib/Families/DecoderTensors.h"
#include "lib/Families/FamilyParts.h"

using namespace fsdp;
using namespace fsdp::checkpoint;

static std::vector<ConfigKey> configKeys() {
  return withSharedKeys(
      joined({{onlyModel("[\"Qwen2ForCausalLM\"]"),
               noHeadDim(),
               // Published files have it.
               {"use_mrope",
                KeyRole::Fixed,
                {"null", "false"},
                "positions have one axis"}},
              usualKeys(),
              rotaryKeys(),
              keysOf({"hidden_act", "use_sliding_window", "sliding_window",
                      "max_window_layers", "layer_types"}),
              keysOf({"attention_dropout"}, KeyRole::Dropout)}));
}

static std::vector<ConfigField> configFields() {
  std::vector<ConfigField> fields = usualFields(
      {"4096", "32", "32", "32", "22016", "151936", "32768", "1e-06", "false"});
  fields.push_back(activationField("hidden_act", "silu"));
  return fields;
}

static DecoderConfig size(int64_t dim, int64_t layers, int64_t heads,
                          int64_t kvHeads, int64_t ffnDim, int64_t maxSeqLen) {
  DecoderConfig config;
  config.dim = dim;
  config.layers = layers;
  config.heads = heads;
  config.kvHeads = kvHeads;
  config.ffnDim = ffnDim;
  config.vocab = 151936;
  config.maxSeqLen = maxSeqLen;
  config.normEps = 1e-6;
  config.ropeTheta = 1e6;
  config.ropeHalves = true;
  config.qkvBias = true;
  config.tied = true;
  return config;
}

Family checkpoint::qwen2Family() {
  constexpr bool kRare = true;
  Family family;
  family.name = family.modelType = "qwen2";
  family.title = "Qwen2 and Qwen2.5";
  family.tensors = qwen2Tensors();
  family.ignored = {".rotary_emb.inv_freq"};
  family.keys = configKeys();
  family.fields = configFields();
  family.base = size(896, 24, 14, 2, 4864, 32768);
  family.modelFields = withUsualFields(
      {{"window", kRare}, {"window_layers", kRare}, {"activation", kRare}});
  family.sizes = {
      {"qwen2.5_0.5b", "Qwen2.5 0.5B, tied", 4096,
       size(896, 24, 14, 2, 4864, 32768)},
      {"qwen2.5_1.5b", "Qwen2.5 1.5B, tied", 4096,
       size(1536, 28, 12, 2, 8960, 131072)},
  };
  family.windows = WindowRule::FromLayer;
  family.defaultWindow = 4096;
  family.ropeTypes = allRopeTypes();
  return family;
}
