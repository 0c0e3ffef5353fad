//===- Olmo2Family.cpp - The table of OLMo 2 ------------------------------===//
//
// OLMo Team, 2024. Norms of the branches alone, and of all heads of queries and
// of keys together. Keys and defaults are those of transformers' Olmo2Config.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Support/CheckedSize.h"
#include "lib/Families/DecoderTensors.h"
#include "lib/Families/FamilyParts.h"

using namespace fsdp;
using namespace fsdp::checkpoint;

static std::vector<ConfigKey> configKeys() {
  return withSharedKeys(
      joined({{onlyModel("[\"Olmo2ForCausalLM\"]"), noHeadDim()},
              usualKeys(),
              rotaryKeys(),
              keysOf({"attention_bias", "hidden_act"}),
              keysOf({"attention_dropout"}, KeyRole::Dropout)}));
}

static std::vector<ConfigField> configFields() {
  std::vector<ConfigField> fields =
      usualFields({"4096", "32", "32", "n_heads", "11008", "50304", "2048",
                   "1e-05", "false"});
  fields.push_back({"attention_bias", "attention_bias",
                    ConfigField::Type::Boolean, "false"});
  fields.push_back(activationField("hidden_act", "silu"));
  return fields;
}

static DecoderConfig base() {
  DecoderConfig config;
  config.dim = 4096;
  config.layers = 32;
  config.heads = 32;
  config.kvHeads = 32;
  config.ffnDim = 11008;
  config.vocab = 100352;
  config.maxSeqLen = 4096;
  config.normBefore = false;
  config.normOnBranch = true;
  config.headNorm = HeadNorm::Whole;
  config.normEps = 1e-6;
  config.ropeTheta = 500000;
  config.ropeHalves = true;
  return config;
}

Family checkpoint::olmo2Family() {
  constexpr bool kRare = true;
  Family family;
  family.name = family.modelType = "olmo2";
  family.title = "OLMo 2";
  family.tensors = olmo2Tensors();
  family.ignored = {".rotary_emb.inv_freq"};
  family.keys = configKeys();
  family.fields = configFields();
  family.base = base();
  family.modelFields =
      withUsualFields({{"attention_bias"}, {"activation", kRare}});
  family.sizes = {{"olmo2_7b", "OLMo 2 7B", 4096, base()}};
  family.ropeTypes = allRopeTypes();
  return family;
}
