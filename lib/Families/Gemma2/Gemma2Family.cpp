//===- Gemma2Family.cpp - The table of Gemma 2 ----------------------------===//
//
// Gemma Team, 2024. Norms in front of and after both branches that multiply
// with 1 + w, caps on scores and logits, a window in every second layer,
// embeddings scaled by sqrt(dim). Keys and defaults are those of transformers'
// Gemma2Config.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Support/CheckedSize.h"
#include "lib/Families/DecoderTensors.h"
#include "lib/Families/FamilyParts.h"

using namespace fsdp;
using namespace fsdp::checkpoint;

static std::vector<ConfigKey> configKeys() {
  return withSharedKeys(joined(
      {{onlyModel("[\"Gemma2ForCausalLM\"]"),
        {"use_bidirectional_attention",
         KeyRole::Fixed,
         {"null", "false"},
         "a token sees none after it"}},
       usualKeys(),
       rotaryKeys(),
       keysOf({"head_dim", "attention_bias", "hidden_activation",
               "query_pre_attn_scalar", "attn_logit_softcapping",
               "final_logit_softcapping", "sliding_window", "layer_types"}),
       keysOf({"attention_dropout"}, KeyRole::Dropout),
       // What hidden_activation replaced, and older names.
       keysOf({"hidden_act", "sliding_window_size", "cache_implementation"},
              KeyRole::Harmless)}));
}

static std::vector<ConfigField> configFields() {
  using Type = ConfigField::Type;
  std::vector<ConfigField> fields = usualFields(
      {"2304", "26", "8", "4", "9216", "256000", "8192", "1e-06", "true"});
  for (const ConfigField &field : std::vector<ConfigField>{
           {"head_dim", "head_dim", Type::Integer, "256", kMaxDimension},
           {"attention_bias", "attention_bias", Type::Boolean, "false"},
           activationField("hidden_activation", "gelu_tanh"),
           // transformers reads no other number than an integer.
           {"query_pre_attn_scalar", "attn_scalar", Type::Integer, "256",
            kMaxDimension},
           {"attn_logit_softcapping", "attn_cap", Type::Number, "50", 0, "0"},
           {"final_logit_softcapping", "logit_cap", Type::Number, "30", 0,
            "0"}})
    fields.push_back(field);
  return fields;
}

static DecoderConfig size(int64_t dim, int64_t layers, int64_t heads,
                          int64_t kvHeads, int64_t ffnDim) {
  DecoderConfig config;
  config.dim = dim;
  config.layers = layers;
  config.heads = heads;
  config.kvHeads = kvHeads;
  config.headDim = 256;
  config.ffnDim = ffnDim;
  config.vocab = 256000;
  config.maxSeqLen = 8192;
  config.normPlusOne = true;
  config.normOnBranch = true;
  config.normEps = 1e-6;
  config.ropeHalves = true;
  config.attnScalar = 256;
  config.attnCap = 50;
  config.window = 4096;
  config.windowLayers = "even";
  config.activation = "gelu_tanh";
  config.scalesEmbedding = true;
  config.logitCap = 30;
  config.tied = true;
  return config;
}

Family checkpoint::gemma2Family() {
  Family family;
  family.name = family.modelType = "gemma2";
  family.title = "Gemma 2";
  family.tensors = gemma2Tensors();
  family.ignored = {".rotary_emb.inv_freq"};
  family.keys = configKeys();
  family.fields = configFields();
  family.base = size(2304, 26, 8, 4, 9216);
  family.modelFields = withUsualFields({{"attention_bias"},
                                        {"attn_scalar"},
                                        {"attn_cap"},
                                        {"window"},
                                        {"window_layers"},
                                        {"activation"},
                                        {"logit_cap"}});
  family.sizes = {
      {"gemma2_2b", "Gemma 2 2B, tied", 8192, size(2304, 26, 8, 4, 9216)},
      {"gemma2_9b", "Gemma 2 9B, tied", 8192, size(3584, 42, 16, 8, 14336)},
  };
  family.windows = WindowRule::Even;
  family.defaultWindow = 4096;
  family.ropeTypes = allRopeTypes();
  return family;
}
