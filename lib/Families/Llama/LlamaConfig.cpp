//===- LlamaConfig.cpp - Sizes of Llama 3 ---------------------------------===//
#include "lib/Families/ModelFields.h"

using llvm::ArrayRef;
using llvm::StringRef;

namespace fsdp {

/// A published size of Llama 3; what is not listed is LlamaConfig's default.
static ModelSpec llama(StringRef name, int64_t seqLen, LlamaConfig config) {
  return {name.str(), config, /*batch=*/1, seqLen};
}

static LlamaConfig size(int64_t dim, int64_t layers, int64_t heads,
                        int64_t kvHeads, int64_t ffnDim, bool tied = false) {
  LlamaConfig config;
  config.dim = dim;
  config.layers = layers;
  config.heads = heads;
  config.kvHeads = kvHeads;
  config.ffnDim = ffnDim;
  config.tied = tied;
  return config;
}

static LlamaConfig withVocab(LlamaConfig config, int64_t vocab) {
  config.vocab = vocab;
  return config;
}

std::vector<RegisteredModel> llamaModels() {
  return {
      {llama("llama3_debug", 2048, withVocab(size(256, 6, 16, 16, 768), 2048)),
       "Llama 3 for tests, 6 M parameters"},
      {llama("llama3_1b", 8192, size(2048, 16, 32, 8, 8192, /*tied=*/true)),
       "Llama 3.2 1B, tied"},
      {llama("llama3_3b", 8192, size(3072, 28, 24, 8, 8192, /*tied=*/true)),
       "Llama 3.2 3B, tied"},
      {llama("llama3_8b", 8192, size(4096, 32, 32, 8, 14336)), "Llama 3.1 8B"},
      {llama("llama3_70b", 8192, size(8192, 80, 64, 8, 28672)),
       "Llama 3.1 70B"},
      {llama("llama3_405b", 8192, size(16384, 126, 128, 8, 53248)),
       "Llama 3.1 405B"},
  };
}

/// The keys are torchtitan's where it has them.
ArrayRef<FieldOf<LlamaConfig>> fields(const LlamaConfig &) {
  using C = LlamaConfig;
  static const FieldOf<C> all[] = {
      {"dim", "width of the residual stream", &C::dim},
      {"n_layers", "transformer blocks", &C::layers, kMaxLayers},
      {"n_heads", "query heads", &C::heads},
      {"n_kv_heads", "key and value heads", &C::kvHeads},
      {"head_dim", "width of a head (0: dim / n_heads)", &C::headDim},
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

llvm::Error verifyConfig(const LlamaConfig &config) {
  if (!config.headDim && config.dim % config.heads)
    return llvm::createStringError(
        "dim = " + llvm::Twine(config.dim) +
        " is not divisible by n_heads = " + llvm::Twine(config.heads));
  if (config.heads % config.kvHeads)
    return llvm::createStringError(
        "n_heads = " + llvm::Twine(config.heads) +
        " is not divisible by n_kv_heads = " + llvm::Twine(config.kvHeads));
  if (config.getHeadDim() % 2)
    return llvm::createStringError(
        "a head of " + llvm::Twine(config.getHeadDim()) +
        " elements has no rotary pairs: its width must be even");
  if (!(config.normEps >= 0))
    return llvm::createStringError("norm_eps must not be negative");
  if (!(config.ropeTheta > 0) || !(config.ropeFactor > 0))
    return llvm::createStringError(
        "rope_theta and rope_factor must be positive");
  if (config.ropeFactor != 1 &&
      !(config.ropeLow > 0 && config.ropeHigh > config.ropeLow))
    return llvm::createStringError(
        "rope_high must be greater than rope_low, and both positive");
  return llvm::Error::success();
}

} // namespace fsdp
