#!/usr/bin/env python3
"""What decided plans take beside known rules, on machines that are not there.

    decided_plans.py BUILD [--models 1B,8B,70B,405B] [--ranks 8,32,64,256,512]
                     [--tokens 1024,2048,4096,8192] [--budgets 32GiB,72GiB,130GiB]
                     [--machines h100,h100-1x200g] [--sums exact_two_levels]
                     [--every N] [--jobs N]

A line of Markdown for each combination, one for budgets that change nothing: the step of the
plan that compile.plan = auto decides, the bound below which no order of its work comes, and
what the known rules take in the same budget, each with the cheapest recomputation. Nothing is
measured: every time is
the simulation's (fsdp-sim --compare). Eight ranks are one node, so of several networks the
first counts. --every N takes every N-th model, ranks and tokens, and says so.

Ends with 1 where a rule is faster than what is decided.
"""
import argparse
import concurrent.futures
import itertools
import re
import resource
import subprocess
import sys
import time

COLUMNS = ("model", "ranks", "tokens", "machine", "budget", "decided ms", "bound ms", "/ bound",
           "arena", "block + 1", "best", "best rule")
NO_FIT = "does not fit"
BUDGET = COLUMNS.index("budget")


def command(args, model, ranks, tokens, machines):
    return [f"{args.build}/bin/fsdp-sim", "--model.name", "llama3", "--model.flavor", model, "-n",
            str(ranks), "--training.seq_len", str(tokens), "--training.local_batch_size", "1",
            "--training.mixed_precision_param", "bfloat16", "--sums", args.sums, "--machine",
            ",".join(machines), "--compare", "--memory-budget", args.budgets]


def rows(args, case):
    """The rows of one model, its ranks and tokens, and whether no rule is faster."""
    model, ranks, tokens = case
    machines = args.machines.split(",")
    if int(ranks) <= 8:
        machines = machines[:1]
    done = subprocess.run(command(args, model, ranks, tokens, machines), capture_output=True,
                          text=True, check=False)
    found = [re.split(r"\s{2,}", line.strip())
             for line in done.stdout.split("\n")[1:] if line.strip()]
    lines = [[*case, *row] for row in found]
    if not lines:
        lines = [[*case, done.stderr.split("\n")[0]]]
    return lines, done.returncode == 0, done.stderr.strip()


def split(line):
    """The cells of a row. The cell of a budget too small for any plan says so itself."""
    cells = [str(cell) for cell in line]
    if cells[-1].endswith(NO_FIT):
        cells[-1:] = [cells[-1][:-len(NO_FIT)].strip(), NO_FIT]
    return cells


def merged(lines):
    """The rows of one problem; budgets of which every other cell is equal are one row."""
    found = {}
    for cells in map(split, lines):
        rest = (*cells[:BUDGET], *cells[BUDGET + 1:])
        found.setdefault(rest, []).append(cells[BUDGET].removesuffix(" GiB").removesuffix(".0"))
    for rest, budgets in found.items():
        yield [*rest[:BUDGET], ", ".join(budgets) + " GiB", *rest[BUDGET:]]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    for name, default in (("models", "1B,8B,70B,405B"), ("ranks", "8,32,64,256,512"),
                          ("tokens", "1024,2048,4096,8192"), ("budgets", "32GiB,72GiB,130GiB"),
                          ("machines", "h100,h100-1x200g"), ("sums", "exact_two_levels")):
        parser.add_argument(f"--{name}", default=default, help=f"default {default}")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    args = parser.parse_args()
    every = list(itertools.product(args.models.split(","), args.ranks.split(","),
                                   args.tokens.split(",")))
    taken = every[::args.every]
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS), flush=True)
    begin, cases, fitting, errors = time.monotonic(), 0, 0, []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for lines, is_good, error in pool.map(lambda case: rows(args, case), taken):
            cases += len(lines)
            fitting += sum(NO_FIT not in line[-1] for line in lines)
            for line in merged(lines):
                print("| " + " | ".join(line) + " |", flush=True)
            if not is_good:
                errors.append(error)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"\n{cases} cases of {len(taken)} of {len(every)} problems, of which {fitting} fit; "
          f"{time.monotonic() - begin:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of CPU, "
          f"at most {used.ru_maxrss / 2**20:.1f} GiB")
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
