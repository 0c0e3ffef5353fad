//===- Olmo2Tensors.cpp - The tensors of OLMo-2 ---------------------------===//
#include "../DecoderTensors.h"

using namespace fsdp;
using namespace fsdp::checkpoint;

/// Norms are on the branches, and of q and k over all heads at once.
TensorRows checkpoint::olmo2Tensors() {
  return decoderTensors(
      {attentionTensors(AttentionBiases::Stated),
       headNormTensors("n_heads*head_dim", "n_kv_heads*head_dim"),
       feedForwardTensors(),
       {vectorTensor("layers.*.post_attention_norm.weight",
                     "model.layers.*.post_attention_layernorm.weight"),
        vectorTensor("layers.*.post_ffn_norm.weight",
                     "model.layers.*.post_feedforward_layernorm.weight")}});
}
