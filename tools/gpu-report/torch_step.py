"""Times a Llama's training step in PyTorch on one GPU, f32 parameters computed
with in bf16, in the modes of torch.compile.

    python torch_step.py '{"flavor": "1B", "seq_len": 512, "batch": 1}'

The last line is {mode: {"seconds": median of a step, "bytes": peak}}."""
import json
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                                "test", "benchmarks"))
from benchmark_models import Shape
from torch_modes import Llama

MODES = (None, "reduce-overhead", "max-autotune")
FLAVORS = {
    "1B": dict(dim=2048, ffn=8192, heads=32, kv_heads=8, layers=16, vocab=128256),
    "8B": dict(dim=4096, ffn=14336, heads=32, kv_heads=8, layers=32, vocab=128256),
    "debugmodel": dict(dim=256, ffn=768, heads=16, kv_heads=16, layers=6, vocab=2048),
}
TIED = ("1B",)
NAMES = {"n_layers": "layers", "n_heads": "heads", "n_kv_heads": "kv_heads", "ffn_dim": "ffn",
         "vocab_size": "vocab", "seq_len": "seq"}


def shape_of(settings):
    sizes = dict(FLAVORS[settings.pop("flavor")])
    sizes.update({NAMES.get(key, key): value for key, value in settings.items()})
    return Shape(**sizes)


def measure(shape, tied, mode, steps=20, warmup=5):
    torch.manual_seed(42)
    torch.cuda.reset_peak_memory_stats()
    with torch.device("cuda"):
        model = Llama(shape)
    if tied:
        model.output.weight = model.tok_embeddings.weight
    run = torch.compile(model, mode=mode)
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-4, betas=(0.9, 0.95),
                                  weight_decay=0.1, fused=True)
    rows = torch.randint(0, min(256, shape.vocab), (shape.batch, shape.seq + 1), device="cuda")
    tokens, targets = rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
    seconds = []
    for _ in range(warmup + steps):
        torch.cuda.synchronize()
        start = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            logits = run(tokens)
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return {"seconds": statistics.median(seconds[warmup:]),
            "bytes": torch.cuda.max_memory_allocated()}


def main():
    settings = json.loads(sys.argv[1])
    tied = settings["flavor"] in TIED
    shape = shape_of(settings)
    found = {}
    for mode in MODES:
        try:
            found[mode or "default"] = measure(shape, tied, mode)
        except torch.cuda.OutOfMemoryError as error:
            print(f"{mode}: {error}", file=sys.stderr)
        torch.compiler.reset()
        torch.cuda.empty_cache()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
