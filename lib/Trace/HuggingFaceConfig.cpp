//===- HuggingFaceConfig.cpp - Reads a Llama's config.json ----------------===//
//
// Keys and defaults are those of transformers' LlamaConfig. Rotary scaling
// stands in "rope_scaling" up to version 4 and in "rope_parameters", together
// with rope_theta, from version 5.
//
// One table says of every key what becomes of it, so that none that changes
// the model is dropped.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Input/StrictJson.h"
#include "fsdp/Support/NearestName.h"
#include "fsdp/Trace/ModelSpec.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <optional>

using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
namespace json = llvm::json;

namespace fsdp {
namespace {

//===----------------------------------------------------------------------===//
// The table of keys
//===----------------------------------------------------------------------===//

enum class Role {
  Used,     // it describes the model that is traced
  Harmless, // it does not change what is computed from given weights
  Fixed,    // the traced model is one of its values
};

struct Key {
  const char *name;
  Role role;
  /// JSON of the values that a fixed key may have. The first is the default,
  /// and what is said to be expected.
  std::vector<const char *> values = {};
  const char *why = ""; // the others are refused
};

/// LlamaConfig's own keys, those that all configurations share, and those of
/// relatives of Llama that old or converted files carry.
const std::vector<Key> &configKeys() {
  const char *const bias = "biases are not supported";
  const char *const decoder = "the model is a decoder alone";
  const char *const window = "attention reaches back to the first token";
  const char *const alike = "all layers are alike";
  const char *const cap = "scores are not capped";
  static const std::vector<Key> keys = {
      // The kind of model. model_type comes first: other models have other
      // keys.
      {"model_type", Role::Fixed, {"\"llama\""}, "only Llama is supported"},
      {"architectures",
       Role::Fixed,
       {"[\"LlamaForCausalLM\"]", "null"},
       "only the language model is supported"},
      {"is_encoder_decoder", Role::Fixed, {"false"}, decoder},
      {"add_cross_attention", Role::Fixed, {"false"}, decoder},
      {"cross_attention_hidden_size", Role::Fixed, {"null"}, decoder},
      {"tie_encoder_decoder", Role::Fixed, {"false"}, decoder},
      {"is_decoder", Role::Harmless},

      // Sizes.
      {"hidden_size", Role::Used},
      {"num_hidden_layers", Role::Used},
      {"num_attention_heads", Role::Used},
      {"num_key_value_heads", Role::Used},
      {"head_dim", Role::Used},
      {"intermediate_size", Role::Used},
      {"vocab_size", Role::Used},
      {"max_position_embeddings", Role::Used},
      {"tie_word_embeddings", Role::Used},

      // What is computed.
      {"rms_norm_eps", Role::Used},
      {"rope_theta", Role::Used},
      {"rope_scaling", Role::Used},
      {"rope_parameters", Role::Used},
      {"partial_rotary_factor",
       Role::Fixed,
       {"1", "null"},
       "whole heads are rotated"},
      {"rope_interleaved",
       Role::Fixed,
       {"false"},
       "the halves of a head are rotated"},
      {"hidden_act", Role::Fixed, {"\"silu\""}, "only SwiGLU is supported"},
      {"attention_bias", Role::Fixed, {"false"}, bias},
      {"mlp_bias", Role::Fixed, {"false"}, bias},
      {"attention_dropout",
       Role::Fixed,
       {"0", "null"},
       "dropout is not supported"},
      {"pretraining_tp",
       Role::Fixed,
       {"1", "null"},
       "products are not cut into slices, which rounds differently"},
      {"sliding_window", Role::Fixed, {"null"}, window},
      {"use_sliding_window", Role::Fixed, {"false"}, window},
      {"layer_types", Role::Fixed, {"null"}, alike},
      {"per_layer_config", Role::Fixed, {"null"}, alike},
      {"pruned_heads", Role::Fixed, {"{}", "null"}, alike},
      {"attn_logit_softcapping", Role::Fixed, {"null"}, cap},
      {"final_logit_softcapping", Role::Fixed, {"null"}, cap},
      {"quantization_config",
       Role::Fixed,
       {"null"},
       "quantized weights are not supported"},

      // How it is computed or stored. The type of the parameters is f32, that
      // of the computation an option of the tools.
      {"dtype", Role::Harmless},
      {"torch_dtype", Role::Harmless},
      {"use_bfloat16", Role::Harmless},
      {"use_cache", Role::Harmless},
      {"chunk_size_feed_forward", Role::Harmless},
      {"attn_implementation", Role::Harmless},
      {"_attn_implementation", Role::Harmless},
      {"_attn_implementation_autoset", Role::Harmless},
      {"torchscript", Role::Harmless},
      {"tf_legacy_loss", Role::Harmless},
      {"tp_plan", Role::Harmless},

      // What starts the training of a new model; ours starts as torchtitan's.
      {"initializer_range", Role::Harmless},

      // What else the model returns.
      {"output_hidden_states", Role::Harmless},
      {"output_attentions", Role::Harmless},
      {"tie_last_hidden_states", Role::Harmless},
      {"return_dict", Role::Harmless},
      {"use_return_dict", Role::Harmless},

      // Tokens, generation and fine-tuning heads.
      {"pad_token_id", Role::Harmless},
      {"bos_token_id", Role::Harmless},
      {"eos_token_id", Role::Harmless},
      {"sep_token_id", Role::Harmless},
      {"decoder_start_token_id", Role::Harmless},
      {"tokenizer_class", Role::Harmless},
      {"prefix", Role::Harmless},
      {"max_length", Role::Harmless},
      {"min_length", Role::Harmless},
      {"do_sample", Role::Harmless},
      {"early_stopping", Role::Harmless},
      {"num_beams", Role::Harmless},
      {"num_beam_groups", Role::Harmless},
      {"diversity_penalty", Role::Harmless},
      {"temperature", Role::Harmless},
      {"top_k", Role::Harmless},
      {"top_p", Role::Harmless},
      {"typical_p", Role::Harmless},
      {"repetition_penalty", Role::Harmless},
      {"length_penalty", Role::Harmless},
      {"no_repeat_ngram_size", Role::Harmless},
      {"encoder_no_repeat_ngram_size", Role::Harmless},
      {"bad_words_ids", Role::Harmless},
      {"num_return_sequences", Role::Harmless},
      {"output_scores", Role::Harmless},
      {"return_dict_in_generate", Role::Harmless},
      {"forced_bos_token_id", Role::Harmless},
      {"forced_eos_token_id", Role::Harmless},
      {"remove_invalid_values", Role::Harmless},
      {"exponential_decay_length_penalty", Role::Harmless},
      {"suppress_tokens", Role::Harmless},
      {"begin_suppress_tokens", Role::Harmless},
      {"finetuning_task", Role::Harmless},
      {"task_specific_params", Role::Harmless},
      {"problem_type", Role::Harmless},
      {"num_labels", Role::Harmless},
      {"id2label", Role::Harmless},
      {"label2id", Role::Harmless},

      // Where it comes from.
      {"_name_or_path", Role::Harmless},
      {"_commit_hash", Role::Harmless},
      {"transformers_version", Role::Harmless},
  };
  return keys;
}

/// The keys of rope_scaling and rope_parameters.
const std::vector<Key> &ropeKeys() {
  static const std::vector<Key> keys = {
      {"rope_type", Role::Used},
      {"type", Role::Used}, // rope_type's name in old files
      {"rope_theta", Role::Used},
      {"factor", Role::Used},
      {"low_freq_factor", Role::Used},
      {"high_freq_factor", Role::Used},
      {"original_max_position_embeddings", Role::Used},
      {"partial_rotary_factor",
       Role::Fixed,
       {"1", "null"},
       "whole heads are rotated"},
  };
  return keys;
}

std::string textOf(const json::Value &value) {
  return llvm::formatv("{0}", value).str();
}

/// Refuses what the traced model cannot express.
Error checkFixed(const json::Object &object, const Key &key, StringRef place) {
  const json::Value *value = object.get(key.name);
  if (!value)
    return Error::success();
  for (const char *good : key.values)
    if (*value == llvm::cantFail(json::parse(good)))
      return Error::success();
  return llvm::createStringError("expected " + StringRef(key.values.front()) +
                                 " (" + key.why + ") at " + place + "." +
                                 key.name + ", got " + textOf(*value));
}

/// Holds an object against a table. Unknown keys are only warned about:
/// checkpoints carry notes of the tools that wrote them.
Error checkKeys(const json::Object &object, const std::vector<Key> &keys,
                StringRef place, std::vector<std::string> &warnings) {
  std::vector<std::string> known;
  for (const Key &key : keys) {
    known.emplace_back(key.name);
    if (key.role == Role::Fixed)
      if (Error error = checkFixed(object, key, place))
        return error;
  }
  for (const std::string &name : unknownKeys(object, known))
    warnings.push_back("unknown key '" + name + "' at " + place.str() +
                       " is ignored" + didYouMean(name, known));
  return Error::success();
}

Error checkKeys(const json::Value &config, std::vector<std::string> &warnings) {
  const json::Object *object = config.getAsObject();
  if (!object)
    return Error::success(); // The reader below will say so.
  if (Error error = checkKeys(*object, configKeys(), "config", warnings))
    return error;
  for (const char *name : {"rope_scaling", "rope_parameters"})
    if (const json::Object *rope = object->getObject(name))
      if (Error error = checkKeys(*rope, ropeKeys(),
                                  std::string("config.") + name, warnings))
        return error;
  return Error::success();
}

//===----------------------------------------------------------------------===//
// The keys that are used
//===----------------------------------------------------------------------===//

struct RopeScaling {
  std::optional<double> theta;
  std::string type = "default";
  double factor = 1, low = 1, high = 4;
  int64_t original = 8192;
};

struct HuggingFaceLlama {
  std::string modelType;
  int64_t hiddenSize, layers, heads, intermediateSize, vocab;
  std::optional<int64_t> kvHeads, headDim;
  int64_t maxPositions = 2048;
  double normEps = 1e-6;
  double ropeTheta = 10000;
  std::optional<RopeScaling> ropeScaling, ropeParameters;
  bool tied = false;
};

bool fromJSON(const json::Value &value, RopeScaling &scaling, json::Path path) {
  json::ObjectMapper map(value, path);
  // Before "rope_type" the key was "type".
  if (!map || !map.map("rope_theta", scaling.theta) ||
      !map.mapOptional("type", scaling.type) ||
      !map.mapOptional("rope_type", scaling.type))
    return false;
  if (scaling.type == "default")
    return true;
  if (scaling.type != "llama3") {
    path.field("rope_type").report("expected \"llama3\" or \"default\"");
    return false;
  }
  return map.map("factor", scaling.factor) &&
         map.map("low_freq_factor", scaling.low) &&
         map.map("high_freq_factor", scaling.high) &&
         map.map("original_max_position_embeddings", scaling.original);
}

bool fromJSON(const json::Value &value, HuggingFaceLlama &config,
              json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("model_type", config.modelType) &&
         map.map("hidden_size", config.hiddenSize) &&
         map.map("num_hidden_layers", config.layers) &&
         map.map("num_attention_heads", config.heads) &&
         map.map("num_key_value_heads", config.kvHeads) &&
         map.map("head_dim", config.headDim) &&
         map.map("intermediate_size", config.intermediateSize) &&
         map.map("vocab_size", config.vocab) &&
         map.mapOptional("max_position_embeddings", config.maxPositions) &&
         map.mapOptional("rms_norm_eps", config.normEps) &&
         map.mapOptional("rope_theta", config.ropeTheta) &&
         map.map("rope_scaling", config.ropeScaling) &&
         map.map("rope_parameters", config.ropeParameters) &&
         map.mapOptional("tie_word_embeddings", config.tied);
}

LlamaConfig toLlamaConfig(const HuggingFaceLlama &from) {
  LlamaConfig config;
  config.dim = from.hiddenSize;
  config.layers = from.layers;
  config.heads = from.heads;
  config.kvHeads = from.kvHeads.value_or(from.heads);
  config.headDim = from.headDim.value_or(0);
  config.ffnDim = from.intermediateSize;
  config.vocab = from.vocab;
  config.maxSeqLen = from.maxPositions;
  config.normEps = from.normEps;
  config.tied = from.tied;

  const RopeScaling rope = from.ropeParameters
                               ? *from.ropeParameters
                               : from.ropeScaling.value_or(RopeScaling());
  config.ropeTheta = rope.theta.value_or(from.ropeTheta);
  config.ropeFactor = rope.factor;
  config.ropeLow = rope.low;
  config.ropeHigh = rope.high;
  config.ropeOriginal = rope.original;
  // Converted weights have each head's rows in this order.
  config.ropeHalves = true;
  return config;
}

} // namespace

Expected<ModelSpec> parseHuggingFaceConfig(StringRef text, StringRef name) {
  auto named = [&](Error error) {
    return llvm::createStringError(name + ": " +
                                   llvm::toString(std::move(error)));
  };
  Expected<json::Value> value = parseStrictJson(text, "config");
  if (!value)
    return named(value.takeError());
  ModelSpec spec;
  if (Error error = checkKeys(*value, spec.warnings))
    return named(std::move(error));
  for (std::string &warning : spec.warnings)
    warning = name.str() + ": " + warning;
  HuggingFaceLlama config;
  json::Path::Root root("config");
  if (!fromJSON(*value, config, root))
    return named(root.getError());

  spec.name = name.str();
  spec.config = toLlamaConfig(config);
  spec.seqLen = std::min<int64_t>(config.maxPositions, 8192);
  if (Error error = verifyModel(spec))
    return error;
  return spec;
}

} // namespace fsdp
