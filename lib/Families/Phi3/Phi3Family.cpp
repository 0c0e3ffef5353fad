//===- Phi3Family.cpp - The table of Phi-3 --------------------------------===//
//
// Abdin et al., 2024. Llama whose files join queries, keys and values, and gate
// and up, with a window in every layer, and heads of which a part is rotated.
// Keys and defaults are those of transformers' Phi3Config.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Support/CheckedSize.h"
#include "lib/Families/DecoderTensors.h"
#include "lib/Families/FamilyParts.h"

using namespace fsdp;
using namespace fsdp::checkpoint;

static std::vector<ConfigKey> configKeys() {
  std::vector<ConfigKey> rotary = rotaryKeys();
  for (ConfigKey &key : rotary)
    if (std::string(key.name) == "partial_rotary_factor")
      key = {key.name, KeyRole::Used};
  return withSharedKeys(
      joined({{onlyModel("[\"Phi3ForCausalLM\"]"), noHeadDim()},
              usualKeys(),
              rotary,
              keysOf({"hidden_act", "sliding_window", "layer_types"}),
              keysOf({"resid_pdrop", "embd_pdrop", "attention_dropout"},
                     KeyRole::Dropout),
              // Published files have it; the model has no biases either way.
              keysOf({"attention_bias"}, KeyRole::Harmless)}));
}

static std::vector<ConfigField> configFields() {
  using Type = ConfigField::Type;
  std::vector<ConfigField> fields =
      usualFields({"3072", "32", "32", "n_heads", "8192", "32064", "4096",
                   "1e-05", "false"});
  fields.push_back({"original_max_position_embeddings", "rope_original",
                    Type::Integer, "4096", kMaxDimension});
  fields.push_back(activationField("hidden_act", "silu"));
  return fields;
}

/// Phi-3 mini with 4,096 positions.
static DecoderConfig base() {
  DecoderConfig config;
  config.dim = 3072;
  config.layers = 32;
  config.heads = 32;
  config.kvHeads = 32;
  config.ffnDim = 8192;
  config.vocab = 32064;
  config.maxSeqLen = 4096;
  config.ropeOriginal = 4096;
  config.ropeHalves = true;
  config.window = 2047;
  return config;
}

Family checkpoint::phi3Family() {
  constexpr bool kRare = true;
  Family family;
  family.name = family.modelType = "phi3";
  family.title = "Phi-3";
  family.tensors = phi3Tensors();
  family.ignored = {".rotary_emb.inv_freq"};
  family.keys = configKeys();
  family.fields = configFields();
  family.base = base();
  family.modelFields = withUsualFields(
      {{"window"}, {"rotary_dim"}, {"rope_original"}, {"activation", kRare}});
  family.sizes = {{"phi3_mini", "Phi-3 mini 4k", 4096, base()}};
  family.windows = WindowRule::AllLayers;
  family.defaultPadToken = 32000;
  // Files of the first versions call longrope so.
  family.ropeTypes = {{"default", "default"},
                      {"longrope", "longrope"},
                      {"su", "longrope"},
                      {"yarn", "longrope"}};
  return family;
}
