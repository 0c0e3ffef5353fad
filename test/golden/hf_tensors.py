"""The tensors of small models of transformers: names and shapes in the order of
the module, as save_pretrained writes them. No size is another one's, so that
shapes say what they are made of.
"""

import torch
import transformers

import golden_file

# transformers' sizes, and ours.
SIZES = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "head_dim": 10, "intermediate_size": 56, "vocab_size": 50, "max_position_embeddings": 64,
         "pad_token_id": 0}
FIELDS = {"dim": 24, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 10, "ffn_dim": 56,
          "vocab_size": 50, "max_seq_len": 64}
GPT2 = {"n_embd": 24, "n_layer": 2, "n_head": 4, "n_inner": 56, "vocab_size": 50, "n_positions": 64}
BIASES = {"attention_bias": True}

# Of each case: model_type, sizes, and the fields that differ from FIELDS.
CASES = {
    "llama": ("llama", SIZES, {"tied": False}),
    "gpt2": ("gpt2", GPT2, {"tied": True}),
    "gpt2_output": ("gpt2", {**GPT2, "tie_word_embeddings": False}, {"tied": False}),
    "qwen2": ("qwen2", {**SIZES, "tie_word_embeddings": True}, {"tied": True}),
    "qwen3": ("qwen3", {**SIZES, **BIASES}, {**BIASES, "tied": False}),
    "qwen3_plain": ("qwen3", SIZES, {"attention_bias": False, "tied": False}),
    "mistral": ("mistral", SIZES, {"tied": False}),
    "gemma2": ("gemma2", SIZES, {"attention_bias": False, "tied": True}),
    "gemma2_bias": ("gemma2", {**SIZES, **BIASES}, {**BIASES, "tied": True}),
    "phi3": ("phi3", SIZES, {"rotary_dim": 4, "tied": False}),
    "olmo2": ("olmo2", {**SIZES, **BIASES}, {**BIASES, "tied": False}),
}


def tensors(model_type, sizes):
    config = transformers.AutoConfig.for_model(model_type, **sizes)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    model.tie_weights()
    seen, entries = set(), []
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen: # of tied tensors, files have the first
            entries.append([name, list(tensor.shape)])
        seen.add(id(tensor))
    return entries


def main():
    header = {"transformers": transformers.__version__,
              "families": {case: kind for case, (kind, _, _) in CASES.items()},
              "fields": {case: {**FIELDS, **fields} for case, (_, _, fields) in CASES.items()}}
    golden_file.write(__file__, header,
                      **{case: tensors(kind, sizes) for case, (kind, sizes, _) in CASES.items()})


main()
