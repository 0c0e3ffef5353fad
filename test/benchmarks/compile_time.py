#!/usr/bin/env python3
"""Time and memory of the compiler on Llama 3, with the limits beside.

    test/benchmarks/compile_time.py [--bin build/bin]

The passes are trace, shard, differentiate, expand, optimizer, the plan
(recomputation, buckets, overlap), fusion and the verifiers; printing the
result is part of the time. The artifact adds memory, events, outlining, C++
and the host compiler. A budget has a plan decided for it (compile.plan = auto).

At last all passes are run on narrow models of many layers, and on losses of
many chunks: processor time of each has to grow with the number alone.
"""

import argparse
import os
import pathlib
import sys
import tempfile
import time

LIMITS = {"405B passes": (15, 4), "8B passes": (4, None), "8B artifact": (60, None),
          "405B, 130 GiB": (10, 4), "405B, 72 GiB": (10, 4)}
GROWTH = (8, 16, 32, 64, 128)
NARROW = ("--model.flavor", "debug", "--ranks", "2")
DEEP = {"layers": (("--training.seq_len", "16", "--training.local_batch_size", "2",
                    "--model.n_layers"), (250, 500, 1000, 2000)),
        "chunks": (("--training.seq_len", "65536", "--training.local_batch_size", "1",
                    "--compile.loss_chunks"), (1024, 4096, 16384))}
# Times as long per layer as the shallowest: the logarithms in a sort, and a
# cache that is too small.
MOST_GROWTH = 1.6


def measure(command, log):
    """(seconds, peak GiB, processor seconds) of a command; stops the benchmark
    if it fails."""
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
    return seconds, usage.ru_maxrss / 2**20, usage.ru_utime + usage.ru_stime


def settings(flavor, ranks, *more, tokens=8192):
    return ["--model.flavor", flavor, "--ranks", str(ranks),
            "--training.local_batch_size", "1", "--training.seq_len", str(tokens),
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

        for budget in ("130 GiB", "72 GiB"):
            row(f"405B, {budget}", best("--emit=plan", "-o", os.path.join(work, "plan.json"),
                                        "--target", "cuda", "--compile.machine", "h100",
                                        "--memory-budget", budget,
                                        *settings("405B", 512, tokens=4096)))

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

        for what, (command, numbers) in DEEP.items():
            print(f"\nall passes, growth with {what}:")
            first = None
            for number in numbers:
                _, memory, seconds = measure(
                    [tool, *NARROW, *command, str(number), "--emit=mlir", "-o",
                     os.path.join(work, "deep.mlir")], log)
                each = seconds / number
                first = first or each
                text = (f"{number:6} {what}  {seconds:8.2f} s of processor  {1e3 * each:6.2f} ms"
                        f" each  {memory:5.2f} GiB")
                if each > MOST_GROWTH * first:
                    failed.append(f"{number} {what}")
                    text += "  TOO MUCH"
                print(text, flush=True)
    if failed:
        sys.exit("over the limit: " + ", ".join(failed))


if __name__ == "__main__":
    main()
