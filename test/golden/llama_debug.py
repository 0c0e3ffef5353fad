"""Trains Llama debug for 20 steps in PyTorch and writes llama_debug.json.

f32, 2 rows of 256 bytes of the King James Bible (Debian package bible-kjv),
the same batch in every step, our initialiser, AdamW with clipping. The model
is written out here so that nothing but PyTorch's own operators is trusted.
"""

import math
import subprocess

import numpy as np
import torch
import torch.nn.functional as F

import golden_file
from initialiser import normal

SEED = 42
DIM, LAYERS, HEADS, KV_HEADS, FFN, VOCAB = 256, 6, 16, 16, 768, 2048
NORM_EPS, THETA = 1e-5, 500000.0
BATCH, SEQ, STEPS = 2, 256, 20
LR, WARMUP, BETAS, EPS, DECAY, MAX_NORM = 8e-4, 2, (0.9, 0.95), 1e-8, 0.1, 1.0
SAMPLES = 256  # entries kept of each gradient
INITIAL_SAMPLES = 8  # entries kept of each initial parameter
STRIDE = 2654435761  # sample k of n elements is element k * STRIDE mod n


def llama3_frequencies(head_dim, theta=THETA, factor=8.0, low=1.0, high=4.0, original=8192):
    """Rotary frequencies with the stretch of Llama 3.1 (facts in f64)."""
    result = []
    for i in range(head_dim // 2):
        f = theta ** (-2 * i / head_dim)
        wavelength = 2 * math.pi / f
        if wavelength > original / low:
            f = f / factor
        elif wavelength >= original / high:
            smooth = (original / wavelength - low) / (high - low)
            f = (1 - smooth) * f / factor + smooth * f
        result.append(f)
    return result


def rotary_table(positions, head_dim, start=0, **scaling):
    """[positions, head_dim / 2, (cos, sin)] in f64."""
    position = torch.arange(start, start + positions, dtype=torch.float64)
    frequencies = torch.tensor(llama3_frequencies(head_dim, **scaling), dtype=torch.float64)
    angles = torch.outer(position, frequencies)
    return torch.stack([angles.cos(), angles.sin()], dim=-1)


def rotate_adjacent(x, table):
    """x [batch, sequence, heads, head_dim]: rotates (0, 1), (2, 3), ..."""
    cos, sin = table[None, :, None, :, 0], table[None, :, None, :, 1]
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


def initial_parameters():
    """Every parameter in registration order."""
    result = {}

    def add(name, shape, std, cut=0.0):
        result[name] = torch.from_numpy(normal(name, shape, SEED, std, cut))

    add("tok_embeddings.weight", (VOCAB, DIM), 1.0)
    head_dim = DIM // HEADS
    for layer in range(LAYERS):
        at = f"layers.{layer}."
        deep = 0.02 / math.sqrt(2.0 * (layer + 1))
        add(at + "attention.wq.weight", (HEADS * head_dim, DIM), 0.02)
        add(at + "attention.wk.weight", (KV_HEADS * head_dim, DIM), 0.02)
        add(at + "attention.wv.weight", (KV_HEADS * head_dim, DIM), 0.02)
        add(at + "attention.wo.weight", (DIM, HEADS * head_dim), deep)
        add(at + "feed_forward.w1.weight", (FFN, DIM), 0.02)
        add(at + "feed_forward.w2.weight", (DIM, FFN), deep)
        add(at + "feed_forward.w3.weight", (FFN, DIM), deep)
        result[at + "attention_norm.weight"] = torch.ones(DIM)
        result[at + "ffn_norm.weight"] = torch.ones(DIM)
    result["norm.weight"] = torch.ones(DIM)
    add("output.weight", (VOCAB, DIM), 1 / math.sqrt(DIM), cut=3.0)
    return result


def rms_norm(x, weight):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + NORM_EPS) * weight


def attention(p, at, x, table):
    batch, seq, _ = x.shape
    head_dim = DIM // HEADS
    q = rotate_adjacent(F.linear(x, p[at + "wq.weight"]).view(batch, seq, HEADS, head_dim), table)
    k = rotate_adjacent(F.linear(x, p[at + "wk.weight"]).view(batch, seq, KV_HEADS, head_dim), table)
    v = F.linear(x, p[at + "wv.weight"]).view(batch, seq, KV_HEADS, head_dim)
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    return F.linear(out.transpose(1, 2).reshape(batch, seq, -1), p[at + "wo.weight"])


def feed_forward(p, at, x):
    gate = F.silu(F.linear(x, p[at + "w1.weight"]))
    return F.linear(gate * F.linear(x, p[at + "w3.weight"]), p[at + "w2.weight"])


def loss_of(p, tokens, targets):
    table = rotary_table(tokens.shape[1], DIM // HEADS).to(p["norm.weight"].dtype)
    h = F.embedding(tokens, p["tok_embeddings.weight"])
    for layer in range(LAYERS):
        at = f"layers.{layer}."
        h = h + attention(p, at + "attention.", rms_norm(h, p[at + "attention_norm.weight"]), table)
        h = h + feed_forward(p, at + "feed_forward.", rms_norm(h, p[at + "ffn_norm.weight"]))
    logits = F.linear(rms_norm(h, p["norm.weight"]), p["output.weight"])
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def first_bytes():
    """Row b holds bytes [256 b, 256 b + 257): inputs and, one later, targets."""
    text = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], capture_output=True, check=True).stdout
    return np.stack([np.frombuffer(text, np.uint8, SEQ + 1, b * SEQ) for b in range(BATCH)])


def clip(parameters):
    """clip_grad_norm_, but the norm is summed in f64: PyTorch's f32 sum is off by
    1.4e-4 here, which would hide a wrong norm and moves the loss by 5e-6."""
    norm = torch.nn.utils.get_total_norm([p.grad.double() for p in parameters]).float()
    torch.nn.utils.clip_grads_with_norm_(parameters, MAX_NORM, norm)
    return norm


def train(parameters, rows):
    """Losses, gradient norms, rates, and the first step's unclipped gradients."""
    tokens = torch.from_numpy(rows[:, :-1].astype(np.int64))
    targets = torch.from_numpy(rows[:, 1:].astype(np.int64))
    for parameter in parameters.values():
        parameter.requires_grad_(True)
    optimizer = torch.optim.AdamW(parameters.values(), lr=LR, betas=BETAS, eps=EPS,
                                  weight_decay=DECAY, foreach=False)
    losses, norms, rates, first = [], [], [], None
    for step in range(STEPS):
        rates.append(LR * min(1.0, (step + 1) / WARMUP))
        optimizer.param_groups[0]["lr"] = rates[-1]
        optimizer.zero_grad()
        loss = loss_of(parameters, tokens, targets)
        loss.backward()
        if first is None:
            first = {name: p.grad.clone() for name, p in parameters.items()}
        norm = clip(parameters.values())
        optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms, rates, first


def short(values):
    """Nine significant digits name an f32 uniquely."""
    return [float(f"{float(v):.9g}") for v in values]


def stride_indices(elements, count):
    if elements <= count:
        return np.arange(elements)
    return np.arange(count, dtype=np.uint64) * np.uint64(STRIDE) % np.uint64(elements)


def norm_of(tensor):
    return float(f"{tensor.double().norm().item():.12g}")


def describe(name, initial, gradient):
    """One tensor's entry of the file."""
    entry = {"name": name, "shape": list(initial.shape), "initial_norm": norm_of(initial)}
    sample = stride_indices(initial.numel(), INITIAL_SAMPLES).astype(np.int64)
    entry["initial"] = short(initial.flatten()[sample])
    entry["gradient_norm"] = norm_of(gradient)
    flat = gradient.flatten()
    indices = stride_indices(flat.numel(), SAMPLES).astype(np.int64)
    if name == "tok_embeddings.weight":
        # Only the rows of bytes that occur have a gradient: sample those.
        nonzero = flat.nonzero().flatten().numpy()
        indices = nonzero[stride_indices(nonzero.size, SAMPLES).astype(np.int64)]
        entry["indices"] = indices.tolist()
    entry["gradient"] = short(flat[indices])
    return entry


def main():
    torch.use_deterministic_algorithms(True)
    rows = first_bytes()
    initial = initial_parameters()
    losses, norms, rates, gradients = train({n: p.clone() for n, p in initial.items()}, rows)
    header = {
        "about": "Llama debug in PyTorch; made by llama_debug.py",
        "torch": torch.__version__,
        "seed": SEED,
        "model": {"dim": DIM, "n_layers": LAYERS, "n_heads": HEADS, "n_kv_heads": KV_HEADS,
                  "ffn_dim": FFN, "vocab_size": VOCAB, "norm_eps": NORM_EPS, "rope_theta": THETA},
        "batch": BATCH,
        "seq": SEQ,
        "optimizer": {"beta1": BETAS[0], "beta2": BETAS[1], "eps": EPS,
                      "weight_decay": DECAY, "max_norm": MAX_NORM},
        "index_rule": f"entry k of n > count elements is element k * {STRIDE} mod n, unless 'indices' "
                      "lists them; if n <= count, all",
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
