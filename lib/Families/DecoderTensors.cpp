//===- DecoderTensors.cpp - Rows that tables of families share ------------===//
#include "DecoderTensors.h"

using namespace fsdp;
using namespace fsdp::checkpoint;

static constexpr char kQuery[] = "n_heads*head_dim";
static constexpr char kKeyValue[] = "n_kv_heads*head_dim";
static constexpr char kWholeHead[] = "head_dim";

TensorRows checkpoint::joinedRows(const std::vector<TensorRows> &parts) {
  TensorRows all;
  for (const TensorRows &part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

TensorRows checkpoint::attentionTensors(AttentionBiases biases) {
  TensorRows rows;
  const char *when =
      biases == AttentionBiases::Stated ? "attention_bias" : nullptr;
  auto addBias = [&](const char *ours, const char *theirs, const char *size,
                     const char *rotary) {
    FamilyTensor bias{ours, theirs, {size}, rotary};
    bias.when = when;
    if (biases != AttentionBiases::None)
      rows.push_back(std::move(bias));
  };
  rows.push_back({"layers.*.attention.wq.weight",
                  "model.layers.*.self_attn.q_proj.weight",
                  {kQuery, "dim"},
                  kWholeHead});
  addBias("layers.*.attention.wq.bias", "model.layers.*.self_attn.q_proj.bias",
          kQuery, kWholeHead);
  rows.push_back({"layers.*.attention.wk.weight",
                  "model.layers.*.self_attn.k_proj.weight",
                  {kKeyValue, "dim"},
                  kWholeHead});
  addBias("layers.*.attention.wk.bias", "model.layers.*.self_attn.k_proj.bias",
          kKeyValue, kWholeHead);
  rows.push_back({"layers.*.attention.wv.weight",
                  "model.layers.*.self_attn.v_proj.weight",
                  {kKeyValue, "dim"}});
  addBias("layers.*.attention.wv.bias", "model.layers.*.self_attn.v_proj.bias",
          kKeyValue, nullptr);
  rows.push_back({"layers.*.attention.wo.weight",
                  "model.layers.*.self_attn.o_proj.weight",
                  {"dim", kQuery}});
  if (biases == AttentionBiases::Stated)
    addBias("layers.*.attention.wo.bias",
            "model.layers.*.self_attn.o_proj.bias", "dim", nullptr);
  return rows;
}

TensorRows checkpoint::headNormTensors(const char *querySize,
                                       const char *keySize) {
  return {{"layers.*.attention.q_norm.weight",
           "model.layers.*.self_attn.q_norm.weight",
           {querySize},
           kWholeHead},
          {"layers.*.attention.k_norm.weight",
           "model.layers.*.self_attn.k_norm.weight",
           {keySize},
           kWholeHead}};
}

TensorRows checkpoint::feedForwardTensors() {
  return {{"layers.*.feed_forward.w1.weight",
           "model.layers.*.mlp.gate_proj.weight",
           {"ffn_dim", "dim"}},
          {"layers.*.feed_forward.w3.weight",
           "model.layers.*.mlp.up_proj.weight",
           {"ffn_dim", "dim"}},
          {"layers.*.feed_forward.w2.weight",
           "model.layers.*.mlp.down_proj.weight",
           {"dim", "ffn_dim"}}};
}

TensorRows checkpoint::layerNormTensors() {
  return {vectorTensor("layers.*.attention_norm.weight",
                       "model.layers.*.input_layernorm.weight"),
          vectorTensor("layers.*.ffn_norm.weight",
                       "model.layers.*.post_attention_layernorm.weight")};
}

FamilyTensor checkpoint::vectorTensor(const char *ours, const char *theirs) {
  return {ours, theirs, {"dim"}};
}

FamilyTensor checkpoint::outputTensor() {
  FamilyTensor output{"output.weight", "lm_head.weight", {"vocab_size", "dim"}};
  output.tiedTo = "tok_embeddings.weight";
  return output;
}

TensorRows checkpoint::decoderTensors(const std::vector<TensorRows> &layer) {
  return joinedRows(
      {{{"tok_embeddings.weight",
         "model.embed_tokens.weight",
         {"vocab_size", "dim"}}},
       joinedRows(layer),
       {vectorTensor("norm.weight", "model.norm.weight"), outputTensor()}});
}
