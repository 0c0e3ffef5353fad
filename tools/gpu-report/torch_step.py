"""Times a Llama's training step in PyTorch on one GPU, f32 parameters computed
with in bf16.

    python torch_step.py '{"flavor": "1B", "seq_len": 512, "batch": 1}' MODE

MODE is "eager", "eager in a CUDA graph", or a mode of torch.compile, which
compiles model and loss together. The last line is {"seconds": median of a step
that the host waits for, "seconds_unsynced": mean of steps that it does not wait
for, "bytes": peak}."""
import json
import os
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                                "test", "benchmarks"))
from benchmark_models import Shape
from torch_modes import Llama

STEPS, WARM_UP = 20, 5
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


class ModelAndLoss(nn.Module):
    def __init__(self, shape, tied):
        super().__init__()
        self.model = Llama(shape)
        if tied:
            self.model.output.weight = self.model.tok_embeddings.weight

    def forward(self, tokens, targets):
        return F.cross_entropy(self.model(tokens).flatten(0, 1), targets.flatten())


class Training:
    def __init__(self, shape, tied, mode):
        torch.manual_seed(42)
        with torch.device("cuda"):
            self.model = ModelAndLoss(shape, tied)
        self.run = self.model
        if not mode.startswith("eager"):
            self.run = torch.compile(self.model, mode=mode)
        self.is_graph = mode == "eager in a CUDA graph"
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=8e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True,
            capturable=self.is_graph)
        rows = torch.randint(0, min(256, shape.vocab), (shape.batch, shape.seq + 1),
                             device="cuda")
        self.tokens, self.targets = rows[:, :-1].contiguous(), rows[:, 1:].contiguous()

    def one(self):
        with torch.autocast("cuda", torch.bfloat16):
            loss = self.run(self.tokens, self.targets)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0, foreach=True)
        self.optimizer.step()

    def eager_step(self):
        torch.compiler.cudagraph_mark_step_begin()
        self.optimizer.zero_grad(set_to_none=True)
        self.one()

    def captured_step(self):
        """A function that replays a whole step."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.eager_step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        # Gradients that are None are assigned and not added to, also at a replay.
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            self.one()
        return graph.replay

    def step(self):
        return self.captured_step() if self.is_graph else self.eager_step


def seconds_of(step, count):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / count


def main():
    settings, mode = json.loads(sys.argv[1]), sys.argv[2]
    tied = settings["flavor"] in TIED
    step = Training(shape_of(settings), tied, mode).step()
    seconds_of(step, WARM_UP)
    print(json.dumps({
        "seconds": statistics.median(seconds_of(step, 1) for _ in range(STEPS)),
        "seconds_unsynced": seconds_of(step, STEPS),
        "bytes": torch.cuda.max_memory_allocated()}))


if __name__ == "__main__":
    main()
