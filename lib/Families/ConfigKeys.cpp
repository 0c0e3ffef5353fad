//===- ConfigKeys.cpp - Keys that families share --------------------------===//
#include "FamilyParts.h"
#include <algorithm>
#include <string>

using namespace fsdp;
using namespace fsdp::checkpoint;

static std::vector<ConfigKey> sharedKeys() {
  const char *const decoder = "the model has only a decoder";
  const char *const alike = "all layers have the same parts";
  return {
      // The kind of model.
      {"model_type", KeyRole::Used},
      {"is_encoder_decoder", KeyRole::Fixed, {"false"}, decoder},
      {"add_cross_attention", KeyRole::Fixed, {"false"}, decoder},
      {"cross_attention_hidden_size", KeyRole::Fixed, {"null"}, decoder},
      {"tie_encoder_decoder", KeyRole::Fixed, {"false"}, decoder},
      {"is_decoder", KeyRole::Harmless},
      {"per_layer_config", KeyRole::Fixed, {"null"}, alike},
      {"pruned_heads", KeyRole::Fixed, {"{}", "null"}, alike},
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
      {"auto_map", KeyRole::Harmless},
  };
}

std::vector<ConfigKey> checkpoint::withSharedKeys(std::vector<ConfigKey> keys) {
  std::vector<ConfigKey> shared = sharedKeys();
  keys.insert(keys.end(), shared.begin(), shared.end());
  return keys;
}

std::vector<ConfigKey> checkpoint::keysOf(std::vector<const char *> names,
                                          KeyRole role) {
  std::vector<ConfigKey> keys;
  for (const char *name : names)
    keys.push_back({name, role, {"0"}, "", role == KeyRole::Dropout});
  return keys;
}

std::vector<ConfigKey>
checkpoint::joined(std::vector<std::vector<ConfigKey>> lists) {
  std::vector<ConfigKey> keys;
  for (const std::vector<ConfigKey> &list : lists)
    keys.insert(keys.end(), list.begin(), list.end());
  return keys;
}

std::vector<ConfigKey> checkpoint::usualKeys() {
  return keysOf({"hidden_size", "num_hidden_layers", "num_attention_heads",
                 "num_key_value_heads", "intermediate_size", "vocab_size",
                 "max_position_embeddings", "tie_word_embeddings",
                 "rms_norm_eps"});
}

std::vector<ConfigField> checkpoint::usualFields(const UsualDefaults &is) {
  using Type = ConfigField::Type;
  return {
      {"hidden_size", "dim", Type::Integer, is.dim, kMaxDimension},
      {"num_hidden_layers", "n_layers", Type::Integer, is.layers, kMaxLayers},
      {"num_attention_heads", "n_heads", Type::Integer, is.heads,
       kMaxDimension},
      {"num_key_value_heads", "n_kv_heads", Type::Integer, is.kvHeads,
       kMaxDimension, "n_heads"},
      {"intermediate_size", "ffn_dim", Type::Integer, is.ffnDim, kMaxDimension},
      {"vocab_size", "vocab_size", Type::Integer, is.vocab, kMaxVocabulary},
      {"max_position_embeddings", "max_seq_len", Type::Integer, is.maxSeqLen,
       kMaxDimension},
      {"rms_norm_eps", "norm_eps", Type::Number, is.normEps},
      {"tie_word_embeddings", "tied", Type::Boolean, is.tied},
  };
}

ConfigKey checkpoint::noHeadDim() {
  return {"head_dim",
          KeyRole::Fixed,
          {"null"},
          "heads have hidden_size / num_attention_heads elements"};
}

ConfigField checkpoint::activationField(const char *key, const char *fallback,
                                        const char *first) {
  Spellings names = {{"silu", "silu"},
                     {"swish", "silu"},
                     {"gelu_pytorch_tanh", "gelu_tanh"},
                     {"gelu_new", "gelu_tanh"},
                     {"gelu", "gelu"},
                     {"relu", "relu"}};
  std::stable_partition(names.begin(), names.end(), [&](const auto &name) {
    return std::string(name.first) == first;
  });
  return {key,     "activation", ConfigField::Type::Name, fallback, 0,
          nullptr, names};
}

ConfigKey checkpoint::onlyModel(const char *architectures) {
  return {"architectures",
          KeyRole::Fixed,
          {architectures, "null"},
          "only the language model is supported",
          kWritten};
}

std::vector<ConfigKey> checkpoint::rotaryKeys() {
  return {{"rope_theta", KeyRole::Used},
          {"rope_scaling", KeyRole::Used},
          {"rope_parameters", KeyRole::Used},
          {"original_max_position_embeddings", KeyRole::Used},
          {"rope_interleaved",
           KeyRole::Fixed,
           {"false"},
           "the halves of a head are rotated"},
          {"partial_rotary_factor",
           KeyRole::Fixed,
           {"1", "null"},
           "whole heads are rotated"}};
}

std::vector<FamilyField>
checkpoint::withUsualFields(std::vector<FamilyField> fields) {
  constexpr bool kRare = true;
  auto add = [&](const char *key, bool isRare) {
    for (const FamilyField &field : fields)
      if (std::string(field.key) == key)
        return;
    fields.push_back({key, isRare});
  };
  for (const char *key :
       {"dim", "n_layers", "n_heads", "n_kv_heads", "head_dim", "ffn_dim",
        "vocab_size", "max_seq_len", "norm_eps"})
    add(key, !kRare);
  add("rope_theta", !kRare);
  add("rope_halves", !kRare);
  for (const char *key :
       {"rope_type", "rope_factor", "rope_low", "rope_high", "rope_original",
        "rope_scale", "rope_beta_fast", "rope_beta_slow", "rope_mscale",
        "rope_mscale_all_dim", "rope_truncate", "rope_short", "rope_long"})
    add(key, kRare);
  add("tied", !kRare);
  return fields;
}

Spellings checkpoint::allRopeTypes() {
  return {{"default", "default"},
          {"llama3", "llama3"},
          {"linear", "linear"},
          {"yarn", "yarn"},
          {"longrope", "longrope"}};
}
