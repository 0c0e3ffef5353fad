//===- Qwen3Family.cpp - The table of Qwen3 -------------------------------===//
//
// Yang et al., 2025. Llama with norms of each head of queries and keys, heads
// of a width of their own, and windows in the upper layers. Keys and defaults
// are those of transformers' Qwen3Config.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Support/CheckedSize.h"
#include "lib/Families/DecoderTensors.h"
#include "lib/Families/FamilyParts.h"

using namespace fsdp;
using namespace fsdp::checkpoint;

static std::vector<ConfigKey> configKeys() {
  return withSharedKeys(joined(
      {{onlyModel("[\"Qwen3ForCausalLM\"]")},
       usualKeys(),
       rotaryKeys(),
       keysOf({"head_dim", "attention_bias", "hidden_act", "use_sliding_window",
               "sliding_window", "max_window_layers", "layer_types"}),
       keysOf({"attention_dropout"}, KeyRole::Dropout)}));
}

static std::vector<ConfigField> configFields() {
  using Type = ConfigField::Type;
  std::vector<ConfigField> fields = usualFields(
      {"4096", "32", "32", "32", "22016", "151936", "32768", "1e-06", "false"});
  fields.push_back(
      {"head_dim", "head_dim", Type::Integer, "128", kMaxDimension});
  fields.push_back(
      {"attention_bias", "attention_bias", Type::Boolean, "false"});
  fields.push_back(activationField("hidden_act", "silu"));
  return fields;
}

static DecoderConfig base() {
  DecoderConfig config;
  config.dim = 4096;
  config.layers = 36;
  config.heads = 32;
  config.kvHeads = 8;
  config.headDim = 128;
  config.ffnDim = 12288;
  config.vocab = 151936;
  config.maxSeqLen = 40960;
  config.normEps = 1e-6;
  config.headNorm = HeadNorm::PerHead;
  config.ropeTheta = 1e6;
  config.ropeHalves = true;
  return config;
}

Family checkpoint::qwen3Family() {
  constexpr bool kRare = true;
  Family family;
  family.name = family.modelType = "qwen3";
  family.title = "Qwen3";
  family.tensors = qwen3Tensors();
  family.ignored = {".rotary_emb.inv_freq"};
  family.keys = configKeys();
  family.fields = configFields();
  family.base = base();
  family.modelFields = withUsualFields({{"attention_bias"},
                                        {"window", kRare},
                                        {"window_layers", kRare},
                                        {"activation", kRare}});
  family.sizes = {{"qwen3_8b", "Qwen3 8B", 4096, base()}};
  family.windows = WindowRule::FromLayer;
  family.defaultWindow = 4096;
  family.ropeTypes = allRopeTypes();
  return family;
}
