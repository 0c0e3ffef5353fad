//===- DecoderConfig.h - What a decoder computes ----------------*- C++ -*-===//
//
// A decoder-only transformer, said in mechanisms: which norm stands where,
// where positions come from, what has a bias. A family of models is a choice
// of them (Families.h), and nothing that builds or reads a decoder asks for
// the family's name. Sizes are in elements.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_FAMILIES_DECODERCONFIG_H
#define FSDP_FAMILIES_DECODERCONFIG_H

#include "fsdp/Families/FieldOf.h"
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fsdp {

enum class NormKind {
  Rms,  // x / sqrt(mean(x^2) + eps) * w
  Layer // (x - mean) / sqrt(var + eps) * w + b
};

/// Norms of queries and keys, before they are rotated.
enum class HeadNorm {
  None,
  PerHead, // of each head by itself, one weight of head_dim for all
  Whole    // of all heads together, before they are split
};

struct DecoderConfig {
  /// The table in Families.h that this is a model of; for its name alone.
  std::string family;

  int64_t dim = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kvHeads = 0; // 0: heads
  int64_t headDim = 0; // 0: dim / heads
  int64_t ffnDim = 0;
  int64_t vocab = 0;
  int64_t maxSeqLen = 0;

  // Norms: of what goes into a branch (attention, feed-forward), and of what
  // comes out of it before it is added to the stream.
  NormKind norm = NormKind::Rms;
  bool normPlusOne = false; // rms: w starts at 0, and 1 + w multiplies
  bool normBefore = true, normOnBranch = false;
  HeadNorm headNorm = HeadNorm::None;
  double normEps = 1e-5;

  // Positions: rotary angles in every layer, or a table of max_seq_len rows
  // that is added to the embedding.
  bool learnedPositions = false;
  int64_t rotaryDim = 0; // so many first elements of a head; 0: whole heads
  double ropeTheta = 10000;
  // How frequencies are stretched (Rotary.h); a factor of 1 leaves them.
  std::string ropeType = "llama3"; // of kRopeTypes
  double ropeFactor = 1;
  double ropeLow = 1, ropeHigh = 4; // of llama3
  int64_t ropeOriginal = 8192;      // the length before the stretch
  double ropeScale = 0; // of cosines and sines (yarn, longrope); 0: by factor
  double ropeBetaFast = 32, ropeBetaSlow = 1;  // of yarn
  double ropeMscale = 0, ropeMscaleAllDim = 0; // of yarn
  bool ropeTruncate = true;                    // of yarn
  std::vector<double> ropeShort, ropeLong;     // of longrope, one of each pair
  // Which elements of a head are a rotary pair: neighbours as in Meta's
  // weights, or the same places of its halves as in Hugging Face's.
  bool ropeHalves = false;

  // Attention. Scores are q k / sqrt(attnScalar), of layer i (from 0) divided
  // by i + 1 if `attnByLayer`.
  bool qkvBias = false;   // of queries, keys and values
  bool attnBias = false;  // of the output too
  double attnScalar = 0;  // 0: head_dim
  bool attnScaled = true; // false: not divided by the root
  bool attnByLayer = false;
  double attnCap = 0; // scores are cap tanh(scores / cap); 0: as they are
  // In layers of `windowLayers` a query sees so many keys, its own included
  // and none later; 0: all before it.
  int64_t window = 0;
  std::string windowLayers = "all"; // see windowLayers()

  // Feed-forward: w2(act(w1 x) * w3 x), or w2(act(w1 x)) if it is not gated.
  std::string activation = "silu"; // of kActivations
  bool isGated = true;
  bool ffnBias = false;

  bool scalesEmbedding = false; // its rows are multiplied with sqrt(dim)
  double logitCap = 0; // logits are cap tanh(logits / cap); 0: as they are
  bool tied = false;   // the output layer reads the embedding's table

  int64_t getHeadDim() const { return headDim ? headDim : dim / heads; }
  int64_t getKvHeads() const { return kvHeads ? kvHeads : heads; }
  /// The elements of a head that are rotated.
  int64_t getRotaryDim() const { return rotaryDim ? rotaryDim : getHeadDim(); }
  /// What scores of `layer` are multiplied with.
  double attentionScale(int64_t layer) const;
  /// The window of `layer`; 0: none. A sequence may be as short.
  int64_t windowOf(int64_t layer) const;
  /// What rows of the embedding are multiplied with.
  double embeddingScale() const;
};

/// `gelu` is exact, `gelu_tanh` its form by tanh (Hendrycks and Gimpel, 2016).
inline constexpr const char *kActivations[] = {"silu", "gelu_tanh", "gelu",
                                               "relu"};

inline constexpr const char *kRopeTypes[] = {"llama3", "linear", "yarn",
                                             "longrope"};

/// Every field that some family has, in the order in which they are listed.
const std::vector<FieldOf<DecoderConfig>> &decoderFields();

/// The layers that a text names: "all", "even" (0, 2, …), "from 3", or numbers
/// with spaces between them. Unset: it is none of these.
std::optional<std::set<int64_t>> windowLayers(const std::string &text,
                                              int64_t layers);

} // namespace fsdp

#endif // FSDP_FAMILIES_DECODERCONFIG_H
