#!/usr/bin/env python3
"""Breaks planned programs at random and compares two verdicts on each.

    exec_mutations.py WORKDIR [--seed N] [--count N] [--jobs N] [--opt TOOL]

The programs are small Llamas on several meshes and plans, before and after
exec-outline. Every mutation is judged by exec_order.py and by exec-verify. A
bad program that exec-verify accepts, or a good one that it refuses, fails the
test; WORKDIR then keeps it. FSDP_SEED and FSDP_MUTATIONS stand for --seed and
--count."""
import argparse
import collections
import multiprocessing
import os
import pathlib
import pickle
import random
import re
import subprocess
import sys

import exec_statement_mutations  # noqa: F401 (adds its kinds)
from exec_mutation_kinds import MUTATIONS, NothingToDo
from support import exec_order
from support import exec_text as text
from support.exec_text import Call

PER_FILE = 20  # mutations that one process of fsdp-opt checks

MODEL = ["--model.dim", "16", "--model.n_heads", "2", "--model.n_kv_heads", "1",
         "--model.ffn_dim", "24", "--model.vocab_size", "30", "--model.n_layers", "3",
         "--training.local_batch_size", "1", "--training.seq_len", "8"]
PLANS = {
    "one-rank": ["-n", "1"],
    "two-ranks": ["-n", "2"],
    "three-ranks-bf16": ["-n", "3", "--training.mixed_precision_param", "bfloat16"],
    "copies": ["-n", "2", "--training.mixed_precision_param", "bfloat16",
               "--compile.compute_copy", "true"],
    "hybrid-single": ["-n", "4", "--parallelism.data_parallel_replicate_degree", "2",
                      "--compile.bucket", "none"],
    "no-overlap": ["-n", "2", "--compile.overlap", "none",
                   "--parallelism.fsdp_reshard_after_forward", "always"],
    "kept-gathers": ["-n", "2", "--parallelism.fsdp_reshard_after_forward", "never"],
    "three-ranks-fast": ["-n", "3", "--workspaces=cuda", "--compile.reduce", "fast"],
    "accumulated": ["-n", "2", "--training.global_batch_size", "4"],
    "accumulated-once": ["-n", "2", "--training.global_batch_size", "6",
                         "--compile.accumulate_gathers", "keep",
                         "--compile.accumulate_reduce", "once"],
    "replicated": ["-n", "2", "--compile.mode", "replicate", "--compile.fuse", "none"],
    "wide-products": ["-n", "1", "--compile.wide_products", "true"],  # reads weights as one
    # Copies them, for the first of two has no multiple of 128 bytes.
    "wide-copies": ["-n", "1", "--compile.wide_products", "true", "--model.ffn_dim", "25"],
}


#===------------------------------------------------------------------------===#
# The two verdicts
#===------------------------------------------------------------------------===#

def mutate(pickled, kind, seed):
    """A module with one mutation, or None if the kind does not apply."""
    rng, module = random.Random(seed), pickle.loads(pickled)
    try:
        MUTATIONS[kind](rng, module)
    except NothingToDo:
        return None
    return module


def refused_by_compiler(tool, path, modules):
    """For each module whether exec-verify, or the parser before it, refuses."""
    starts, line = [], 1
    for module in modules:
        starts.append(line)
        line += module.count("\n") + 1
    path.write_text("// -----\n".join(modules))
    done = subprocess.run([tool, "--exec-verify", "--split-input-file",
                           "--mlir-print-op-on-diagnostic=false", "-o", os.devnull, path],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{tool} ended with {done.returncode} on {path}:\n{done.stdout}")
    refused = [False] * len(modules)
    for at in re.findall(re.escape(path.name) + r":(\d+):\d+: error:", done.stdout):
        chunk = max(i for i, start in enumerate(starts) if start <= int(at))
        refused[chunk] = True
    if any(refused) != (done.returncode == 1):
        sys.exit(f"{tool} ended with {done.returncode} on {path}, but said:\n{done.stdout}")
    return refused


def judge(job):
    """[(kind, fault or None, refused, text)] of one batch of mutations."""
    tool, path, batch = job
    judged = []
    for pickled, kind, seed in batch:
        module = mutate(pickled, kind, seed)
        if module:
            judged.append((kind, exec_order.fault_of(module), module.text()))
    refused = refused_by_compiler(tool, path, [entry[2] for entry in judged]) if judged else []
    return [(kind, fault, no, module) for (kind, fault, module), no in zip(judged, refused)]


#===------------------------------------------------------------------------===#
# The programs
#===------------------------------------------------------------------------===#

def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          **more)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


def real_programs():
    """{name: module} of all plans, before and after exec-outline."""
    modules = {}
    for name, settings in PLANS.items():
        schedule = run("fsdp-compile", "--emit=schedule", *MODEL, *settings)
        fast = str("fast" in settings).lower()
        planned = run("fsdp-opt", f"--exec-lower=target=test fast-reductions={fast}",
                      "--exec-plan-memory", "--exec-synchronize", input=schedule)
        outlined = run("fsdp-opt", "--exec-outline", input=planned)
        for when, content in (("", planned), (", outlined", outlined)):
            module = modules[name + when] = text.Module(content)
            fault = exec_order.fault_of(module)
            if fault:
                sys.exit(f"{name}{when}: the unchanged program is refused: {fault}")
            calls = [op for block in module.blocks.values() for op in block.body
                     if isinstance(op, Call)]
            if bool(calls) != bool(when):
                sys.exit(f"{name}{when}: has {len(calls)} calls")
    return modules


def report(results, work):
    """Prints the table; returns how often the verdicts differ."""
    rows = collections.defaultdict(lambda: [0, 0, 0, 0, 0])
    wrong = 0
    for kind, fault, refused, module in results:
        missed, needless = fault is not None and not refused, fault is None and refused
        for total in (rows[kind], rows["all"]):
            for column, value in enumerate((1, fault is not None, refused, missed, needless)):
                total[column] += value
        if missed or needless:
            path = work / f"wrong-{wrong}.mlir"
            path.write_text(module)
            print(f"{path}: {kind}: " + (f"accepted, but {fault}" if missed else
                                         "refused, but good"))
            wrong += 1
    print(f"{'mutation':45} count   bad  refused")
    for kind in (*MUTATIONS, "all"):
        count, bad, refused, *_ = rows[kind]
        print(f"{kind:45} {count:5} {bad:5} {refused:8}")
    *_, missed, needless = rows["all"]
    print(f"{rows['all'][0]} mutations: {missed} bad ones accepted, "
          f"{needless} good ones refused")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("FSDP_SEED", 1)))
    parser.add_argument("--count", type=int, default=int(os.environ.get("FSDP_MUTATIONS", 600)))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--opt", default="fsdp-opt", help="whose verdict is judged")
    args = parser.parse_args()

    modules = [pickle.dumps(module) for module in real_programs().values()]
    rng = random.Random(args.seed)
    kinds = list(MUTATIONS)
    tasks = []
    while len(tasks) < args.count:
        # Every kind in turn; one that finds nothing to do in this program is
        # tried on the others.
        kind = kinds[len(tasks) % len(kinds)]
        for pickled in rng.sample(modules, len(modules)):
            seed = rng.getrandbits(32)
            if mutate(pickled, kind, seed):
                tasks.append((pickled, kind, seed))
                break
        else:
            sys.exit(f"{kind}: applies to no program")
    jobs = [(args.opt, args.work / f"batch-{i}.mlir", tasks[i:i + PER_FILE])
            for i in range(0, len(tasks), PER_FILE)]
    with multiprocessing.Pool(args.jobs) as pool:
        results = [entry for batch in pool.imap(judge, jobs) for entry in batch]
    if report(results, args.work):
        sys.exit("exec-verify and the plain check disagree")


if __name__ == "__main__":
    main()
