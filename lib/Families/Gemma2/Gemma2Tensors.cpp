//===- Gemma2Tensors.cpp - The tensors of Gemma 2 -------------------------===//
#include "../DecoderTensors.h"

using namespace fsdp;
using namespace fsdp::checkpoint;

/// post_attention_layernorm is on the branch here, not in front of mlp.
TensorRows checkpoint::gemma2Tensors() {
  return decoderTensors(
      {attentionTensors(AttentionBiases::Stated),
       feedForwardTensors(),
       {vectorTensor("layers.*.attention_norm.weight",
                     "model.layers.*.input_layernorm.weight"),
        vectorTensor("layers.*.post_attention_norm.weight",
                     "model.layers.*.post_attention_layernorm.weight"),
        vectorTensor("layers.*.ffn_norm.weight",
                     "model.layers.*.pre_feedforward_layernorm.weight"),
        vectorTensor("layers.*.post_ffn_norm.weight",
                     "model.layers.*.post_feedforward_layernorm.weight")}});
}
