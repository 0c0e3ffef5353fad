#!/usr/bin/env python3
"""Seconds per training step: PyTorch's data-parallel modes and ours, in turn.

    test/benchmarks/training_speed.py --python VENV/bin/python

2 ranks with 1 compute thread each on 2 cores, communication on the same
cores (gloo for PyTorch), AdamW with clipping at 1, the median of the steps
after warm-up. VENV has torch 2.15, and for SimpleFSDP torchtitan 0.3.0:

    python3 -m venv VENV
    VENV/bin/pip install torch==2.15.0 numpy
    VENV/bin/pip install --no-deps torchtitan==0.3.0 spmd_types torchdata tyro \\
        docstring_parser typeguard shtab

The matmul floor is what oneDNN needs for the step's own products, both ranks
at once, and nothing else. Only ratios of one run count: machines differ, and
so does the load of one machine.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import timeline_summary
from benchmark_models import MODELS, NORM_EPS, ROPE_THETA

HERE = pathlib.Path(__file__).parent
TYPES = {"f32": "float32", "bf16": "bfloat16"}
TITLES = {"fsdp2": "FSDP2, eager", "fsdp2_compiled": "FSDP2, blocks compiled",
          "simple_fsdp": "SimpleFSDP + torch.compile", "ddp": "DDP",
          "ours": "fsdp", "tensor": "fsdp, tensor parallel",
          "floor": "matmul floor"}
# Times ours is to be faster than FSDP2 and than SimpleFSDP.
AIMS = {("S", "f32"): (1.35, 1.15), ("S", "bf16"): (2.0, 1.7),
        ("L", "f32"): (2.0, 1.4), ("L", "bf16"): (4.0, 2.8)}
RANKS = 2


class Benchmark:
    def __init__(self, args, work):
        self.args = args
        self.work = pathlib.Path(work)
        self.text = self.work / "bytes.txt"
        self.text.write_bytes(random.Random(0).randbytes(1 << 20))
        self.environment = dict(os.environ, OMP_NUM_THREADS="1")
        self.artifacts = {}
        self.options = []  # of our own compiler and runs, behind the settings

    def tool(self, name):
        return str(pathlib.Path(self.args.bin) / name) if self.args.bin else name

    def run(self, *command, **options):
        done = subprocess.run([str(c) for c in command], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=self.environment, **options)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
        return done.stdout

    def torch_mode(self, mode, model, dtype):
        output = self.run(self.args.python, HERE / "torch_modes.py",
                          "--mode", mode, "--model", model, "--dtype", dtype,
                          "--ranks", RANKS, "--steps", self.args.steps,
                          "--warmup", self.args.warmup)
        return json.loads(output.splitlines()[-1])["seconds"]

    def settings(self, model, dtype):
        """The run as a TOML file; returns its path."""
        shape = MODELS[model]
        path = self.work / f"{model}-{dtype}.toml"
        path.write_text(f"""
[model]
flavor = "debugmodel"
dim = {shape.dim}
n_layers = {shape.layers}
n_heads = {shape.heads}
n_kv_heads = {shape.kv_heads}
ffn_dim = {shape.ffn}
vocab_size = {shape.vocab}
norm_eps = {NORM_EPS}
rope_theta = {ROPE_THETA}
tied = false
[lr_scheduler]
warmup_steps = 2
[training]
local_batch_size = {shape.batch}
seq_len = {shape.seq}
max_norm = 1.0
steps = {self.args.warmup + self.args.steps}
dataset = "bytes"
dataset_path = "{self.text}"
mixed_precision_param = "{TYPES[dtype]}"
[parallelism]
data_parallel_shard_degree = {RANKS}
[validation]
enable = false
[metrics]
peak_tflops = 0.2
[sample]
length = 0
""")
        return path

    def trace(self, model, dtype):
        return self.work / f"{model}-{dtype}-trace"

    def ours(self, model, dtype, mode="ours"):
        settings = self.settings(model, dtype)
        options = list(self.options)
        if mode == "tensor":  # the same global batch, as one group of ranks
            options += ["--parallelism.data_parallel_shard_degree", 1,
                        "--parallelism.tensor_parallel_degree", RANKS,
                        "--training.local_batch_size", MODELS[model].batch * RANKS]
        name = f"{model}-{dtype}" + ("" if mode == "ours" else f"-{mode}")
        artifact = self.work / name
        if not artifact.exists():
            self.run(self.tool("fsdp-compile"), "--config", settings, *options,
                     "--ranks", RANKS, "-o", artifact)
        outputs = self.work / f"{name}-outputs"
        self.environment["FSDP_TRACE"] = str(self.work / f"{name}-trace")
        self.run(self.tool("fsdp-run"), artifact, "--config", settings, *options,
                 "-n", RANKS, "--job.dump_folder", outputs)
        del self.environment["FSDP_TRACE"]
        with open(outputs / "metrics.jsonl") as file:
            lines = [json.loads(line) for line in file]
        seconds = [line["seconds"] for line in lines if "step" in line]
        return seconds[-self.args.steps:]

    def floor(self, model, dtype):
        """All ranks multiply at once, as in a step."""
        tool = self.work / "matmul_floor"
        if not tool.exists():
            self.run(os.environ.get("CXX", "g++"), "-O2", "-fopenmp",
                     HERE / "matmul_floor.cpp", "-ldnnl", "-o", tool)
        spans = timeline_summary.load(f"{self.trace(model, dtype)}.0.json")
        counts = collections.Counter(
            (span[1], span[2]) for span in timeline_summary.steps_of(spans)[-1]
            if span[1].startswith("gemm"))
        products = "".join(
            f"{count} {' '.join(map(str, sizes))} {name.removeprefix('gemm ')}\n"
            for (name, sizes), count in counts.items())
        ranks = [subprocess.Popen([tool], stdin=subprocess.PIPE, text=True,
                                  stdout=subprocess.PIPE, env=self.environment)
                 for _ in range(RANKS)]
        for rank in ranks:
            rank.stdin.write(products)
            rank.stdin.close()
        return [max(json.loads(rank.stdout.read())["seconds"] for rank in ranks)]

    def measure(self, mode, model, dtype):
        load = pathlib.Path("/proc/loadavg").read_text().split()[0]
        print(f"... {model} {dtype} {TITLES[mode]} (load {load})", file=sys.stderr)
        if mode in ("ours", "tensor"):
            return self.ours(model, dtype, mode)
        if mode == "floor":
            return self.floor(model, dtype)
        return self.torch_mode(mode, model, dtype)


def describe_machine(cores):
    info = pathlib.Path("/proc/cpuinfo").read_text()
    model = next((line.split(":", 1)[1].strip() for line in info.splitlines()
                  if line.startswith("model name")), "unknown CPU")
    print(f"{model}, cores {sorted(cores)}, "
          f"load {' '.join(pathlib.Path('/proc/loadavg').read_text().split()[:3])}")
    if "amx_bf16" not in info:
        print("no AMX")
    print(flush=True)


def report(model, dtype, seconds):
    """One model's rows: ours is x times as fast as the mode."""
    median = {mode: statistics.median(times) for mode, times in seconds.items()}
    aims = dict(zip(("fsdp2", "simple_fsdp"), AIMS[model, dtype]))
    ours = median.get("ours")
    print(f"model {model}, {dtype}"
          + (" parameters, f32 reduction" if dtype == "bf16" else ""))
    for mode, value in median.items():
        text = f"  {TITLES[mode]:27} {value:7.3f} s"
        text += f"  ({min(seconds[mode]):.3f} .. {max(seconds[mode]):.3f})"
        if ours and mode == "floor":
            text += f"  {100 * value / ours:.0f} % of our step"
        elif ours and mode != "ours":
            text += f"  ours is {value / ours:.2f} x as fast"
        if ours and mode in aims:
            text += f", aim {aims[mode]}"
            text += "" if value / ours >= aims[mode] else ": MISSED"
        print(text)
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable,
                        help="an interpreter that has torch")
    parser.add_argument("--bin", help="directory of fsdp-compile and fsdp-run")
    parser.add_argument("--models", default="S,L")
    parser.add_argument("--types", default="f32,bf16")
    parser.add_argument("--modes", default=",".join(TITLES))
    parser.add_argument("--steps", type=int, default=8, help="timed steps")
    parser.add_argument("--warmup", type=int, default=3, help="steps before them")
    parser.add_argument("--rounds", type=int, default=1,
                        help="times that all modes are run in turn")
    parser.add_argument("--work", help="keep artifacts and traces there")
    parser.add_argument("--json", help="write all seconds there")
    args = parser.parse_args()

    cores = set(sorted(os.sched_getaffinity(0))[:RANKS])
    os.sched_setaffinity(0, cores)
    describe_machine(cores)
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        if args.work:
            os.makedirs(args.work, exist_ok=True)
        benchmark = Benchmark(args, os.path.abspath(args.work or scratch))
        for model in args.models.split(","):
            for dtype in args.types.split(","):
                seconds = collections.defaultdict(list)
                for _ in range(args.rounds):
                    for mode in args.modes.split(","):
                        seconds[mode] += benchmark.measure(mode, model, dtype)
                report(model, dtype, seconds)
                results.append({"model": model, "dtype": dtype,
                                "seconds": dict(seconds)})
                if args.json:
                    pathlib.Path(args.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
