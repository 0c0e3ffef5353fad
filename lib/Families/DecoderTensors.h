//===- DecoderTensors.h - Tensors of families of decoders -------*- C++ -*-===//
//
// The table of tensors of each family, and the rows that families share: most
// name the modules of a layer as Llama does. Order and names of files are those
// of transformers' modules, our names torchtitan's.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_FAMILIES_DECODERTENSORS_H
#define FSDP_FAMILIES_DECODERTENSORS_H

#include "fsdp/Families/Families.h"

namespace fsdp::checkpoint {

using TensorRows = std::vector<FamilyTensor>;

TensorRows llamaTensors();
TensorRows gpt2Tensors();
TensorRows qwen2Tensors();
TensorRows qwen3Tensors();
TensorRows mistralTensors();
TensorRows gemma2Tensors();
TensorRows phi3Tensors();
TensorRows olmo2Tensors();

//===----------------------------------------------------------------------===//
// Rows that families share
//===----------------------------------------------------------------------===//

/// Which of the projections of attention have a bias: none, those of q, k and
/// v, or all four where the field `attention_bias` is true.
enum class AttentionBiases { None, QueryKeyValue, Stated };

/// q_proj, k_proj, v_proj and o_proj of self_attn, whose heads are rotated
/// whole.
TensorRows attentionTensors(AttentionBiases biases);
/// self_attn.q_norm and self_attn.k_norm, of these sizes, in front of rotary
/// positions.
TensorRows headNormTensors(const char *querySize, const char *keySize);
/// gate_proj, up_proj and down_proj of mlp.
TensorRows feedForwardTensors();
/// input_layernorm and post_attention_layernorm: in front of attention, and of
/// mlp.
TensorRows layerNormTensors();
/// A vector of the model's width.
FamilyTensor vectorTensor(const char *ours, const char *theirs);
/// The last layer, another use of tok_embeddings.weight where the model is
/// tied.
FamilyTensor outputTensor();
/// The whole table: embedding, what a layer has, last norm and output.
TensorRows decoderTensors(const std::vector<TensorRows> &layer);
/// All of these, one after another.
TensorRows joinedRows(const std::vector<TensorRows> &parts);

} // namespace fsdp::checkpoint

#endif // FSDP_FAMILIES_DECODERTENSORS_H
