//===- Gpt2Family.cpp - The table of GPT-2 --------------------------------===//
//
// Radford et al., 2019. Layer norms in front of the branches, learned
// positions, biases everywhere, a feed-forward layer without a gate. Keys and
// defaults are those of transformers' GPT2Config.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Support/CheckedSize.h"
#include "lib/Families/DecoderTensors.h"
#include "lib/Families/FamilyParts.h"

using namespace fsdp;
using namespace fsdp::checkpoint;

static std::vector<ConfigKey> configKeys() {
  auto alias = [](const char *name, const char *why) {
    return ConfigKey{name, KeyRole::Fixed, {"null"}, why};
  };
  return withSharedKeys(joined(
      {{onlyModel("[\"GPT2LMHeadModel\"]"),
        // transformers takes them for the keys that it maps them to.
        alias("hidden_size", "GPT-2 has it as n_embd"),
        alias("num_hidden_layers", "GPT-2 has it as n_layer"),
        alias("num_attention_heads", "GPT-2 has it as n_head"),
        alias("max_position_embeddings", "GPT-2 has it as n_positions")},
       keysOf({"n_embd", "n_layer", "n_head", "n_inner", "vocab_size",
               "n_positions", "layer_norm_epsilon", "activation_function",
               "scale_attn_weights", "scale_attn_by_inverse_layer_idx",
               "tie_word_embeddings"}),
       keysOf({"resid_pdrop", "embd_pdrop", "attn_pdrop"}, KeyRole::Dropout),
       // An older name of n_positions, how scores are rounded, and heads of
       // other models.
       keysOf({"n_ctx", "reorder_and_upcast_attn", "summary_type",
               "summary_use_proj", "summary_activation",
               "summary_proj_to_labels", "summary_first_dropout"},
              KeyRole::Harmless)}));
}

static std::vector<ConfigField> configFields() {
  using Type = ConfigField::Type;
  return {
      {"n_embd", "dim", Type::Integer, "768", kMaxDimension},
      {"n_layer", "n_layers", Type::Integer, "12", kMaxLayers},
      {"n_head", "n_heads", Type::Integer, "12", kMaxDimension},
      {"n_inner", "ffn_dim", Type::Integer, "4*dim", kMaxDimension},
      {"vocab_size", "vocab_size", Type::Integer, "50257", kMaxVocabulary},
      {"n_positions", "max_seq_len", Type::Integer, "1024", kMaxDimension},
      {"layer_norm_epsilon", "norm_eps", Type::Number, "1e-05"},
      activationField("activation_function", "gelu_tanh", "gelu_new"),
      {"scale_attn_weights", "attn_scaled", Type::Boolean, "true"},
      {"scale_attn_by_inverse_layer_idx", "attn_by_layer", Type::Boolean,
       "false"},
      {"tie_word_embeddings", "tied", Type::Boolean, "true"},
  };
}

static DecoderConfig size(int64_t dim, int64_t layers, int64_t heads) {
  DecoderConfig config;
  config.dim = dim;
  config.layers = layers;
  config.heads = heads;
  config.ffnDim = 4 * dim;
  config.vocab = 50257;
  config.maxSeqLen = 1024;
  config.norm = NormKind::Layer;
  config.learnedPositions = true;
  config.attnBias = true;
  config.activation = "gelu_tanh";
  config.isGated = false;
  config.ffnBias = true;
  config.tied = true;
  return config;
}

Family checkpoint::gpt2Family() {
  Family family;
  family.name = family.modelType = "gpt2";
  family.title = "GPT-2";
  family.tensors = gpt2Tensors();
  family.ignored = {".attn.bias", ".attn.masked_bias"};
  family.prefix = "transformer.";
  family.keys = configKeys();
  family.fields = configFields();
  family.base = size(768, 12, 12);
  family.modelFields = {{"dim"},           {"n_layers"},   {"n_heads"},
                        {"ffn_dim"},       {"vocab_size"}, {"max_seq_len"},
                        {"norm_eps"},      {"activation"}, {"attn_scaled"},
                        {"attn_by_layer"}, {"tied"}};
  family.sizes = {
      {"gpt2_small", "GPT-2, 124 M parameters", 1024, size(768, 12, 12)},
      {"gpt2_medium", "GPT-2, 355 M parameters", 1024, size(1024, 24, 16)},
      {"gpt2_large", "GPT-2, 774 M parameters", 1024, size(1280, 36, 20)},
      {"gpt2_xl", "GPT-2, 1.6 G parameters", 1024, size(1600, 48, 25)},
  };
  return family;
}
