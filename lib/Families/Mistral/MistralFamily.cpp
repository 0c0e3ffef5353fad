//===- MistralFamily.cpp - The table of Mistral ---------------------------===//
//
// Jiang et al., 2023. Llama with a window in every layer. Keys and defaults are
// those of transformers' MistralConfig.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Support/CheckedSize.h"
#include "lib/Families/DecoderTensors.h"
#include "lib/Families/FamilyParts.h"

using namespace fsdp;
using namespace fsdp::checkpoint;

static std::vector<ConfigKey> configKeys() {
  return withSharedKeys(joined(
      {{onlyModel("[\"MistralForCausalLM\"]")},
       usualKeys(),
       rotaryKeys(),
       keysOf({"head_dim", "hidden_act", "sliding_window", "layer_types"}),
       keysOf({"attention_dropout"}, KeyRole::Dropout)}));
}

static std::vector<ConfigField> configFields() {
  using Type = ConfigField::Type;
  std::vector<ConfigField> fields = usualFields(
      {"4096", "32", "32", "8", "14336", "32000", "131072", "1e-06", "false"});
  fields.push_back({"head_dim", "head_dim", Type::Integer, "0", kMaxDimension});
  fields.push_back(activationField("hidden_act", "silu"));
  return fields;
}

/// Mistral 7B v0.1.
static DecoderConfig base() {
  DecoderConfig config;
  config.dim = 4096;
  config.layers = 32;
  config.heads = 32;
  config.kvHeads = 8;
  config.ffnDim = 14336;
  config.vocab = 32000;
  config.maxSeqLen = 32768;
  config.ropeHalves = true;
  config.window = 4096;
  return config;
}

Family checkpoint::mistralFamily() {
  constexpr bool kRare = true;
  Family family;
  family.name = family.modelType = "mistral";
  family.title = "Mistral";
  family.tensors = mistralTensors();
  family.ignored = {".rotary_emb.inv_freq"};
  family.keys = configKeys();
  family.fields = configFields();
  family.base = base();
  family.modelFields = withUsualFields({{"window"}, {"activation", kRare}});
  family.sizes = {{"mistral_7b", "Mistral 7B v0.1", 8192, base()}};
  family.windows = WindowRule::AllLayers;
  family.defaultWindow = 4096;
  family.ropeTypes = allRopeTypes();
  return family;
}
