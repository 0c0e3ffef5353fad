"""compile.compute_copy: parameters that the optimizer writes in bf16 too. Losses,
parameters and moments are those without it, to the bit, wherever parameters come
from: initialised, trained, resumed on another mesh, loaded, evaluated, sampled.

usage: compute_copy.py WORKDIR"""
import os
import sys

from support import runs
from support.commands import expect, run

BF16 = {"training__mixed_precision_param": "bfloat16"}
# (replicate, shard, tensor), and what else is special. Shards of three ranks are
# uneven; 8 sequences of all ranks.
CASES = {
    "one": ((1, 1, 1), {}),
    "three": ((1, 3, 1), {"model__tied": "true"}),
    "hybrid": ((2, 2, 1), {"compile__recompute": "full"}),
    "kept": ((1, 2, 1), {"training__global_batch_size": 16,
                         "compile__accumulate_gathers": "keep"}),
    "tensor": ((1, 2, 2), {}),
}


def compiled(work, name, mesh, copies, **own):
    replicate, shard, tensor = mesh
    data = replicate * shard
    return runs.compile_small(
        f"{work}/{name}{'-copy' if copies else ''}", data * tensor,
        parallelism__data_parallel_replicate_degree=replicate,
        parallelism__tensor_parallel_degree=tensor,
        training__local_batch_size=own.pop("batch", 8 // data),
        compile__compute_copy="true" if copies else "false", **{**BF16, **own})


def pair(work, name, mesh, **own):
    plain, copy = (compiled(work, name, mesh, copies, **own) for copies in (False, True))
    copies = {f"{parameter}.compute_copy" for parameter in copy.names("parameter")}
    expect(set(copy.names("compute_copy")) == copies, f"{name}: {copy.names('compute_copy')}")
    roles = {entry["role"] for entry in plain.manifest["ranges"]}
    expect("compute_copy" not in roles, f"{name}: copies that nobody asked for")
    return plain, copy


def same(name, plain, copy, folders, dumps):
    expect(runs.curve(folders[0]) == runs.curve(folders[1]), f"{name}: other losses")
    one, other = (artifact.tensors(dump) for artifact, dump in zip((plain, copy), dumps))
    expect(one.keys() == other.keys(), f"{name}: other tensors")
    for tensor, values in one.items():
        expect(other[tensor] == values, f"{name}: {tensor} differs")


def check_training(work, text):
    """Each run saves at its end; that of one rank also in the middle."""
    for name, (mesh, own) in CASES.items():
        both = pair(work, name, mesh, **own)
        folders = [f"{artifact.path}.run" for artifact in both]
        dumps = [f"{artifact.path}.st" for artifact in both]
        for artifact, folder, dump in zip(both, folders, dumps):
            artifact.run(text, folder, "--dump", dump, training__steps=8,
                         checkpoint__interval=4)
        same(name, *both, folders, dumps)
        dumped = both[1].dumps(dumps[1])[0]
        expect(not any(tensor.endswith(".compute_copy") for tensor in dumped),
               f"{name}: a dump has copies")


def check_resumed(work, text):
    """From the checkpoint of one rank with copies, on another mesh."""
    both = pair(work, "resumed", (1, 2, 1))
    folders = [f"{artifact.path}.run" for artifact in both]
    dumps = [f"{artifact.path}.st" for artifact in both]
    for artifact, folder, dump in zip(both, folders, dumps):
        artifact.run(text, folder, "--dump", dump, training__steps=12,
                     checkpoint__initial_load_path=f"{work}/one-copy.run/checkpoint/step-4")
    same("resumed", *both, folders, dumps)


def check_loaded(work, text):
    """Parameters of a file, and commands on a checkpoint."""
    both = [compiled(work, "one", CASES["one"][0], copies) for copies in (False, True)]
    folders, dumps, said = [], [], []
    for artifact in both:
        folders.append(f"{artifact.path}-loaded.run")
        dumps.append(f"{artifact.path}-loaded.st")
        artifact.run(text, folders[-1], "--load", f"{work}/one.rank0.st", "--dump", dumps[-1],
                     training__steps=3, checkpoint__enable="false")
        for command in ("evaluate", "sample"):
            words = artifact.command(text, f"{artifact.path}-{command}", "--checkpoint",
                                     f"{work}/one-copy.run/checkpoint/step-8",
                                     checkpoint__enable="false", sample__length=20,
                                     validation__enable="true")
            words.insert(2, command)
            said.append([line for line in run(*words).splitlines()
                         if "tokens/s" not in line and " in " not in line])
    same("loaded", *both, folders, dumps)
    expect(said[0] == said[2] and said[1] == said[3] and said[0] and said[1], said)


def check_saved(checkpoint):
    for name in os.listdir(checkpoint):
        with open(os.path.join(checkpoint, name), "rb") as file:
            expect(b"weight.compute_copy" not in file.read(), f"{name} has copies")


def main(work):
    text = runs.start_in(work)
    check_training(work, text)
    check_resumed(work, text)
    check_loaded(work, text)
    check_saved(f"{work}/one-copy.run/checkpoint/step-8")
    print(f"{len(CASES)} cases train, resume, load, evaluate and sample with the same bits")


if __name__ == "__main__":
    main(sys.argv[1])
