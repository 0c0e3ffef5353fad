//===- HuggingFaceConfig.cpp - Reads a Llama's config.json ----------------===//
//
// Keys and defaults are those of transformers' LlamaConfig. Rotary scaling
// stands in "rope_scaling" up to version 4 and in "rope_parameters", together
// with rope_theta, from version 5.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Trace/ModelSpec.h"
#include "llvm/Support/JSON.h"
#include <optional>

using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
namespace json = llvm::json;

namespace fsdp {
namespace {

struct RopeScaling {
  std::optional<double> theta;
  std::string type = "default";
  double factor = 1, low = 1, high = 4;
  int64_t original = 8192;
};

struct HuggingFaceLlama {
  std::string modelType;
  std::string activation = "silu";
  bool attentionBias = false, mlpBias = false;
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

/// Other models have other keys, so this is asked before they are read.
bool isLlama(const HuggingFaceLlama &config, json::Path path) {
  if (config.modelType == "llama")
    return true;
  path.field("model_type").report("expected \"llama\"");
  return false;
}

/// What the traced model cannot express must not be dropped silently.
bool isSupported(const HuggingFaceLlama &config, json::Path path) {
  if (config.activation != "silu") {
    path.field("hidden_act").report("expected \"silu\"");
    return false;
  }
  if (config.attentionBias || config.mlpBias) {
    path.field(config.attentionBias ? "attention_bias" : "mlp_bias")
        .report("expected false (biases are not supported)");
    return false;
  }
  return true;
}

bool fromJSON(const json::Value &value, HuggingFaceLlama &config,
              json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("model_type", config.modelType) &&
         isLlama(config, path) &&
         map.mapOptional("hidden_act", config.activation) &&
         map.mapOptional("attention_bias", config.attentionBias) &&
         map.mapOptional("mlp_bias", config.mlpBias) &&
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
         map.mapOptional("tie_word_embeddings", config.tied) &&
         isSupported(config, path);
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
  return config;
}

} // namespace

Expected<ModelSpec> parseHuggingFaceConfig(StringRef text, StringRef name) {
  auto named = [&](Error error) {
    return llvm::createStringError(name + ": " +
                                   llvm::toString(std::move(error)));
  };
  Expected<json::Value> value = json::parse(text);
  if (!value)
    return named(value.takeError());
  HuggingFaceLlama config;
  json::Path::Root root("config");
  if (!fromJSON(*value, config, root))
    return named(root.getError());

  ModelSpec spec;
  spec.name = name.str();
  spec.config = toLlamaConfig(config);
  spec.seqLen = std::min<int64_t>(config.maxPositions, 8192);
  if (Error error = verifyModel(spec))
    return error;
  return spec;
}

} // namespace fsdp
