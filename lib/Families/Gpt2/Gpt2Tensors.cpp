//===- Gpt2Tensors.cpp - The tensors of GPT-2 -----------------------------===//
#include "../DecoderTensors.h"

using namespace fsdp;
using namespace fsdp::checkpoint;

/// The weight of a Conv1D, which files have as [in, out].
static FamilyTensor conv(const char *ours, const char *theirs, const char *out,
                         const char *in) {
  FamilyTensor tensor{ours, theirs, {out, in}};
  tensor.isTransposed = true;
  return tensor;
}

/// Attention, whose heads are dim together. c_attn is q, k and v.
static TensorRows attention() {
  const char *const qkv = "transformer.h.*.attn.c_attn.weight";
  const char *const qkvBias = "transformer.h.*.attn.c_attn.bias";
  return {conv("layers.*.attention.wq.weight", qkv, "dim", "dim"),
          conv("layers.*.attention.wk.weight", qkv, "dim", "dim"),
          conv("layers.*.attention.wv.weight", qkv, "dim", "dim"),
          vectorTensor("layers.*.attention.wq.bias", qkvBias),
          vectorTensor("layers.*.attention.wk.bias", qkvBias),
          vectorTensor("layers.*.attention.wv.bias", qkvBias),
          conv("layers.*.attention.wo.weight",
               "transformer.h.*.attn.c_proj.weight", "dim", "dim"),
          vectorTensor("layers.*.attention.wo.bias",
                       "transformer.h.*.attn.c_proj.bias")};
}

static TensorRows feedForward() {
  return {conv("layers.*.feed_forward.w1.weight",
               "transformer.h.*.mlp.c_fc.weight", "ffn_dim", "dim"),
          {"layers.*.feed_forward.w1.bias",
           "transformer.h.*.mlp.c_fc.bias",
           {"ffn_dim"}},
          conv("layers.*.feed_forward.w2.weight",
               "transformer.h.*.mlp.c_proj.weight", "dim", "ffn_dim"),
          vectorTensor("layers.*.feed_forward.w2.bias",
                       "transformer.h.*.mlp.c_proj.bias")};
}

TensorRows checkpoint::gpt2Tensors() {
  return joinedRows(
      {{{"tok_embeddings.weight",
         "transformer.wte.weight",
         {"vocab_size", "dim"}},
        {"pos_embeddings.weight",
         "transformer.wpe.weight",
         {"max_seq_len", "dim"}},
        vectorTensor("layers.*.attention_norm.weight",
                     "transformer.h.*.ln_1.weight"),
        vectorTensor("layers.*.attention_norm.bias",
                     "transformer.h.*.ln_1.bias")},
       attention(),
       {vectorTensor("layers.*.ffn_norm.weight", "transformer.h.*.ln_2.weight"),
        vectorTensor("layers.*.ffn_norm.bias", "transformer.h.*.ln_2.bias")},
       feedForward(),
       {vectorTensor("norm.weight", "transformer.ln_f.weight"),
        vectorTensor("norm.bias", "transformer.ln_f.bias"), outputTensor()}});
}
