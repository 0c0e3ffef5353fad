#!/usr/bin/env python3
"""What checkpoints cost a run: seconds of a run that saves asynchronously every
20 steps and of the same run that never saves, in turn.

    test/benchmarks/checkpoint_run.py --bin build/bin

2 ranks with 1 compute thread each on 2 cores. Parameters and moments are
614 MB. Seconds are those of whole processes, from start to end, so that the
last save is waited for. How long a step was blocked is what the run says of
each save; beside it stands what two processes at once need to copy as much.
"""

import argparse
import multiprocessing
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

from training_speed import RANKS, describe_machine

STEPS, INTERVAL = 60, 20
SETTINGS = """
[model]
flavor = "debugmodel"
dim = 1024
n_layers = 4
n_heads = 16
n_kv_heads = 16
ffn_dim = 2816
vocab_size = 256
[training]
local_batch_size = 1
seq_len = 128
steps = {steps}
dataset_path = "{text}"
[parallelism]
data_parallel_shard_degree = {ranks}
[validation]
enable = false
[metrics]
peak_tflops = 0.2
[sample]
length = 0
"""
SAVED = re.compile(r"checkpoint: step ([\d,]+) saved .*: ([\d,]+) bytes in "
                   r"([\d.]+) s, the run waited ([\d.]+) s")


def copy_seconds(size, start, results):
    """Of memory that was touched, to memory that was touched."""
    source, target = bytearray(b"x") * size, bytearray(b"y") * size
    start.wait()
    begin = time.perf_counter()
    memoryview(target)[:] = source
    results.put(time.perf_counter() - begin)


def copy_at_once(size):
    """What the slowest of RANKS processes takes to copy `size` bytes."""
    start, results = multiprocessing.Barrier(RANKS), multiprocessing.Queue()
    processes = [multiprocessing.Process(target=copy_seconds,
                                         args=(size, start, results))
                 for _ in range(RANKS)]
    for process in processes:
        process.start()
    slowest = max(results.get() for _ in processes)
    for process in processes:
        process.join()
    return slowest


class Runs:
    def __init__(self, args, work):
        self.bin, self.work = pathlib.Path(args.bin), pathlib.Path(work)
        self.count = 0
        text = self.work / "bytes.txt"
        text.write_bytes(random.Random(0).randbytes(1 << 20))
        self.config = self.work / "run.toml"
        self.config.write_text(
            SETTINGS.format(steps=STEPS, text=text, ranks=RANKS))
        self.artifact = self.work / "artifact"
        self.call("fsdp-compile", "--config", self.config, "--ranks", RANKS,
                  "-o", self.artifact)

    def call(self, tool, *arguments):
        done = subprocess.run([str(a) for a in (self.bin / tool, *arguments)],
                              text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode:
            sys.exit(done.stdout)
        return done.stdout

    def seconds(self, mode):
        """Of one run, and its saves as (bytes, seconds, seconds waited)."""
        self.count += 1
        options = []
        if mode == "saving":
            options = ["--checkpoint.enable=true", "--checkpoint.async_mode=async",
                       f"--checkpoint.interval={INTERVAL}",
                       "--checkpoint.keep_latest_k=2"]
        begin = time.perf_counter()
        output = self.call("fsdp-run", self.artifact, "--config", self.config,
                           "-n", RANKS, "--job.dump_folder",
                           self.work / f"outputs-{self.count}", *options)
        seconds = time.perf_counter() - begin
        saves = [(int(size.replace(",", "")), float(took), float(waited))
                 for _, size, took, waited in SAVED.findall(output)]
        if len(saves) != (STEPS // INTERVAL if mode == "saving" else 0):
            sys.exit(f"{len(saves)} saves\n{output}")
        return seconds, saves


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True,
                        help="folder of fsdp-compile and fsdp-run")
    parser.add_argument("--work", help="where runs write; a new folder below /tmp")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()

    cores = set(sorted(os.sched_getaffinity(0))[:RANKS])
    os.sched_setaffinity(0, cores)
    describe_machine(cores)
    seconds, saves, copies = {"never": [], "saving": []}, [], []
    with tempfile.TemporaryDirectory(dir=args.work) as work:
        runs = Runs(args, work)
        for turn in range(args.rounds):
            for mode in ("never", "saving") if turn % 2 == 0 else ("saving", "never"):
                took, saved = runs.seconds(mode)
                print(f"{mode}: {took:.1f} s", *(
                    f"{size} bytes in {s:.2f} s, waited {w:.3f} s;"
                    for size, s, w in saved), flush=True)
                seconds[mode].append(took)
                saves += saved
            copies += [copy_at_once(saves[0][0] // RANKS) for _ in range(3)]
    never, saving = (statistics.median(seconds[m]) for m in ("never", "saving"))
    waited, copied = statistics.median(s[2] for s in saves), statistics.median(copies)
    print(f"{STEPS} steps: {never:.1f} s without, {saving:.1f} s with "
          f"{STEPS // INTERVAL} saves of {saves[0][0] / 1e6:.0f} MB: "
          f"ratio {saving / never:.3f}")
    print(f"blocked {waited:.3f} s a save; {RANKS} processes copy as much in "
          f"{copied:.3f} s: ratio {waited / copied:.2f}")


if __name__ == "__main__":
    main()
