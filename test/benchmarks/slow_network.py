#!/usr/bin/env python3
"""Decided plans beside known rules on a slow network that is real: the loopback, held to a rate.

    test/benchmarks/slow_network.py --bin build/bin [--rates 2,0.5] [--python VENV/bin/python]

Two ranks of mpirun train model S of training_speed.py, with fewer sequences, over TCP in a
network namespace of their own, whose loopback lets pass so many Gbit/s (a token bucket, tc tbf).
`fsdp-sim --calibrate --launcher` measures the machine there. For it `fsdp-sim --compare --plans`
writes the decided plan and those of all known rules, which take turns. Beside the median of each
stands what fsdp-sim says. The bound is the longer of compute, which is the step of two jobs of
one rank side by side, and of the decided plan's messages, each alone. The bound on these cores
is fsdp-sim's, which counts that messages slow what computes beside them. With --python, PyTorch's
modes take turns too, with gloo over the same loopback; training_speed.py says what VENV has.

Needs root (for the namespace), iproute2, and a machine on which nothing else runs.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import sys
import tempfile

import benchmark_models
from training_speed import HERE, RANKS, TITLES, Benchmark, describe_machine

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "core", "--mca", "btl",
          "tcp,self", "--mca", "btl_tcp_if_include", "lo", "-np", RANKS]


def held(rate, command):
    """The command in a namespace whose loopback lets pass `rate` Gbit/s."""
    # A burst of 1 ms at least, and of the largest packet.
    burst = max(int(rate * 1e9 / 8 / 1000), 1 << 17)
    script = ("ip link set lo up && tc qdisc add dev lo root tbf "
              f"rate {int(rate * 1e6)}kbit burst {burst} latency 200ms && exec \"$@\"")
    return ["unshare", "-n", "sh", "-c", script, "sh", *command]


class SlowNetwork(Benchmark):
    def __init__(self, args, work, rate):
        super().__init__(args, work)
        self.rate = rate
        self.config = self.settings(args.model, "f32")
        self.batch = ["--training.local_batch_size", args.batch]
        self.environment["FSDP_SHARED_MEMORY"] = "0"
        self.machine = self.work / "network.toml"
        self.run(*held(rate, [self.tool("fsdp-sim"), "--calibrate", "-n", RANKS, "--for",
                              self.config, *self.batch, "--launcher",
                              " ".join(map(str, MPIRUN)), "--seconds", args.seconds, "-o",
                              self.machine]))

    def simulate(self, plan):
        return json.loads(self.run(
            self.tool("fsdp-sim"), "--config", self.config, *self.batch, "-n", RANKS,
            "--machine", self.machine, "--workspaces", "cpu", "--json", "--plan", plan))

    def plans(self):
        """{name: file}; a plan that several rules have is there once."""
        folder = self.work / "plans"
        self.run(self.tool("fsdp-sim"), "--config", self.config, *self.batch, "-n", RANKS,
                 "--machine", self.machine, "--workspaces", "cpu", "--compare",
                 "--memory-budget", self.args.budget, "--plans", folder)
        known = {}
        for path in sorted(folder.glob("*.json"), key=lambda path: path.stem != "decided"):
            known.setdefault(path.read_text(), path)
        return {path.stem: path for path in known.values()}

    def compile(self, name, ranks, *options):
        artifact = self.work / name
        self.run(self.tool("fsdp-compile"), "--config", self.config, *self.batch, *options,
                 "--ranks", ranks, "--parallelism.data_parallel_shard_degree", ranks,
                 "-o", artifact)
        return artifact

    def seconds(self, artifact, ranks, folder, core=None):
        """Those of the timed steps: of one rank on a core, or of all over the network."""
        outputs = self.work / folder
        command = [self.tool("fsdp-run"), artifact, "--config", self.config, *self.batch,
                   "--parallelism.data_parallel_shard_degree", ranks, "--job.dump_folder", outputs]
        command = (held(self.rate, [*MPIRUN, *command]) if core is None
                   else ["taskset", "-c", core, *command, "-n", ranks])
        self.run(*command)
        lines = (outputs / "metrics.jsonl").read_text().splitlines()
        steps = [line["seconds"] for line in map(json.loads, lines) if "step" in line]
        return steps[-self.args.steps:]

    def torch_seconds(self, mode):
        output = self.run(*held(self.rate, [
            self.args.python, HERE / "torch_modes.py", "--mode", mode, "--model", self.args.model,
            "--dtype", "f32", "--ranks", RANKS, "--batch", self.args.batch,
            "--steps", self.args.steps, "--warmup", max(self.args.warmup, 3)]))
        return json.loads(output.splitlines()[-1])["seconds"]

    def compute(self):
        artifact = self.compile("one", 1)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            both = list(pool.map(lambda core: self.seconds(artifact, 1, f"one-{core}", core),
                                 self.args.cores))
        return statistics.median(sum(both, []))


def measure(args, work, rate):
    bench = SlowNetwork(args, work, rate)
    plans = bench.plans()
    artifacts = {name: bench.compile(f"plan-{name}", RANKS, "--plan", path)
                 for name, path in plans.items()}
    seconds = {name: [] for name in plans}
    peers = {mode: [] for mode in args.peers.split(",") if args.python}
    for turn in range(args.rounds):
        for name, artifact in artifacts.items():
            print(f"... {rate} Gbit/s, {name}", file=sys.stderr, flush=True)
            seconds[name] += bench.seconds(artifact, RANKS, f"{name}-{turn}")
        for mode, times in peers.items():
            print(f"... {rate} Gbit/s, {mode}", file=sys.stderr, flush=True)
            times += bench.torch_seconds(mode)
    foreseen = {name: bench.simulate(path) for name, path in plans.items()}
    report(rate, bench.compute(), seconds, foreseen)
    if peers:
        decided = statistics.median(seconds["decided"])
        print("| PyTorch | s | / decided |\n|---|---|---|")
        for mode, times in peers.items():
            median = statistics.median(times)
            print(f"| {TITLES[mode]} | {median:.3f} | {median / decided:.3f} |")
        print(flush=True)


def report(rate, compute, seconds, foreseen):
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    fastest = min(value for name, value in medians.items() if name != "decided")
    messages = foreseen["decided"]["communication_seconds"]
    bound = max(compute, messages)
    print(f"loopback at {rate} Gbit/s: compute {compute:.3f} s, messages of the decided plan "
          f"{messages:.3f} s, bound on these cores {foreseen['decided']['bound_seconds']:.3f} s")
    print("| plan | s | foreseen s | / fastest rule | / bound |\n|---|---|---|---|---|")
    for name in sorted(medians, key=lambda name: medians[name]):
        print(f"| {name} | {medians[name]:.3f} | {foreseen[name]['step_seconds']:.3f} | "
              f"{medians[name] / fastest:.3f} | {medians[name] / bound:.3f} |")
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="directory of the tools")
    parser.add_argument("--seconds", type=float, default=60,
                        help="what measuring the machine may take (default: 60)")
    parser.add_argument("--rates", default="2,0.5", help="Gbit/s (default: 2,0.5)")
    parser.add_argument("--model", default="S", choices=benchmark_models.MODELS)
    parser.add_argument("--batch", type=int, default=2, help="sequences of a rank (default: 2)")
    parser.add_argument("--budget", default="4GiB", help="of the arena (default: 4GiB)")
    parser.add_argument("--steps", type=int, default=3, help="timed steps of a run")
    parser.add_argument("--warmup", type=int, default=1, help="steps before them")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--python", help="Python of an environment with PyTorch, for its modes")
    parser.add_argument("--peers", default="fsdp2,fsdp2_compiled,simple_fsdp,ddp",
                        help="PyTorch's modes that are timed (default: all)")
    args = parser.parse_args()
    args.cores = sorted(os.sched_getaffinity(0))[:RANKS]
    describe_machine(args.cores)
    for rate in map(float, args.rates.split(",")):
        with tempfile.TemporaryDirectory() as work:
            measure(args, work, rate)


if __name__ == "__main__":
    main()
