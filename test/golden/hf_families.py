"""Small random models of every family with everything unusual switched on, and
what transformers computes with them: hf_families/CASE/ as save_pretrained
writes it, and beside it golden.json (rows, and the losses of five steps of
AdamW, the first before any) and gradients.safetensors of the first step, f32,
under transformers' names. Besides, hf_defaults.json: what config.json says of a
model of each family when nothing is set.

Weights are kept in bf16 and computed with in f32. An epsilon of 1e-3, windows
and original lengths shorter than the rows, heads that are not dim / n_heads
wide, sizes that nothing divides, and weights of norms and biases far from where
they start: a wrong reading of a key changes the gradients by 1e-5 at least.
"""

import json
import pathlib
import shutil

import numpy as np
import torch
import transformers
from safetensors.torch import save_file

from initialiser import draw

SEED, BATCH, SEQ, VOCAB = 11, 2, 20, 37
LR, BETAS, EPS, DECAY, STEPS = 3e-3, (0.9, 0.95), 1e-3, 0.1, 5
FOLDER = pathlib.Path(__file__).with_suffix("")

USUAL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "intermediate_size": 20, "vocab_size": VOCAB,
         "max_position_embeddings": 48, "rms_norm_eps": 1e-3}
PLAIN = {"rope_type": "default", "rope_theta": 100.0}
LINEAR = {"rope_type": "linear", "rope_theta": 100.0, "factor": 2.5}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 100.0, "factor": 4.0, "low_freq_factor": 1.0,
          "high_freq_factor": 3.0, "original_max_position_embeddings": 16}
YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 3.0, "beta_fast": 2.0, "beta_slow": 0.5,
        "original_max_position_embeddings": 16}
SLIDING, FULL = "sliding_attention", "full_attention"


def longrope(pairs):
    return {"rope_type": "longrope", "rope_theta": 100.0,
            "short_factor": [1.0 + 0.25 * i for i in range(pairs)],
            "long_factor": [1.5 + 0.5 * i for i in range(pairs)]}


# What each case adds to USUAL (GPT-2 has its own names).
CASES = {
    "llama_scaled": ("Llama", {"head_dim": 6, "rope_parameters": LLAMA3}),
    "llama_yarn": ("Llama", {"head_dim": 6, "tie_word_embeddings": True, "rope_parameters": {
        **YARN, "attention_factor": 1.25, "truncate": False}}),
    "llama_linear": ("Llama", {"num_key_value_heads": 1, "rope_parameters": LINEAR}),
    "gpt2_by_layer": ("GPT2", {"n_embd": 24, "n_head": 3, "n_layer": 2,
                               "scale_attn_by_inverse_layer_idx": True}),
    "gpt2_unscaled": ("GPT2", {"n_embd": 16, "n_head": 2, "n_layer": 2, "n_inner": 20,
                               "activation_function": "gelu", "scale_attn_weights": False}),
    "gpt2_untied": ("GPT2", {"n_embd": 12, "n_head": 3, "n_layer": 3, "n_inner": 28,
                             "activation_function": "relu", "tie_word_embeddings": False}),
    "qwen2_upper": ("Qwen2", {"num_hidden_layers": 3, "use_sliding_window": True,
                              "sliding_window": 5, "max_window_layers": 2,
                              "rope_parameters": PLAIN}),
    "qwen2_listed": ("Qwen2", {"use_sliding_window": True, "sliding_window": 7,
                               "layer_types": [SLIDING, FULL], "tie_word_embeddings": True,
                               "rope_parameters": {**YARN, "mscale": 1.0, "mscale_all_dim": 0.5}}),
    "qwen2_plain": ("Qwen2", {"num_key_value_heads": 1, "hidden_act": "gelu",
                              "rope_parameters": LLAMA3}),
    "qwen3_biases": ("Qwen3", {"head_dim": 6, "attention_bias": True, "rope_parameters": LINEAR}),
    "qwen3_upper": ("Qwen3", {"head_dim": 8, "use_sliding_window": True, "sliding_window": 5,
                              "max_window_layers": 1, "tie_word_embeddings": True,
                              "rope_parameters": PLAIN}),
    "qwen3_yarn": ("Qwen3", {"head_dim": 4, "num_attention_heads": 6, "num_key_value_heads": 3,
                             "attention_bias": True, "rope_parameters": YARN}),
    "mistral_window": ("Mistral", {"head_dim": 6, "sliding_window": 6, "rope_parameters": PLAIN}),
    "mistral_null": ("Mistral", {"sliding_window": None, "rope_parameters": YARN}),
    "mistral_one": ("Mistral", {"num_key_value_heads": 1, "head_dim": 8, "sliding_window": 1,
                                "tie_word_embeddings": True, "rope_parameters": LINEAR}),
    "gemma2_even": ("Gemma2", {"head_dim": 6, "num_hidden_layers": 3, "query_pre_attn_scalar": 24,
                               "attn_logit_softcapping": 1.5, "final_logit_softcapping": 2.0,
                               "sliding_window": 5, "rope_parameters": PLAIN}),
    "gemma2_listed": ("Gemma2", {"head_dim": 8, "query_pre_attn_scalar": 5, "attention_bias": True,
                                 "attn_logit_softcapping": None, "final_logit_softcapping": 1.5,
                                 "sliding_window": 6, "layer_types": [FULL, SLIDING],
                                 "rope_parameters": LINEAR}),
    "gemma2_untied": ("Gemma2", {"head_dim": 4, "query_pre_attn_scalar": 3,
                                 "attn_logit_softcapping": 1.0, "final_logit_softcapping": None,
                                 "sliding_window": 5, "layer_types": [FULL, FULL],
                                 "hidden_activation": "gelu", "tie_word_embeddings": False,
                                 "rope_parameters": PLAIN}),
    "phi3_partial": ("Phi3", {"hidden_size": 32, "sliding_window": 6, "rope_parameters": {
        **PLAIN, "partial_rotary_factor": 0.75}}),
    "phi3_long": ("Phi3", {"original_max_position_embeddings": 12,
                           "rope_parameters": longrope(2)}),
    "phi3_short": ("Phi3", {"hidden_size": 32, "original_max_position_embeddings": 24,
                            "num_key_value_heads": 1, "tie_word_embeddings": True,
                            "rope_parameters": {**longrope(2), "partial_rotary_factor": 0.5}}),
    "olmo2_biases": ("Olmo2", {"attention_bias": True, "rope_parameters": PLAIN}),
    "olmo2_grouped": ("Olmo2", {"num_key_value_heads": 1, "tie_word_embeddings": True,
                                "rope_parameters": YARN}),
    "olmo2_deep": ("Olmo2", {"num_hidden_layers": 3, "hidden_act": "gelu_pytorch_tanh",
                             "rope_parameters": LINEAR}),
}


def config_of(family, changes):
    kind = getattr(transformers, f"{family}Config")
    if family == "GPT2":
        base = {"vocab_size": VOCAB, "n_positions": 32, "layer_norm_epsilon": 1e-3,
                "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
                "bos_token_id": 1, "eos_token_id": 2}
    else:
        base = {**USUAL, "pad_token_id": None, "bos_token_id": 1, "eos_token_id": 2}
    return kind(**{**base, **changes}, attn_implementation="eager")


def fill(model, family):
    """Weights of a trained model's size; those of norms around 1, or 0 where
    1 + w multiplies."""
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            is_norm = parameter.dim() == 1 and name.endswith("weight")
            centre = 1.0 if is_norm and family != "Gemma2" else 0.0
            parameter.copy_(centre + (0.3 if parameter.dim() == 1 else 0.25) * noise)


def batch():
    uniform, _ = draw(np.arange(BATCH * (SEQ + 1), dtype=np.uint64), 0, SEED, "rows")
    return (uniform * VOCAB).astype(np.int64).reshape(BATCH, -1)


def train(model, rows):
    """The losses of the steps, and the gradients of the first."""
    tokens, targets = torch.from_numpy(rows[:, :-1]), torch.from_numpy(rows[:, 1:])
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=BETAS, eps=EPS,
                                  weight_decay=DECAY, foreach=False)
    losses, first = [], None
    for _ in range(STEPS):
        optimizer.zero_grad()
        logits = model(input_ids=tokens).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        if first is None:
            first = {name: p.grad.clone().contiguous() for name, p in model.named_parameters()}
        optimizer.step()
        losses.append(loss.item())
    return losses, first


def make(case, family, changes):
    folder = FOLDER / case
    shutil.rmtree(folder, ignore_errors=True)
    kind = getattr(transformers, f"{family}LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM")
    model = kind(config_of(family, changes))
    fill(model, family)
    model.to(torch.bfloat16).save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)

    loaded = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    rows = batch()
    losses, gradients = train(loaded, rows)
    save_file(gradients, folder / "gradients.safetensors")
    header = {"about": "Made by hf_families.py", "torch": torch.__version__,
              "transformers": transformers.__version__, "lr": LR, "betas": BETAS, "eps": EPS,
              "decay": DECAY, "rows": rows.tolist(), "losses": losses}
    (folder / "golden.json").write_text(json.dumps(header) + "\n")
    print(f"{case:16} {sum(p.numel() for p in loaded.parameters()):6} parameters, losses "
          + " ".join(f"{loss:.6f}" for loss in losses))


def defaults():
    """config.json of each class when nothing is said."""
    kinds = dict.fromkeys(family for family, _ in CASES.values())
    table = {}
    for family in kinds:
        config = getattr(transformers, f"{family}Config")().to_dict()
        table[config["model_type"]] = config
    lines = ",\n".join(f"{json.dumps(kind)}: {json.dumps(table[kind], sort_keys=True)}" for kind in table)
    FOLDER.with_name("hf_defaults.json").write_text("{" + lines + "}\n")


def main():
    defaults()
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(SEED)
    for case, (family, changes) in CASES.items():
        make(case, family, changes)


if __name__ == "__main__":
    main()
