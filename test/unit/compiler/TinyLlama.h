//===- TinyLlama.h - A model that is quick to interpret ---------*- C++ -*-===//
#ifndef FSDP_TEST_UNIT_COMPILER_TINYLLAMA_H
#define FSDP_TEST_UNIT_COMPILER_TINYLLAMA_H

#include "fsdp/Families/Families.h"
#include "fsdp/Interpreter/Interpreter.h"
#include <random>

namespace fsdp {

constexpr int64_t kTinyVocab = 11;

/// Sizes that no mesh divides all of, so that shards are padded.
inline DecoderConfig tinyLlama(bool tied) {
  DecoderConfig config = checkpoint::findFamily("llama3")->base;
  config.dim = 8;
  config.layers = 2;
  config.heads = 4;
  config.kvHeads = 2;
  config.ffnDim = 10;
  config.vocab = kTinyVocab;
  config.tied = tied;
  return config;
}

/// Values between `low` and `high`.
inline interpret::DenseTensor randomTensor(std::mt19937_64 &generator,
                                           llvm::ArrayRef<int64_t> shape,
                                           double low, double high) {
  std::uniform_real_distribution<double> uniform(low, high);
  interpret::DenseTensor tensor = interpret::DenseTensor::full(shape.vec());
  for (double &value : tensor.values)
    value = uniform(generator);
  return tensor;
}

} // namespace fsdp

#endif // FSDP_TEST_UNIT_COMPILER_TINYLLAMA_H
