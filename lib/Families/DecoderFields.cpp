//===- DecoderFields.cpp - The fields of decoders by key ------------------===//
#include "fsdp/Families/DecoderConfig.h"
#include <cmath>

using namespace fsdp;

double DecoderConfig::attentionScale(int64_t layer) const {
  double width =
      attnScalar != 0 ? attnScalar : static_cast<double>(getHeadDim());
  double scale = 1 / std::sqrt(width);
  return attnByLayer ? scale / static_cast<double>(layer + 1) : scale;
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
      {"rope_theta", "base of the rotary frequencies", &C::ropeTheta},
      {"rope_factor", "stretch of low frequencies (1: none)", &C::ropeFactor},
      {"rope_low", "low_freq_factor of the stretch", &C::ropeLow},
      {"rope_high", "high_freq_factor of the stretch", &C::ropeHigh},
      {"rope_original", "context length before the stretch", &C::ropeOriginal},
      {"rope_halves", "true: rotate halves of a head, not neighbours",
       &C::ropeHalves},
      {"tied", "true: the output layer reads the embedding", &C::tied},
  };
  return all;
}
