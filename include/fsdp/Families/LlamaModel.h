//===- LlamaModel.h - Llama 3 -----------------------------------*- C++ -*-===//
//
// The model of "The Llama 3 Herd of Models" (Dubey et al., 2024): pre-norm
// transformer blocks with grouped-query attention (Ainslie et al., 2023),
// rotary positions (Su et al., 2021) and SwiGLU (Shazeer, 2020). Names,
// registration order and initialisers are torchtitan's.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_FAMILIES_LLAMAMODEL_H
#define FSDP_FAMILIES_LLAMAMODEL_H

#include "fsdp/Families/LlamaConfig.h"
#include "fsdp/Trace/Module.h"

namespace fsdp::model {

/// Causal attention in which groups of query heads share a key and value.
class Attention : public Layer<Attention> {
public:
  Attention(Module &parent, llvm::StringRef name, const LlamaConfig &config,
            int64_t layer);
  Tensor forward(Tensor x, Tensor ropeTable) const;

private:
  int64_t headDim;
  bool ropeHalves;
  Linear wq, wk, wv, wo;
};

/// w2(silu(w1 x) * w3 x).
class FeedForward : public Layer<FeedForward> {
public:
  FeedForward(Module &parent, llvm::StringRef name, const LlamaConfig &config,
              int64_t layer);
  Tensor forward(Tensor x) const;

private:
  Linear w1, w2, w3;
};

class TransformerBlock : public Layer<TransformerBlock> {
public:
  TransformerBlock(Module &parent, llvm::StringRef name,
                   const LlamaConfig &config, int64_t layer);
  Tensor forward(Tensor x, Tensor ropeTable) const;

private:
  Attention attention;
  FeedForward feedForward;
  RMSNorm attentionNorm, ffnNorm;
};

/// tokens, targets [batch, sequence] -> loss, logits [batch, sequence, vocab].
class Llama3 : public Model {
public:
  Llama3(const LlamaConfig &config, int64_t batch, int64_t seqLen);
  std::vector<NamedType> inputs(mlir::MLIRContext *context) const override;
  std::vector<NamedTensor>
  forward(llvm::ArrayRef<Tensor> inputs) const override;

private:
  int64_t batch, seqLen;
  Embedding tokEmbeddings;
  Buffer ropeTable;
  ModuleList<TransformerBlock> layers;
  RMSNorm norm;
  std::optional<Linear> output; // none: tied to the embedding
};

} // namespace fsdp::model

#endif // FSDP_FAMILIES_LLAMAMODEL_H
