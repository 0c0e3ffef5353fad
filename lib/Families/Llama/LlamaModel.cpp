//===- LlamaModel.cpp - Llama 3 -------------------------------------------===//
#include "fsdp/Families/LlamaModel.h"
#include "dialects/NN/NN.h"
#include "fsdp/Support/RangeNames.h"
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
static Init embeddingTable(const LlamaConfig &config) {
  return config.tied ? outputProjection(config.dim) : normal(1);
}

static Init rotaryAngles(const LlamaConfig &config) {
  return [config](MLIRContext *context) {
    return nn::RotaryTableAttr::get(
        context, config.ropeTheta, config.ropeFactor, config.ropeLow,
        config.ropeHigh, config.ropeOriginal, /*start=*/0);
  };
}

//===----------------------------------------------------------------------===//
// The transformer block
//===----------------------------------------------------------------------===//

Attention::Attention(Module &parent, StringRef name, const LlamaConfig &config,
                     int64_t layer)
    : Layer(parent, name), headDim(config.getHeadDim()),
      ropeHalves(config.ropeHalves),
      wq(*this, "wq", config.dim, config.heads * headDim, projection()),
      wk(*this, "wk", config.dim, config.kvHeads * headDim, projection()),
      wv(*this, "wv", config.dim, config.kvHeads * headDim, projection()),
      wo(*this, "wo", config.heads * headDim, config.dim,
         residualProjection(layer)) {}

/// [batch, sequence, heads * headDim] -> [batch, sequence, heads, headDim].
static Tensor splitHeads(Tensor x, int64_t headDim) {
  return reshape(x, {x.size(0), x.size(1), x.size(2) / headDim, headDim});
}

/// The inverse of splitHeads.
static Tensor joinHeads(Tensor x) {
  return reshape(x, {x.size(0), x.size(1), x.size(2) * x.size(3)});
}

Tensor Attention::forward(Tensor x, Tensor ropeTable) const {
  Tensor q = rotary(splitHeads(wq(x), headDim), ropeTable, ropeHalves);
  Tensor k = rotary(splitHeads(wk(x), headDim), ropeTable, ropeHalves);
  Tensor v = splitHeads(wv(x), headDim);
  double scale = 1 / std::sqrt(static_cast<double>(headDim));
  return wo(joinHeads(causalAttention(q, k, v, scale)));
}

FeedForward::FeedForward(Module &parent, StringRef name,
                         const LlamaConfig &config, int64_t layer)
    : Layer(parent, name),
      w1(*this, "w1", config.dim, config.ffnDim, projection()),
      w2(*this, "w2", config.ffnDim, config.dim, residualProjection(layer)),
      w3(*this, "w3", config.dim, config.ffnDim, residualProjection(layer)) {}

Tensor FeedForward::forward(Tensor x) const {
  Tensor gate = silu(w1(x));
  return w2(gate * w3(x));
}

TransformerBlock::TransformerBlock(Module &parent, StringRef name,
                                   const LlamaConfig &config, int64_t layer)
    : Layer(parent, name), attention(*this, "attention", config, layer),
      feedForward(*this, "feed_forward", config, layer),
      attentionNorm(*this, "attention_norm", config.dim, config.normEps),
      ffnNorm(*this, "ffn_norm", config.dim, config.normEps) {}

Tensor TransformerBlock::forward(Tensor x, Tensor ropeTable) const {
  Tensor h = addToResidual(x, attention(attentionNorm(x), ropeTable));
  return addToResidual(h, feedForward(ffnNorm(h)));
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

Llama3::Llama3(const LlamaConfig &config, int64_t batch, int64_t seqLen)
    : batch(batch), seqLen(seqLen),
      tokEmbeddings(*this, "tok_embeddings", config.vocab, config.dim,
                    embeddingTable(config)),
      ropeTable(*this, "rope_table", {seqLen, config.getHeadDim() / 2, 2},
                rotaryAngles(config)),
      layers(*this, "layers", config.layers,
             [&](Module &list, int64_t layer) {
               return std::make_unique<TransformerBlock>(
                   list, std::to_string(layer), config, layer);
             }),
      norm(*this, "norm", config.dim, config.normEps) {
  if (!config.tied)
    output.emplace(*this, "output", config.dim, config.vocab,
                   outputProjection(config.dim));
}

std::vector<NamedType> Llama3::inputs(MLIRContext *context) const {
  auto type =
      RankedTensorType::get({batch, seqLen}, IntegerType::get(context, 32));
  return {{range_name::kTokens, type}, {range_name::kTargets, type}};
}

std::vector<NamedTensor> Llama3::forward(ArrayRef<Tensor> inputs) const {
  Tensor tokens = inputs[0], targets = inputs[1];
  Tensor rope = tokens.tracer().use(ropeTable);
  Tensor h = tokEmbeddings(tokens);
  for (const TransformerBlock &layer : layers)
    h = layer(h, rope);
  h = norm(h);
  Tensor logits = output ? (*output)(h) : tokEmbeddings.scores(h);

  Tracer::Scope scope(tokens.tracer(), "loss");
  return {{range_name::kLoss, crossEntropy(logits, targets)},
          {range_name::kLogits, logits}};
}

} // namespace fsdp::model
