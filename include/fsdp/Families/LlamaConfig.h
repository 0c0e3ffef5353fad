//===- LlamaConfig.h - Sizes of Llama 3 -------------------------*- C++ -*-===//
#ifndef FSDP_FAMILIES_LLAMACONFIG_H
#define FSDP_FAMILIES_LLAMACONFIG_H

#include <cstdint>

namespace fsdp {

/// Llama 3 (Dubey et al., 2024). Defaults are the values that all published
/// sizes share.
struct LlamaConfig {
  int64_t dim = 4096;
  int64_t layers = 32;
  int64_t heads = 32;
  int64_t kvHeads = 8;
  int64_t headDim = 0; // 0: dim / heads
  int64_t ffnDim = 14336;
  int64_t vocab = 128256;
  int64_t maxSeqLen = 131072;
  double normEps = 1e-5;
  double ropeTheta = 500000;
  // Frequencies are stretched as in Llama 3.1; a factor of 1 leaves them.
  double ropeFactor = 8;
  double ropeLow = 1;
  double ropeHigh = 4;
  int64_t ropeOriginal = 8192;
  // Which elements of a head are a rotary pair: neighbours as in Meta's
  // weights, or the same places of its halves as in Hugging Face's.
  bool ropeHalves = false;
  bool tied = false; // the output layer reads the embedding's table

  int64_t getHeadDim() const { return headDim ? headDim : dim / heads; }
};

} // namespace fsdp

#endif // FSDP_FAMILIES_LLAMACONFIG_H
