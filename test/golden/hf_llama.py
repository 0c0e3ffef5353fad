"""A tiny transformers Llama for a few steps, and hf_llama.json of it.

The model is built from its own config.json, which is kept in the file: a real
one, as save_pretrained writes it. It starts from our initialiser's values under
our names, so no weights are kept. f32, the same batch in every step.
"""

import json

import numpy as np
import torch
import transformers

import golden_file
from initialiser import draw, normal
from llama_debug import STRIDE, clip, describe, short

SEED, BATCH, SEQ, STEPS, LR, WARMUP = 42, 2, 64, 4, 8e-4, 2
BETAS, EPS, DECAY, MAX_NORM = (0.9, 0.95), 1e-8, 0.1, 1.0
STD = 0.02

# Grouped queries, frequencies that the stretch of Llama 3.1 changes, and heads
# that are wider than hidden_size / num_attention_heads.
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 160,
    "vocab_size": 256, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 4.0,
                        "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                        "original_max_position_embeddings": 32},
}

# Our name of a module and transformers'. The order is that of our registration.
BLOCK = {
    "attention.wq": "self_attn.q_proj", "attention.wk": "self_attn.k_proj",
    "attention.wv": "self_attn.v_proj", "attention.wo": "self_attn.o_proj",
    "feed_forward.w1": "mlp.gate_proj", "feed_forward.w2": "mlp.down_proj",
    "feed_forward.w3": "mlp.up_proj", "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def names(layers):
    """Our name of every parameter and transformers'."""
    pairs = {"tok_embeddings": "model.embed_tokens"}
    for layer in range(layers):
        for ours, theirs in BLOCK.items():
            pairs[f"layers.{layer}.{ours}"] = f"model.layers.{layer}.{theirs}"
    pairs.update({"norm": "model.norm", "output": "lm_head"})
    return {f"{ours}.weight": f"{theirs}.weight" for ours, theirs in pairs.items()}


def deviation(name, dim):
    """What the traced model draws this parameter with: deviation and cut."""
    if name == "tok_embeddings.weight":
        return 1.0, 0.0
    if name == "output.weight":
        return dim**-0.5, 3.0
    if any(part in name for part in (".wo.", ".w2.", ".w3.")):
        return STD / (2.0 * (int(name.split(".")[1]) + 1)) ** 0.5, 0.0
    return STD, 0.0


def initial_value(name, shape):
    if len(shape) == 1:
        return torch.ones(shape)
    return torch.from_numpy(normal(name, shape, SEED, *deviation(name, CONFIG["hidden_size"])))


def batch():
    """Random bytes."""
    uniform, _ = draw(np.arange(BATCH * (SEQ + 1), dtype=np.uint64), 0, SEED, "rows")
    return (uniform * 256).astype(np.int64).reshape(BATCH, -1)


def loss_of(model, tokens, targets):
    logits = model(input_ids=tokens).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def train(model, parameters, rows):
    """Losses, gradient norms, rates, and the first step's unclipped gradients."""
    tokens = torch.from_numpy(rows[:, :-1])
    targets = torch.from_numpy(rows[:, 1:])
    optimizer = torch.optim.AdamW(parameters.values(), lr=LR, betas=BETAS, eps=EPS,
                                  weight_decay=DECAY, foreach=False)
    losses, norms, rates, first = [], [], [], None
    for step in range(STEPS):
        rates.append(LR * min(1.0, (step + 1) / WARMUP))
        optimizer.param_groups[0]["lr"] = rates[-1]
        optimizer.zero_grad()
        loss = loss_of(model, tokens, targets)
        loss.backward()
        if first is None:
            first = {name: p.grad.clone() for name, p in parameters.items()}
        norm = clip(parameters.values())
        optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms, rates, first


def main():
    torch.use_deterministic_algorithms(True)
    config = transformers.LlamaConfig(**CONFIG, attn_implementation="eager")
    model = transformers.LlamaForCausalLM(config).float()
    theirs = dict(model.named_parameters())
    parameters = {ours: theirs[name] for ours, name in names(config.num_hidden_layers).items()}
    assert len(parameters) == len(theirs)
    initial = {}
    with torch.no_grad():
        for name, parameter in parameters.items():
            initial[name] = initial_value(name, tuple(parameter.shape))
            parameter.copy_(initial[name])
    rows = batch()
    losses, norms, rates, gradients = train(model, parameters, rows)
    header = {
        "about": "A tiny transformers Llama; made by hf_llama.py",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "seed": SEED,
        "config": json.loads(config.to_json_string(use_diff=False)),
        "batch": BATCH,
        "seq": SEQ,
        "optimizer": {"beta1": BETAS[0], "beta2": BETAS[1], "eps": EPS,
                      "weight_decay": DECAY, "max_norm": MAX_NORM},
        "index_stride": STRIDE,
        "rows": rows.tolist(),
        "lr": rates,
        "loss": short(losses),
        "grad_norm": short(norms),
    }
    tensors = [describe(name, initial[name], gradients[name]) for name in initial]
    golden_file.write(__file__, header, tensors=tensors)
    for step, (loss, norm) in enumerate(zip(losses, norms), 1):
        print(f"step {step:2}  loss {loss:.7f}  grad_norm {norm:.6f}")


if __name__ == "__main__":
    main()
