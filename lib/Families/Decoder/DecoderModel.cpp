//===- DecoderModel.cpp - Decoder-only transformers -----------------------===//
#include "fsdp/Families/DecoderModel.h"
#include "dialects/NN/NN.h"
#include "fsdp/Families/Rotary.h"
#include "fsdp/Support/RangeNames.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace mlir;

namespace fsdp::model {

//===----------------------------------------------------------------------===//
// Initialisers (torchtitan's)
//===----------------------------------------------------------------------===//

// Upstream cuts this one at +-2 in absolute terms, 100 standard deviations
// away, which is no cut at all.
static Init projection() { return normal(0.02); }

/// Projections that write to the residual stream: the deeper, the smaller, so
/// that the stream's variance does not grow with depth.
static Init residualProjection(int64_t layer) {
  return normal(0.02 / std::sqrt(2.0 * (layer + 1)));
}

static Init outputProjection(int64_t dim) {
  return normal(1 / std::sqrt(static_cast<double>(dim)), /*cut=*/3);
}

/// A tied table is initialised as the output layer it also is: with unit
/// variance the first logits would have a deviation of sqrt(dim).
static Init embeddingTable(const DecoderConfig &config) {
  return config.tied ? outputProjection(config.dim) : normal(1);
}

static Init rotaryAngles(const RotaryNumbers &numbers) {
  return [numbers](MLIRContext *context) {
    SmallVector<nn::Real> frequencies(numbers.frequencies.begin(),
                                      numbers.frequencies.end());
    return nn::RotaryTableAttr::get(context, frequencies, numbers.scale,
                                    /*start=*/0);
  };
}

//===----------------------------------------------------------------------===//
// Norms and positions
//===----------------------------------------------------------------------===//

Norm::Norm(Module &parent, StringRef name, const DecoderConfig &config,
           int64_t dim)
    : Layer(parent, name),
      weight(*this, "weight", dim, config.normPlusOne ? zeros() : ones()),
      eps(config.normEps), plusOne(config.normPlusOne) {
  if (config.norm == NormKind::Layer)
    bias.emplace(*this, "bias", dim, zeros());
}

Tensor Norm::forward(Tensor x) const {
  Tensor w = x.tracer().use(weight);
  return bias ? layerNorm(x, w, x.tracer().use(*bias), eps)
              : rmsNorm(x, w, eps, plusOne);
}

static OptionalNorm normIf(bool isThere, Module &parent, StringRef name,
                           const DecoderConfig &config, int64_t dim) {
  return isThere ? std::make_unique<const Norm>(parent, name, config, dim)
                 : nullptr;
}

PositionTable::PositionTable(Module &parent, StringRef name, int64_t rows,
                             int64_t dim)
    : Layer(parent, name), weight(*this, "weight", {rows, dim}, projection()) {}

Tensor PositionTable::forward(Tensor x) const {
  Tensor rows = slice(x.tracer().use(weight), {0, 0}, {x.size(1), x.size(2)});
  return addToResidual(x, broadcast(rows, {1, 2}, x.shape()));
}

//===----------------------------------------------------------------------===//
// The transformer block
//===----------------------------------------------------------------------===//

/// A linear layer, with a bias that starts at 0 if `hasBias`.
static Linear linearLayer(Module &parent, StringRef name, int64_t in,
                          int64_t out, Init init, bool hasBias) {
  return hasBias ? Linear(parent, name, in, out, std::move(init), zeros())
                 : Linear(parent, name, in, out, std::move(init));
}

static bool hasQkvBias(const DecoderConfig &config) {
  return config.attnBias || config.qkvBias;
}

static nn::AttentionView viewOf(const DecoderConfig &config, int64_t layer) {
  return {/*causal=*/true, config.windowOf(layer), config.attnCap};
}

Attention::Attention(Module &parent, StringRef name,
                     const DecoderConfig &config, int64_t layer)
    : Layer(parent, name), headDim(config.getHeadDim()),
      scale(config.attentionScale(layer)), view(viewOf(config, layer)),
      ropeHalves(config.ropeHalves), headNorm(config.headNorm),
      wq(linearLayer(*this, "wq", config.dim, config.heads * headDim,
                     projection(), hasQkvBias(config))),
      wk(linearLayer(*this, "wk", config.dim, config.getKvHeads() * headDim,
                     projection(), hasQkvBias(config))),
      wv(linearLayer(*this, "wv", config.dim, config.getKvHeads() * headDim,
                     projection(), hasQkvBias(config))),
      wo(linearLayer(*this, "wo", config.heads * headDim, config.dim,
                     residualProjection(layer), config.attnBias)) {
  bool isWhole = headNorm == HeadNorm::Whole;
  bool isThere = headNorm != HeadNorm::None;
  qNorm = normIf(isThere, *this, "q_norm", config,
                 isWhole ? config.heads * headDim : headDim);
  kNorm = normIf(isThere, *this, "k_norm", config,
                 isWhole ? config.getKvHeads() * headDim : headDim);
}

/// [batch, sequence, heads * headDim] -> [batch, sequence, heads, headDim].
static Tensor splitHeads(Tensor x, int64_t headDim) {
  return reshape(x, {x.size(0), x.size(1), x.size(2) / headDim, headDim});
}

/// The inverse of splitHeads.
static Tensor joinHeads(Tensor x) {
  return reshape(x, {x.size(0), x.size(1), x.size(2) * x.size(3)});
}

/// Rotates the first elements of each head, as many as the table has.
static Tensor rotateFirst(Tensor x, Tensor table, bool halves) {
  int64_t headDim = x.size(3), rotated = 2 * table.size(1);
  if (rotated == headDim)
    return rotary(x, table, halves);
  SmallVector<int64_t> sizes(x.shape());
  sizes[3] = rotated;
  Tensor first = rotary(slice(x, {0, 0, 0, 0}, sizes), table, halves);
  sizes[3] = headDim - rotated;
  return concat(first, slice(x, {0, 0, 0, rotated}, sizes));
}

/// Heads of queries or keys: with their norm, rotated.
Tensor Attention::toHeads(Tensor x, const OptionalNorm &norm,
                          const Tensor *ropeTable) const {
  if (headNorm == HeadNorm::Whole)
    x = (*norm)(x);
  x = splitHeads(x, headDim);
  if (headNorm == HeadNorm::PerHead)
    x = (*norm)(x);
  return ropeTable ? rotateFirst(x, *ropeTable, ropeHalves) : x;
}

Tensor Attention::forward(Tensor x, const Tensor *ropeTable) const {
  Tensor q = toHeads(wq(x), qNorm, ropeTable);
  Tensor k = toHeads(wk(x), kNorm, ropeTable);
  Tensor v = splitHeads(wv(x), headDim);
  return wo(joinHeads(attention(q, k, v, scale, view)));
}

/// What DecoderConfig::activation names.
static Tensor (*activationNamed(StringRef name))(Tensor) {
  return llvm::StringSwitch<Tensor (*)(Tensor)>(name)
      .Case("gelu", gelu)
      .Case("gelu_tanh", geluTanh)
      .Case("relu", relu)
      .Default(silu);
}

FeedForward::FeedForward(Module &parent, StringRef name,
                         const DecoderConfig &config, int64_t layer)
    : Layer(parent, name), activation(activationNamed(config.activation)),
      w1(linearLayer(*this, "w1", config.dim, config.ffnDim, projection(),
                     config.ffnBias)),
      w2(linearLayer(*this, "w2", config.ffnDim, config.dim,
                     residualProjection(layer), config.ffnBias)) {
  if (!config.isGated)
    return;
  auto make = [&](auto... biasInit) {
    return std::make_unique<const Linear>(
        *this, "w3", config.dim, config.ffnDim, residualProjection(layer),
        biasInit...);
  };
  w3 = config.ffnBias ? make(zeros()) : make();
}

Tensor FeedForward::forward(Tensor x) const {
  Tensor gate = activation(w1(x));
  return w2(w3 ? gate * (*w3)(x) : gate);
}

TransformerBlock::TransformerBlock(Module &parent, StringRef name,
                                   const DecoderConfig &config, int64_t layer)
    : Layer(parent, name), attention(*this, "attention", config, layer),
      feedForward(*this, "feed_forward", config, layer) {
  auto normOf = [&](bool isThere, StringRef which) {
    return normIf(isThere, *this, which, config, config.dim);
  };
  attentionNorm = normOf(config.normBefore, "attention_norm");
  ffnNorm = normOf(config.normBefore, "ffn_norm");
  postAttentionNorm = normOf(config.normOnBranch, "post_attention_norm");
  postFfnNorm = normOf(config.normOnBranch, "post_ffn_norm");
}

static Tensor apply(const OptionalNorm &norm, Tensor x) {
  return norm ? (*norm)(x) : x;
}

Tensor TransformerBlock::forward(Tensor x, const Tensor *ropeTable) const {
  Tensor attended = attention(apply(attentionNorm, x), ropeTable);
  Tensor h = addToResidual(x, apply(postAttentionNorm, attended));
  return addToResidual(h, apply(postFfnNorm, feedForward(apply(ffnNorm, h))));
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

Decoder::Decoder(const DecoderConfig &config, int64_t batch, int64_t seqLen)
    : batch(batch), seqLen(seqLen), embedScale(config.embeddingScale()),
      logitCap(config.logitCap),
      tokEmbeddings(*this, "tok_embeddings", config.vocab, config.dim,
                    embeddingTable(config)),
      positions(config.learnedPositions
                    ? std::make_unique<const PositionTable>(
                          *this, "pos_embeddings", config.maxSeqLen, config.dim)
                    : nullptr),
      ropeTable(
          config.learnedPositions
              ? nullptr
              : std::make_unique<const Buffer>(
                    *this, "rope_table",
                    ArrayRef<int64_t>{seqLen, config.getRotaryDim() / 2, 2},
                    rotaryAngles(rotaryNumbers(config, seqLen)))),
      layers(*this, "layers", config.layers,
             [&](Module &list, int64_t layer) {
               return std::make_unique<TransformerBlock>(
                   list, std::to_string(layer), config, layer);
             }),
      norm(*this, "norm", config, config.dim) {
  if (!config.tied)
    output = std::make_unique<const Linear>(*this, "output", config.dim,
                                            config.vocab,
                                            outputProjection(config.dim));
}

std::vector<NamedType> Decoder::inputs(MLIRContext *context) const {
  auto type =
      RankedTensorType::get({batch, seqLen}, IntegerType::get(context, 32));
  return {{range_name::kTokens, type}, {range_name::kTargets, type}};
}

/// The stream before the first block.
Tensor Decoder::embed(Tensor tokens) const {
  Tensor h = tokEmbeddings(tokens);
  if (embedScale != 1) {
    Tracer::Scope scope(tokens.tracer(), "embed_scale");
    h = h * constantLike(h, embedScale);
  }
  return positions ? (*positions)(h) : h;
}

/// What the softmax reads, from the last norm on.
Tensor Decoder::logits(Tensor h) const {
  Tensor scores = output ? (*output)(h) : tokEmbeddings.scores(h);
  if (logitCap == 0)
    return scores;
  Tracer::Scope scope(h.tracer(), "logit_cap");
  Tensor cap = constantLike(scores, logitCap);
  return tanh(scores / cap) * cap;
}

std::vector<NamedTensor> Decoder::forward(ArrayRef<Tensor> inputs) const {
  Tensor tokens = inputs[0], targets = inputs[1];
  std::optional<Tensor> rope;
  if (ropeTable)
    rope = tokens.tracer().use(*ropeTable);
  Tensor h = embed(tokens);
  for (const TransformerBlock &layer : layers)
    h = layer(h, rope ? &*rope : nullptr);
  Tensor scores = logits(norm(h));

  Tracer::Scope scope(tokens.tracer(), "loss");
  return {{range_name::kLoss, crossEntropy(scores, targets)},
          {range_name::kLogits, scores}};
}

} // namespace fsdp::model
