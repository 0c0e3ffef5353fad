#!/usr/bin/env python3
"""What decided schedules take beside known rules, on machines that are not there.

    schedule_table.py BUILD [--flavors 1B,8B] [--ranks 8,64] [--tokens 1024,8192]
                      [--machines h100,h100-1x200g] [--budgets 40GiB,72GiB]

A line of Markdown for each combination: the step that `fsdp-sim --explain` decides,
what it may at least take, the fastest and the slowest of the known rules in the same
live bytes, block buckets one ahead, and the arena. Nothing is measured: every time is
the simulation's. A combination that fits no budget says so.
"""
import argparse
import itertools
import re
import subprocess
import sys

COLUMNS = ("model", "ranks", "tokens", "machine", "budget", "decided ms", "bound ms",
           "best rule", "/ decided", "block, 1 ahead", "slowest", "arena")
ROW = re.compile(r"^(.{23}) +([\d.]+)(?: +([\d.]+))?(?: |$)")


def explain(build, flavor, ranks, tokens, machine, budget):
    """The page, or the first line of the error."""
    done = subprocess.run(
        [f"{build}/bin/fsdp-sim", "--model.name", "llama3", "--model.flavor", flavor, "-n",
         str(ranks), "--training.seq_len", str(tokens), "--training.local_batch_size", "1",
         "--training.mixed_precision_param", "bfloat16", "--machine", machine, "--explain",
         "--memory-budget", budget], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr


def times(page):
    """{name: ms} of the page's table of communication."""
    begin = page.index("\ncommunication ")
    table = page[begin:page.index("\n\n", begin + 1)].split("\n")[2:]
    found = (ROW.match(line) for line in table)
    return {match.group(1).strip(): float(match.group(2)) for match in found if match}


def line(build, *case):
    status, page = explain(build, *case)
    if status != 0:
        return [*case, "does not fit" if "memory budget" in page else page.split("\n")[0]]
    ms = times(page)
    decided, bound = ms.pop("decided"), ms.pop("bound")
    best = min(ms, key=ms.get)
    arena = re.search(r"^fits in ([\d.]+ \w+)", page, re.M).group(1)
    return [*case, f"{decided:.1f}", f"{bound:.1f}", best, f"{ms[best] / decided:.3f}",
            f"{ms.get('block, 1 ahead', float('nan')) / decided:.3f}",
            f"{max(ms.values()) / decided:.2f}", arena]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    for name, default in (("flavors", "1B,8B,70B"), ("ranks", "8,64,256"),
                          ("tokens", "1024,2048,8192"), ("machines", "h100,h100-8x200g,h100-1x200g"),
                          ("budgets", "32GiB,72GiB")):
        parser.add_argument(f"--{name}", default=default, help=f"default {default}")
    args = parser.parse_args()
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS), flush=True)
    for case in itertools.product(*(text.split(",") for text in (
            args.flavors, args.ranks, args.tokens, args.machines, args.budgets))):
        print("| " + " | ".join(map(str, line(args.build, *case))) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
