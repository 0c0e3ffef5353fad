#!/usr/bin/env python3
"""Times a Llama's training step in one of PyTorch's data-parallel modes.

    python torch_modes.py --mode fsdp2 --model S --dtype f32 --steps 8

Starts its ranks itself and prints one JSON line: the seconds of every step
after the warm-up. For benchmarks only (training_speed.py calls it); needs
PyTorch, and torchtitan 0.3.0 for SimpleFSDP.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from benchmark_models import MODELS, NORM_EPS, ROPE_THETA

MODES = ("fsdp2", "fsdp2_compiled", "simple_fsdp", "ddp")


class Attention(nn.Module):
    def __init__(self, dim, heads, kv_heads):
        super().__init__()
        self.head_dim = dim // heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(self, x, table):
        heads = (*x.shape[:2], -1, self.head_dim)
        q = rotate(self.wq(x).view(heads), table).transpose(1, 2)
        k = rotate(self.wk(x).view(heads), table).transpose(1, 2)
        v = self.wv(x).view(heads).transpose(1, 2)
        out = F.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
        return self.wo(out.transpose(1, 2).reshape(x.shape))


def rotate(x, table):
    """Rotates the pairs (0, 1), (2, 3), ... in f32. Complex numbers are
    PyTorch's fastest way, but its compiler takes them from nobody."""
    if not torch.compiler.is_compiling():
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
        turned = pairs * torch.view_as_complex(table)[:, None]
        return torch.view_as_real(turned).flatten(-2).type_as(x)
    cos, sin = table[:, None, :, 0], table[:, None, :, 1]
    a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    turned = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1)
    return turned.flatten(-2).type_as(x)


class FeedForward(nn.Module):
    def __init__(self, dim, ffn):
        super().__init__()
        self.w1 = nn.Linear(dim, ffn, bias=False)
        self.w2 = nn.Linear(ffn, dim, bias=False)
        self.w3 = nn.Linear(dim, ffn, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, shape, table):
        super().__init__()
        self.attention = Attention(shape.dim, shape.heads, shape.kv_heads)
        self.feed_forward = FeedForward(shape.dim, shape.ffn)
        self.attention_norm = nn.RMSNorm(shape.dim, eps=NORM_EPS)
        self.ffn_norm = nn.RMSNorm(shape.dim, eps=NORM_EPS)
        # A buffer, because FSDP2 would round an argument to bf16.
        self.register_buffer("table", table, persistent=False)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x), self.table)
        return x + self.feed_forward(self.ffn_norm(x))


class Llama(nn.Module):
    def __init__(self, shape):
        super().__init__()
        table = rotary_table(shape.seq, shape.dim // shape.heads)
        self.tok_embeddings = nn.Embedding(shape.vocab, shape.dim)
        self.layers = nn.ModuleList(Block(shape, table) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.dim, eps=NORM_EPS)
        self.output = nn.Linear(shape.dim, shape.vocab, bias=False)

    def forward(self, tokens):
        x = self.tok_embeddings(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


def rotary_table(positions, head_dim):
    """[positions, head_dim / 2, (cos, sin)]. The stretch of long contexts does
    not change the time of a step, so it is left out."""
    frequency = ROPE_THETA ** (-torch.arange(0, head_dim, 2).double() / head_dim)
    angle = torch.outer(torch.arange(positions).double(), frequency)
    return torch.stack([angle.cos(), angle.sin()], dim=-1).float()


def distribute(model, mode, dtype, world):
    """The model in the mode, and the context its forward pass runs in."""
    mesh = dist.init_device_mesh("cpu", (world,))
    narrow = torch.bfloat16 if dtype == "bf16" else torch.float32
    if mode == "ddp":
        ddp = nn.parallel.DistributedDataParallel(
            model, gradient_as_bucket_view=True, bucket_cap_mb=100)
        return ddp, torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bf16")
    if mode == "simple_fsdp":
        from torchtitan.experiments.graph_trainer.simple_fsdp import (
            MixedPrecisionPolicy, data_parallel)
        policy = MixedPrecisionPolicy(param_dtype=narrow, reduce_dtype=torch.float32)
        model = data_parallel(model, mesh, "fully_shard", policy)
        return torch.compile(model, fullgraph=True), torch.autocast("cpu", enabled=False)

    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    policy = MixedPrecisionPolicy(param_dtype=narrow, reduce_dtype=torch.float32)
    fully_shard(model.tok_embeddings, mesh=mesh, mp_policy=policy)
    for layer in model.layers:
        if mode == "fsdp2_compiled":
            layer.compile(fullgraph=True)
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard([model.norm, model.output], mesh=mesh, mp_policy=policy,
                reshard_after_forward=False)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    return model, torch.autocast("cpu", enabled=False)


def train(args):
    """Seconds of every step after the warm-up, and the last loss."""
    shape = MODELS[args.model]
    torch.manual_seed(42)
    model, context = distribute(Llama(shape), args.mode, args.dtype, args.ranks)
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-4, betas=(0.9, 0.95),
                                  weight_decay=0.1, fused=True)
    torch.manual_seed(dist.get_rank())
    # Bytes, as in our run; both sides read a batch that is in memory.
    rows = torch.randint(0, min(256, shape.vocab), (args.batch or shape.batch, shape.seq + 1))
    tokens, targets = rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
    seconds = []
    for _ in range(args.warmup + args.steps):
        start = time.perf_counter()
        optimizer.zero_grad()
        with context:
            logits = model(tokens)
            loss = F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    return seconds[args.warmup:], loss.item()


def run_rank(args):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    seconds, loss = train(args)
    if dist.get_rank() == 0:
        print(json.dumps({"mode": args.mode, "model": args.model,
                          "dtype": args.dtype, "torch": torch.__version__,
                          "seconds": seconds, "loss": loss}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_ranks(args):
    environment = dict(os.environ, MASTER_ADDR="127.0.0.1",
                       MASTER_PORT=str(free_port()), WORLD_SIZE=str(args.ranks),
                       OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
    ranks = [subprocess.Popen([sys.executable, *sys.argv],
                              env=dict(environment, RANK=str(rank)))
             for rank in range(args.ranks)]
    return max(abs(rank.wait()) for rank in ranks)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=MODES, required=True)
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--dtype", choices=("f32", "bf16"), required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, help="sequences of a rank (default: the model's)")
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    args = parser.parse_args()
    if "RANK" not in os.environ:
        sys.exit(start_ranks(args))
    run_rank(args)


if __name__ == "__main__":
    main()
