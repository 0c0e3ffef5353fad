//===- DecoderFields.cpp - The fields of decoders by key ------------------===//
#include "fsdp/Families/DecoderConfig.h"
#include <cmath>
#include <sstream>

using namespace fsdp;

double DecoderConfig::attentionScale(int64_t layer) const {
  double width =
      attnScalar != 0 ? attnScalar : static_cast<double>(getHeadDim());
  double scale = attnScaled ? 1 / std::sqrt(width) : 1;
  return attnByLayer ? scale / static_cast<double>(layer + 1) : scale;
}

int64_t DecoderConfig::windowOf(int64_t layer) const {
  bool isThere =
      window != 0 && fsdp::windowLayers(windowLayers, layers)->count(layer);
  return isThere ? window : 0;
}

double DecoderConfig::embeddingScale() const {
  return scalesEmbedding ? std::sqrt(static_cast<double>(dim)) : 1;
}

/// The keys are torchtitan's where it has them.
const std::vector<FieldOf<DecoderConfig>> &fsdp::decoderFields() {
  using C = DecoderConfig;
  static const std::vector<FieldOf<C>> all = {
      {"dim", "width of the residual stream", &C::dim},
      {"n_layers", "transformer blocks", &C::layers, kMaxLayers},
      {"n_heads", "query heads", &C::heads},
      {"n_kv_heads", "key and value heads", &C::kvHeads},
      {"head_dim", "width of a head (0: dim / n_heads)", &C::headDim,
       kMaxDimension, /*min=*/0},
      {"ffn_dim", "inner width of the feed-forward layer", &C::ffnDim},
      {"vocab_size", "tokens in the vocabulary", &C::vocab, kMaxVocabulary},
      {"max_seq_len", "longest sequence allowed", &C::maxSeqLen},
      {"norm_eps", "epsilon of the norms", &C::normEps},
      {"activation", "silu, gelu, gelu_tanh or relu", &C::activation},
      {"attention_bias", "true: projections of attention have biases",
       &C::attnBias},
      {"attn_scalar", "scores are divided by its root (0: head_dim)",
       &C::attnScalar},
      {"attn_scaled", "false: scores are not divided by it", &C::attnScaled},
      {"attn_by_layer", "true: scores of layer i are divided by i + 1",
       &C::attnByLayer},
      {"attn_cap", "scores are cap tanh(scores / cap) (0: as they are)",
       &C::attnCap},
      {"window", "keys that a query sees, its own included (0: all)",
       &C::window, kMaxDimension, /*min=*/0},
      {"window_layers", "layers with a window: all, even, from N, or numbers",
       &C::windowLayers},
      {"logit_cap", "logits are cap tanh(logits / cap) (0: as they are)",
       &C::logitCap},
      {"rotary_dim", "first elements of a head that are rotated (0: all)",
       &C::rotaryDim, kMaxDimension, /*min=*/0},
      {"rope_type", "stretch of frequencies: llama3, linear, yarn, longrope",
       &C::ropeType},
      {"rope_theta", "base of the rotary frequencies", &C::ropeTheta},
      {"rope_factor", "stretch of low frequencies (1: none)", &C::ropeFactor},
      {"rope_low", "low_freq_factor of the stretch", &C::ropeLow},
      {"rope_high", "high_freq_factor of the stretch", &C::ropeHigh},
      {"rope_original", "context length before the stretch", &C::ropeOriginal},
      {"rope_scale", "factor of cosines and sines (0: by rope_factor)",
       &C::ropeScale},
      {"rope_beta_fast", "beta_fast of yarn", &C::ropeBetaFast},
      {"rope_beta_slow", "beta_slow of yarn", &C::ropeBetaSlow},
      {"rope_mscale", "mscale of yarn (0: none)", &C::ropeMscale},
      {"rope_mscale_all_dim", "mscale_all_dim of yarn (0: none)",
       &C::ropeMscaleAllDim},
      {"rope_truncate", "false: yarn's bounds are not rounded",
       &C::ropeTruncate},
      {"rope_short", "factors of longrope up to rope_original positions",
       &C::ropeShort},
      {"rope_long", "factors of longrope beyond rope_original positions",
       &C::ropeLong},
      {"rope_halves", "true: rotate halves of a head, not neighbours",
       &C::ropeHalves},
      {"tied", "true: the output layer reads the embedding", &C::tied},
  };
  return all;
}

std::optional<std::set<int64_t>> fsdp::windowLayers(const std::string &text,
                                                    int64_t layers) {
  std::set<int64_t> all;
  auto add = [&](int64_t first, int64_t step) {
    for (int64_t layer = first; layer < layers; layer += step)
      all.insert(layer);
    return all;
  };
  if (text == "all")
    return add(0, 1);
  if (text == "even")
    return add(0, 2);
  int64_t first = 0;
  if (text.rfind("from ", 0) == 0 && parseValue(text.substr(5), first) &&
      first >= 0)
    return add(first, 1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    int64_t layer = 0;
    if (!parseValue(word, layer) || layer < 0)
      return std::nullopt;
    all.insert(layer);
  }
  return all;
}
