"""Compares the graph of every model that is known by name, named in settings,
with that of fsdp-trace.

usage: models_by_name.py WORKDIR"""
import re
import sys

from support import commands


def main(work):
    names = re.findall(r"^  (\S+) ", commands.run("fsdp-trace", "--list"), re.M)
    names.remove("odsc_mlp")  # has no tokens to train on
    for name in names:
        family, size = name.split("_")
        flavor = "debugmodel" if size == "debug" else size
        # One layer: the graph is short, and its sizes are the model's.
        graph = commands.run("fsdp-compile", "--model.name", family, "--model.flavor", flavor,
                             "--model.n_layers", "1", "--training.seq_len", "64",
                             "--training.local_batch_size", "1",
                             # Else that of this CPU.
                             "--training.mixed_precision_param", "float32", "--emit=graph")
        traced = commands.run("fsdp-trace", name, "--set", "n_layers=1", "--seq", "64", "--batch", "1")
        commands.expect(graph == traced, f"{name}: another graph")
    print(f"{len(names)} models by name")


main(sys.argv[1])
