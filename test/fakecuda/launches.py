"""Counts the calls that a program of an exec module issues on rank 0.

    launches.py STEP.mlir PROGRAM

STEP.mlir is what `fsdp-compile --target=cuda --emit=mlir` prints."""
import collections
import re
import sys

import compare_trace
import exec_programs


def main():
    path, name = sys.argv[1:]
    with open(path) as file:
        module = compare_trace.Planned(file.read())
    program, = (block for block in module.blocks.values()
                if block.op == "program" and block.name == name)
    counts, sums = collections.Counter(), 0
    for _, call in exec_programs.calls_of(module, program, 0, 1):
        counts[call["call"]] += 1
        sums += call["call"] == "launch" and bool(re.match("(add|reduce)Ranks", call["kernel"]))
    print(f"{name}: {counts['launch']} launches, of which {sums} add over ranks; "
          f"{counts['gemm']} matmuls, {counts['group']} groups of transfers")


if __name__ == "__main__":
    main()
