//===- Phi3Tensors.cpp - The tensors of Phi-3 -----------------------------===//
#include "../DecoderTensors.h"

using namespace fsdp;
using namespace fsdp::checkpoint;

/// A part of a tensor that files join; others keep it apart under its own name.
static FamilyTensor part(const char *ours, const char *theirs, const char *rows,
                         const char *apart, const char *rotary = nullptr) {
  FamilyTensor tensor{ours, theirs, {rows, "dim"}, rotary};
  tensor.apart = apart;
  return tensor;
}

/// Rows of q, k and v are one tensor in files, and so are those of gate and up.
TensorRows checkpoint::phi3Tensors() {
  const char *const query = "n_heads*head_dim";
  const char *const keyValue = "n_kv_heads*head_dim";
  const char *const rotary = "rotary_dim";
  const char *const qkv = "model.layers.*.self_attn.qkv_proj.weight";
  const char *const gateUp = "model.layers.*.mlp.gate_up_proj.weight";
  return decoderTensors(
      {{{"layers.*.attention.wo.weight",
         "model.layers.*.self_attn.o_proj.weight",
         {"dim", query}},
        part("layers.*.attention.wq.weight", qkv, query,
             "model.layers.*.self_attn.q_proj.weight", rotary),
        part("layers.*.attention.wk.weight", qkv, keyValue,
             "model.layers.*.self_attn.k_proj.weight", rotary),
        part("layers.*.attention.wv.weight", qkv, keyValue,
             "model.layers.*.self_attn.v_proj.weight"),
        part("layers.*.feed_forward.w1.weight", gateUp, "ffn_dim",
             "model.layers.*.mlp.gate_proj.weight"),
        part("layers.*.feed_forward.w3.weight", gateUp, "ffn_dim",
             "model.layers.*.mlp.up_proj.weight"),
        {"layers.*.feed_forward.w2.weight",
         "model.layers.*.mlp.down_proj.weight",
         {"dim", "ffn_dim"}}},
       layerNormTensors()});
}
