//===- LlamaFamily.cpp - The table of Llama -------------------------------===//
//
// Keys and defaults of config.json are those of transformers' LlamaConfig. One
// table says of every key what becomes of it, so that none that changes the
// model is dropped.
//
//===----------------------------------------------------------------------===//
#include "LlamaFamily.h"
#include "../DecoderTensors.h"
#include "fsdp/Support/CheckedSize.h"

using namespace fsdp;
using namespace fsdp::checkpoint;

/// A fixed key that is written, too.
static constexpr bool kWritten = true;

/// Of config.json, and of rope_scaling and rope_parameters in it.
static ConfigKey partialRotaryFactor() {
  return {"partial_rotary_factor",
          KeyRole::Fixed,
          {"1", "null"},
          "whole heads are rotated"};
}

/// LlamaConfig's own keys, those that all configurations share, and those of
/// relatives of Llama that old or converted files carry.
static std::vector<ConfigKey> configKeys() {
  const char *const bias = "biases are not supported";
  const char *const decoder = "the model has only a decoder";
  const char *const window = "attention reaches back to the first token";
  const char *const alike = "all layers are alike";
  const char *const cap = "scores are not capped";
  return {
      // The kind of model.
      {"model_type", KeyRole::Used},
      {"architectures",
       KeyRole::Fixed,
       {"[\"LlamaForCausalLM\"]", "null"},
       "only the language model is supported",
       kWritten},
      {"is_encoder_decoder", KeyRole::Fixed, {"false"}, decoder},
      {"add_cross_attention", KeyRole::Fixed, {"false"}, decoder},
      {"cross_attention_hidden_size", KeyRole::Fixed, {"null"}, decoder},
      {"tie_encoder_decoder", KeyRole::Fixed, {"false"}, decoder},
      {"is_decoder", KeyRole::Harmless},

      // Sizes.
      {"hidden_size", KeyRole::Used},
      {"num_hidden_layers", KeyRole::Used},
      {"num_attention_heads", KeyRole::Used},
      {"num_key_value_heads", KeyRole::Used},
      {"head_dim", KeyRole::Used},
      {"intermediate_size", KeyRole::Used},
      {"vocab_size", KeyRole::Used},
      {"max_position_embeddings", KeyRole::Used},
      {"tie_word_embeddings", KeyRole::Used},

      // What is computed.
      {"rms_norm_eps", KeyRole::Used},
      {"rope_theta", KeyRole::Used},
      {"rope_scaling", KeyRole::Used},
      {"rope_parameters", KeyRole::Used},
      partialRotaryFactor(),
      {"rope_interleaved",
       KeyRole::Fixed,
       {"false"},
       "the halves of a head are rotated"},
      {"hidden_act",
       KeyRole::Fixed,
       {"\"silu\""},
       "only SwiGLU is supported",
       kWritten},
      {"attention_bias", KeyRole::Fixed, {"false"}, bias, kWritten},
      {"mlp_bias", KeyRole::Fixed, {"false"}, bias, kWritten},
      {"attention_dropout",
       KeyRole::Fixed,
       {"0", "null"},
       "dropout is not supported",
       kWritten},
      {"pretraining_tp",
       KeyRole::Fixed,
       {"1", "null"},
       "products are not split into slices, which rounds differently",
       kWritten},
      {"sliding_window", KeyRole::Fixed, {"null"}, window},
      {"use_sliding_window", KeyRole::Fixed, {"false"}, window},
      {"layer_types", KeyRole::Fixed, {"null"}, alike},
      {"per_layer_config", KeyRole::Fixed, {"null"}, alike},
      {"pruned_heads", KeyRole::Fixed, {"{}", "null"}, alike},
      {"attn_logit_softcapping", KeyRole::Fixed, {"null"}, cap},
      {"final_logit_softcapping", KeyRole::Fixed, {"null"}, cap},
      {"quantization_config",
       KeyRole::Fixed,
       {"null"},
       "quantized weights are not supported"},

      // How it is computed or stored. The type of the parameters is f32, that
      // of the computation an option of the tools.
      {"dtype", KeyRole::Harmless},
      {"torch_dtype", KeyRole::Harmless},
      {"use_bfloat16", KeyRole::Harmless},
      {"use_cache", KeyRole::Harmless},
      {"chunk_size_feed_forward", KeyRole::Harmless},
      {"attn_implementation", KeyRole::Harmless},
      {"_attn_implementation", KeyRole::Harmless},
      {"_attn_implementation_autoset", KeyRole::Harmless},
      {"torchscript", KeyRole::Harmless},
      {"tf_legacy_loss", KeyRole::Harmless},
      {"tp_plan", KeyRole::Harmless},

      // What starts the training of a new model; ours starts as torchtitan's.
      {"initializer_range", KeyRole::Harmless},

      // What else the model returns.
      {"output_hidden_states", KeyRole::Harmless},
      {"output_attentions", KeyRole::Harmless},
      {"tie_last_hidden_states", KeyRole::Harmless},
      {"return_dict", KeyRole::Harmless},
      {"use_return_dict", KeyRole::Harmless},

      // Tokens, generation and fine-tuning heads.
      {"pad_token_id", KeyRole::Harmless},
      {"bos_token_id", KeyRole::Harmless},
      {"eos_token_id", KeyRole::Harmless},
      {"sep_token_id", KeyRole::Harmless},
      {"decoder_start_token_id", KeyRole::Harmless},
      {"tokenizer_class", KeyRole::Harmless},
      {"prefix", KeyRole::Harmless},
      {"max_length", KeyRole::Harmless},
      {"min_length", KeyRole::Harmless},
      {"do_sample", KeyRole::Harmless},
      {"early_stopping", KeyRole::Harmless},
      {"num_beams", KeyRole::Harmless},
      {"num_beam_groups", KeyRole::Harmless},
      {"diversity_penalty", KeyRole::Harmless},
      {"temperature", KeyRole::Harmless},
      {"top_k", KeyRole::Harmless},
      {"top_p", KeyRole::Harmless},
      {"typical_p", KeyRole::Harmless},
      {"repetition_penalty", KeyRole::Harmless},
      {"length_penalty", KeyRole::Harmless},
      {"no_repeat_ngram_size", KeyRole::Harmless},
      {"encoder_no_repeat_ngram_size", KeyRole::Harmless},
      {"bad_words_ids", KeyRole::Harmless},
      {"num_return_sequences", KeyRole::Harmless},
      {"output_scores", KeyRole::Harmless},
      {"return_dict_in_generate", KeyRole::Harmless},
      {"forced_bos_token_id", KeyRole::Harmless},
      {"forced_eos_token_id", KeyRole::Harmless},
      {"remove_invalid_values", KeyRole::Harmless},
      {"exponential_decay_length_penalty", KeyRole::Harmless},
      {"suppress_tokens", KeyRole::Harmless},
      {"begin_suppress_tokens", KeyRole::Harmless},
      {"finetuning_task", KeyRole::Harmless},
      {"task_specific_params", KeyRole::Harmless},
      {"problem_type", KeyRole::Harmless},
      {"num_labels", KeyRole::Harmless},
      {"id2label", KeyRole::Harmless},
      {"label2id", KeyRole::Harmless},

      // Where it comes from.
      {"_name_or_path", KeyRole::Harmless},
      {"_commit_hash", KeyRole::Harmless},
      {"transformers_version", KeyRole::Harmless},
  };
}

/// The keys of rope_scaling and rope_parameters.
static std::vector<ConfigKey> ropeKeys() {
  return {
      {"rope_type", KeyRole::Used},
      {"type", KeyRole::Used}, // rope_type's name in old files
      {"rope_theta", KeyRole::Used},
      {"factor", KeyRole::Used},
      {"low_freq_factor", KeyRole::Used},
      {"high_freq_factor", KeyRole::Used},
      {"original_max_position_embeddings", KeyRole::Used},
      partialRotaryFactor(),
  };
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
  return {{"dim"},       {"n_layers"},      {"n_heads"},     {"n_kv_heads"},
          {"head_dim"},  {"ffn_dim"},       {"vocab_size"},  {"max_seq_len"},
          {"norm_eps"},  {"rope_theta"},    {"rope_factor"}, {"rope_low"},
          {"rope_high"}, {"rope_original"}, {"rope_halves"}, {"tied"}};
}

Family checkpoint::llamaFamily() {
  return {"llama3",      "llama",    llamaTensors(), {".rotary_emb.inv_freq"},
          configKeys(),  ropeKeys(), configFields(), base(),
          modelFields(), sizes()};
}
