"""Descriptions of runs of torchtitan: each key that is refused is refused with
what to do, and without these keys the rest compiles.

usage: torchtitan.py INPUTS WORKDIR"""
import os
import re
import shutil
import subprocess
import sys

INPUTS, WORK = sys.argv[1:]
# The ranks of each.
RANKS = {"debug_model": 1, "llama3_8b": 8, "llama3_70b": 64, "llama3_405b": 64,
         "all_keys": 1}
REMEDY = re.compile(r"is not supported \([^)]+\); (use .+, and )?leave the key out"
                    r"|; use .+|; without the key, model.flavor names the model")


def compile_graph(path, ranks):
    return subprocess.run(["fsdp-compile", "--config", path, "--ranks", str(ranks),
                           "--emit=graph", "-o", "graph.mlir"], capture_output=True, text=True)


def refused_lines(path, ranks):
    """{line: key} of what is refused, each with a remedy."""
    said = compile_graph(path, ranks).stderr
    messages = [line for line in said.splitlines() if path in line]
    lines = {}
    for message in messages:
        found = re.search(rf"{re.escape(path)}:(\d+): ([\w.]+)", message)
        if not found or not REMEDY.search(message):
            sys.exit(f"no key or no remedy: {message}")
        lines[int(found.group(1))] = found.group(2)
    if not lines:
        sys.exit(f"{path}: nothing is refused: {said}")
    return lines


def without(path, lines, target):
    with open(path) as source, open(target, "w") as file:
        file.writelines(line for number, line in enumerate(source, 1) if number not in lines)


def check(name):
    """All that is refused. What is wrong with the model is said when its keys
    are right."""
    ranks, path = RANKS[name], os.path.join(INPUTS, f"{name}.toml")
    keys = []
    for attempt in range(2):
        lines = refused_lines(path, ranks)
        keys += lines.values()
        mended = os.path.join(WORK, f"{name}.{attempt}.toml")
        without(path, lines, mended)
        done = compile_graph(mended, ranks)
        if done.returncode == 0:
            break
        path = mended
    else:
        sys.exit(f"{name}: {done.stderr}")
    print(f"{name}: {' '.join(sorted(keys))}")


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    os.chdir(WORK)
    for name in RANKS:
        check(name)


main()
