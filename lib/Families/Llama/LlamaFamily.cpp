//===- LlamaFamily.cpp - The table of Llama -------------------------------===//
//
// Llama 2, 3 and CodeLlama: they differ in sizes alone. Keys and defaults of
// config.json are those of transformers' LlamaConfig. One table says of every
// key what becomes of it, so that none that changes the model is dropped.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Support/CheckedSize.h"
#include "lib/Families/DecoderTensors.h"
#include "lib/Families/FamilyParts.h"

using namespace fsdp;
using namespace fsdp::checkpoint;

static std::vector<ConfigKey> configKeys() {
  const char *const bias = "biases are not supported";
  const char *const window = "attention reaches back to the first token";
  const char *const cap = "scores are not capped";
  std::vector<ConfigKey> keys = {
      onlyModel("[\"LlamaForCausalLM\"]"),
      {"hidden_size", KeyRole::Used},
      {"num_hidden_layers", KeyRole::Used},
      {"num_attention_heads", KeyRole::Used},
      {"num_key_value_heads", KeyRole::Used},
      {"head_dim", KeyRole::Used},
      {"intermediate_size", KeyRole::Used},
      {"vocab_size", KeyRole::Used},
      {"max_position_embeddings", KeyRole::Used},
      {"tie_word_embeddings", KeyRole::Used},
      {"rms_norm_eps", KeyRole::Used},
      {"hidden_act",
       KeyRole::Fixed,
       {"\"silu\""},
       "only SwiGLU is supported",
       kWritten},
      {"attention_bias", KeyRole::Fixed, {"false"}, bias, kWritten},
      {"mlp_bias", KeyRole::Fixed, {"false"}, bias, kWritten},
      {"attention_dropout", KeyRole::Dropout, {"0"}, "", kWritten},
      {"pretraining_tp",
       KeyRole::Fixed,
       {"1", "null"},
       "products are not split into slices, which rounds differently",
       kWritten},
      {"sliding_window", KeyRole::Fixed, {"null"}, window},
      {"use_sliding_window", KeyRole::Fixed, {"false"}, window},
      {"layer_types", KeyRole::Fixed, {"null"}, "all layers are alike"},
      {"attn_logit_softcapping", KeyRole::Fixed, {"null"}, cap},
      {"final_logit_softcapping", KeyRole::Fixed, {"null"}, cap},
  };
  for (const ConfigKey &key : rotaryKeys())
    keys.push_back(key);
  return withSharedKeys(keys);
}

static std::vector<ConfigField> configFields() {
  using Type = ConfigField::Type;
  return {
      {"hidden_size", "dim", Type::Integer, nullptr, kMaxDimension},
      {"num_hidden_layers", "n_layers", Type::Integer, nullptr, kMaxLayers},
      {"num_attention_heads", "n_heads", Type::Integer, nullptr, kMaxDimension},
      {"num_key_value_heads", "n_kv_heads", Type::Integer, "n_heads",
       kMaxDimension},
      {"head_dim", "head_dim", Type::Integer, "0", kMaxDimension},
      {"intermediate_size", "ffn_dim", Type::Integer, nullptr, kMaxDimension},
      {"vocab_size", "vocab_size", Type::Integer, nullptr, kMaxVocabulary},
      {"max_position_embeddings", "max_seq_len", Type::Integer, "2048",
       kMaxDimension},
      {"rms_norm_eps", "norm_eps", Type::Number, "1e-6"},
      {"tie_word_embeddings", "tied", Type::Boolean, "false"},
  };
}

//===----------------------------------------------------------------------===//
// Mechanisms and sizes
//===----------------------------------------------------------------------===//

/// What all published sizes share, and sizes of Llama 3.1 8B.
static DecoderConfig base() {
  DecoderConfig config;
  config.dim = 4096;
  config.layers = 32;
  config.heads = 32;
  config.kvHeads = 8;
  config.ffnDim = 14336;
  config.vocab = 128256;
  config.maxSeqLen = 131072;
  config.ropeTheta = 500000;
  config.ropeFactor = 8;
  return config;
}

static DecoderConfig size(int64_t dim, int64_t layers, int64_t heads,
                          int64_t kvHeads, int64_t ffnDim) {
  DecoderConfig config = base();
  config.dim = dim;
  config.layers = layers;
  config.heads = heads;
  config.kvHeads = kvHeads;
  config.ffnDim = ffnDim;
  return config;
}

static std::vector<FamilySize> sizes() {
  constexpr int64_t kSeqLen = 8192;
  auto tied = [](DecoderConfig config) {
    config.tied = true;
    return config;
  };
  DecoderConfig debug = size(256, 6, 16, 16, 768);
  debug.vocab = 2048;
  return {
      {"llama3_debug", "Llama 3 for tests, 6 M parameters", 2048, debug},
      {"llama3_1b", "Llama 3.2 1B, tied", kSeqLen,
       tied(size(2048, 16, 32, 8, 8192))},
      {"llama3_3b", "Llama 3.2 3B, tied", kSeqLen,
       tied(size(3072, 28, 24, 8, 8192))},
      {"llama3_8b", "Llama 3.1 8B", kSeqLen, size(4096, 32, 32, 8, 14336)},
      {"llama3_70b", "Llama 3.1 70B", kSeqLen, size(8192, 80, 64, 8, 28672)},
      {"llama3_405b", "Llama 3.1 405B", kSeqLen,
       size(16384, 126, 128, 8, 53248)},
  };
}

static std::vector<FamilyField> modelFields() {
  return withUsualFields({{"dim"},
                          {"n_layers"},
                          {"n_heads"},
                          {"n_kv_heads"},
                          {"head_dim"},
                          {"ffn_dim"},
                          {"vocab_size"},
                          {"max_seq_len"},
                          {"norm_eps"},
                          {"rope_theta"},
                          {"rope_factor"},
                          {"rope_low"},
                          {"rope_high"},
                          {"rope_original"},
                          {"rope_halves"},
                          {"tied"}});
}

Family checkpoint::llamaFamily() {
  Family family;
  family.name = "llama3";
  family.modelType = "llama";
  family.title = "Llama 2, 3 and CodeLlama";
  family.tensors = llamaTensors();
  family.ignored = {".rotary_emb.inv_freq"};
  family.keys = configKeys();
  family.fields = configFields();
  family.base = base();
  family.modelFields = modelFields();
  family.sizes = sizes();
  family.ropeTypes = allRopeTypes();
  return family;
}
