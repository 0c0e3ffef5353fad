"""A forward program and its reverse pass, compiled apart and run one after the
other on two ranks, leave the bytes of the joint program in every gradient.

usage: split_vjp.py WORKDIR"""
import array
import os
import random
import struct
import sys

from support import cache, commands
from support.tensors import read_safetensors, write_safetensors

RANKS, BATCH, SEQUENCE, VOCABULARY = 2, 4, 16, 256


def compiled(work, name, options):
    graph, text = f"{work}/graph.mlir", f"{work}/{name}.mlir"
    if not os.path.exists(graph):
        commands.run("fsdp-trace", "llama3_debug", "--batch", str(BATCH), "--seq",
                     str(SEQUENCE), "-o", graph)
    commands.run("fsdp-opt", graph, f"--fsdp-shard=mesh=dp_shard={RANKS}",
                 f"--nn-differentiate{options}", "--canonicalize", "--cse", "-o",
                 text)
    cache.compile(["fsdp-compile", text, "--programs-only"], f"{work}/{name}")
    return f"{work}/{name}"


def program(artifact, name, load):
    """Runs one program; {name: bytes} of every rank."""
    dump = f"{artifact}-{name}.safetensors"
    commands.run("fsdp-run", artifact, "-n", str(RANKS), "--program", name,
                 "--load", load, "--dump", dump)
    return dump, [read_safetensors(
        dump.replace(".safetensors", f".rank{rank}.safetensors"))
        for rank in range(RANKS)]


def main(work):
    os.makedirs(work, exist_ok=True)
    generator = random.Random(1)
    shape = [BATCH, SEQUENCE]
    batch = {name: ("I32", shape, array.array(
        "i", [generator.randrange(VOCABULARY)
              for _ in range(BATCH * SEQUENCE)]).tobytes())
             for name in ("tokens", "targets")}
    write_safetensors(f"{work}/batch.safetensors", batch)
    batch["loss.cotangent"] = ("F32", [], struct.pack("<f", 1))
    write_safetensors(f"{work}/seeded.safetensors", batch)

    joint = compiled(work, "joint", "")
    _, expected = program(joint, "train", f"{work}/batch.safetensors")
    split = compiled(work, "split", "=split=true")
    left, forward = program(split, "forward", f"{work}/seeded.safetensors")
    _, actual = program(split, "backward", left)
    gradients = [name for name in expected[0] if name.endswith(".grad")]
    residuals = [name for name in forward[0] if name.startswith("residual.")]
    for name in gradients:
        for rank in range(RANKS):
            if actual[rank][name] != expected[rank][name]:
                sys.exit(f"rank {rank}: {name} differs")
        # A rank may have no row of a table that the batch names.
        if not any(any(dump[name][1]) for dump in expected):
            sys.exit(f"{name} is zero")
    if not gradients or not residuals:
        sys.exit("there are no gradients or no residuals")
    print(f"{len(gradients)} gradients from {len(residuals)} residuals: the same "
          "bytes")


main(*sys.argv[1:])
