#!/usr/bin/env python3
"""Time and memory of the compiler on Llama 3, with the limits beside.

    test/benchmarks/compile_time.py [--bin build/bin]

The passes are trace, shard, differentiate, expand, optimizer, the plan
(recomputation, buckets, overlap), fusion and the verifiers; printing the
result is part of the time. The artifact adds memory, events, outlining, C++
and the host compiler.
"""

import argparse
import os
import pathlib
import sys
import tempfile
import time

LIMITS = {"405B passes": (15, 4), "8B passes": (4, None), "8B artifact": (60, None)}
GROWTH = (8, 16, 32, 64, 128)


def measure(command, log):
    """(seconds, peak GiB) of a command; stops the benchmark if it fails."""
    start = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(output, 1)
        os.dup2(output, 2)
        try:
            os.execvp(command[0], command)
        except OSError as error:
            os.write(2, f"{command[0]}: {error}\n".encode())
            os._exit(127)
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - start
    if status:
        sys.exit(f"{' '.join(command)} failed:\n{pathlib.Path(log).read_text()}")
    return seconds, usage.ru_maxrss / 2**20


def settings(flavor, ranks, *more):
    return ["--model.flavor", flavor, "--ranks", str(ranks),
            "--training.local_batch_size", "1", "--training.seq_len", "8192",
            "--training.mixed_precision_param", "bfloat16", *more]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="directory of fsdp-compile")
    parser.add_argument("--runs", type=int, default=3, help="the best run counts")
    args = parser.parse_args()
    tool = str(pathlib.Path(args.bin) / "fsdp-compile") if args.bin else "fsdp-compile"
    failed = []

    with tempfile.TemporaryDirectory() as work:
        log = os.path.join(work, "log")

        def best(*command):
            runs = [measure([tool, *command], log) for _ in range(args.runs)]
            return min(r[0] for r in runs), max(r[1] for r in runs)

        def passes(*command):
            return best("--emit=schedule", "-o", os.path.join(work, "schedule.mlir"),
                        *command)

        def row(title, result):
            seconds, memory = result
            time_limit, memory_limit = LIMITS[title]
            text = f"{title:14} {seconds:8.2f} s  (limit {time_limit} s)  {memory:6.2f} GiB"
            if memory_limit:
                text += f"  (limit {memory_limit} GiB)"
            if seconds > time_limit or (memory_limit and memory > memory_limit):
                failed.append(title)
                text += "  TOO MUCH"
            print(text, flush=True)

        print(f"{os.cpu_count()} cores, load {' '.join(open('/proc/loadavg').read().split()[:3])},"
              f" best of {args.runs}")
        row("405B passes", passes(*settings("405B", 512)))
        row("8B passes", passes(*settings("8B", 8)))
        row("8B artifact", best("-o", os.path.join(work, "artifact"),
                                *settings("8B", 8)))

        print("\ngrowth with the depth, shape of 8B:")
        before = None
        for layers in GROWTH:
            seconds, memory = passes(*settings("8B", 8, "--model.n_layers", str(layers)))
            text = (f"{layers:4} layers  {seconds:7.3f} s  {1e3 * seconds / layers:6.2f} ms"
                    f" per layer  {memory:5.2f} GiB")
            if before:
                added = (seconds - before[1]) / (layers - before[0])
                text += f"  {1e3 * added:6.2f} ms per added layer"
            print(text, flush=True)
            before = layers, seconds
    if failed:
        sys.exit("over the limit: " + ", ".join(failed))


if __name__ == "__main__":
    main()
