//===- DecoderModel.h - Decoder-only transformers ---------------*- C++ -*-===//
//
// A transformer of blocks that read and add to a residual stream: attention in
// which groups of query heads share a key and value (Ainslie et al., 2023),
// rotary (Su et al., 2021) or learned positions, a feed-forward layer, gated
// (Shazeer, 2020) or not. DecoderConfig says which mechanisms it has. Names,
// registration order and initialisers are torchtitan's, where it has them.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_FAMILIES_DECODERMODEL_H
#define FSDP_FAMILIES_DECODERMODEL_H

#include "fsdp/Families/DecoderConfig.h"
#include "fsdp/Trace/Module.h"

namespace fsdp::model {

/// The decoder's norm, or that of its heads, over the last dimension.
class Norm : public Layer<Norm> {
public:
  Norm(Module &parent, llvm::StringRef name, const DecoderConfig &config,
       int64_t dim);
  Tensor forward(Tensor x) const;

private:
  Parameter weight;
  std::optional<Parameter> bias; // of a layer norm
  double eps;
  bool plusOne;
};

/// A norm that a decoder may lack.
using OptionalNorm = std::unique_ptr<const Norm>;

/// Adds row i of a learned table to position i of a stream.
class PositionTable : public Layer<PositionTable> {
public:
  PositionTable(Module &parent, llvm::StringRef name, int64_t rows,
                int64_t dim);
  /// x [batch, sequence, dim], of at most `rows` positions.
  Tensor forward(Tensor x) const;

private:
  Parameter weight;
};

/// Causal attention in which groups of query heads share a key and value.
class Attention : public Layer<Attention> {
public:
  Attention(Module &parent, llvm::StringRef name, const DecoderConfig &config,
            int64_t layer);
  /// `ropeTable`: null if nothing is rotated.
  Tensor forward(Tensor x, const Tensor *ropeTable) const;

private:
  Tensor toHeads(Tensor x, const OptionalNorm &norm,
                 const Tensor *ropeTable) const;

  int64_t headDim;
  double scale;
  nn::AttentionView view;
  bool ropeHalves;
  HeadNorm headNorm;
  Linear wq, wk, wv, wo;
  OptionalNorm qNorm, kNorm;
};

/// w2(act(w1 x) * w3 x), or w2(act(w1 x)).
class FeedForward : public Layer<FeedForward> {
public:
  FeedForward(Module &parent, llvm::StringRef name, const DecoderConfig &config,
              int64_t layer);
  Tensor forward(Tensor x) const;

private:
  Tensor (*activation)(Tensor);
  Linear w1, w2;
  std::unique_ptr<const Linear> w3; // null: not gated
};

class TransformerBlock : public Layer<TransformerBlock> {
public:
  TransformerBlock(Module &parent, llvm::StringRef name,
                   const DecoderConfig &config, int64_t layer);
  Tensor forward(Tensor x, const Tensor *ropeTable) const;

private:
  Attention attention;
  FeedForward feedForward;
  OptionalNorm attentionNorm, ffnNorm;         // before the branch
  OptionalNorm postAttentionNorm, postFfnNorm; // of the branch
};

/// tokens, targets [batch, sequence] -> loss, logits [batch, sequence, vocab].
class Decoder : public Model {
public:
  Decoder(const DecoderConfig &config, int64_t batch, int64_t seqLen);
  std::vector<NamedType> inputs(mlir::MLIRContext *context) const override;
  std::vector<NamedTensor>
  forward(llvm::ArrayRef<Tensor> inputs) const override;

private:
  Tensor embed(Tensor tokens) const;
  Tensor logits(Tensor h) const;

  int64_t batch, seqLen;
  double embedScale, logitCap;
  Embedding tokEmbeddings;
  std::unique_ptr<const PositionTable> positions; // null: rotary
  std::unique_ptr<const Buffer> ropeTable;        // null: learned
  ModuleList<TransformerBlock> layers;
  Norm norm;
  std::unique_ptr<const Linear> output; // null: tied to the embedding
};

} // namespace fsdp::model

#endif // FSDP_FAMILIES_DECODERMODEL_H
