"""Counts the collectives over an axis that one more layer brings to @train: of
activations, and of parameters and their gradients.

usage: collectives.py AXIS -- ARGUMENTS of fsdp-compile"""
import collections
import re
import subprocess
import sys


def counts(layers, axis, arguments):
    text = subprocess.run(
        ["fsdp-compile", *arguments, "--compile.bucket", "none",
         "--compile.overlap", "none", "--model.n_layers", str(layers),
         "--emit=schedule"], check=True, capture_output=True, text=True).stdout
    (program,) = re.findall(r"func.func @train.*?\n  }", text, re.S)
    return collections.Counter(
        f"{phase} {op} of "
        + ("parameters" if "fsdp.parameters" in labels else "activations")
        for op, axes, labels, phase in re.findall(
            r'fsdp\.(\w+) .* on @mesh\[(.*?)\] (.*)serves = #fsdp\.origin<all "(\w+) ',
            program)
        if f'"{axis}"' in axes)


def main(axis, _, *arguments):
    more, fewer = (counts(layers, axis, arguments) for layers in (3, 2))
    for name in sorted(more):
        if more[name] != fewer[name]:
            print(f"{name}: {more[name] - fewer[name]}")


main(*sys.argv[1:])
