//===- QwenTensors.cpp - The tensors of Qwen 2, 2.5 and 3 -----------------===//
#include "../DecoderTensors.h"

using namespace fsdp;
using namespace fsdp::checkpoint;

TensorRows checkpoint::qwen2Tensors() {
  return decoderTensors({attentionTensors(AttentionBiases::QueryKeyValue),
                         feedForwardTensors(), layerNormTensors()});
}

/// One norm for every head.
TensorRows checkpoint::qwen3Tensors() {
  return decoderTensors({attentionTensors(AttentionBiases::Stated),
                         headNormTensors("head_dim", "head_dim"),
                         feedForwardTensors(), layerNormTensors()});
}
