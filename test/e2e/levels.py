"""Trains with and without stated nodes, and compares what every step and every
rank has.

usage: levels.py WORKDIR"""
import os
import sys

from support import commands, runs
from support.commands import expect

RANKS = 4
# Wire and mode: scattered and gathered sums, uneven parts of many tensors.
CASES = [("fully_shard", "bfloat16"), ("replicate", "float32")]


class Case:
    def __init__(self, work, text, mode, precision):
        self.work, self.text, self.mode, self.precision = work, text, mode, precision

    def settings(self, node_size):
        return {"model.n_layers": 2, "model.dim": 56, "model.ffn_dim": 158,
                "training.steps": 4, "training.mixed_precision_param": self.precision,
                "compile.mode": self.mode, "parallelism.node_size": node_size}

    def compile(self, node_size):
        path = f"{self.work}/{self.mode}-{node_size}"
        artifact = runs.Artifact.compiled(path, RANKS, self.settings(node_size), runs.CONFIG)
        text = commands.run("fsdp-compile", "--config", runs.CONFIG, "--ranks", str(RANKS),
                            *commands.words(self.settings(node_size)), "--emit=mlir")
        levels = text.count("node_ranks = 2")
        expect((levels > 2) == (node_size == 2), f"{levels} sums in two levels")
        return artifact

    def train(self, artifact, name, shared=True):
        """What each step says and each rank's bytes, and what the run says."""
        os.environ["FSDP_SHARED_MEMORY"] = "1" if shared else "0"
        command = artifact.command(
            training__dataset_path=self.text, job__dump_folder=f"{self.work}/{name}.run")
        if not shared:
            place = command.index("-n")
            del command[place:place + 2]
            command = [*commands.MPIRUN, str(RANKS), *command]
        dump = f"{self.work}/{name}.safetensors"
        said = commands.run(*command, "--dump", dump)
        steps = [(line["loss_hex"], line["grad_norm_hex"])
                 for line in runs.metrics(f"{self.work}/{name}.run")]
        expect(len(steps) == 4, f"{len(steps)} steps")
        return steps, artifact.dumps(dump), said


def main():
    work = sys.argv[1]
    text = runs.start_in(work)
    pairs = tensors = 0
    for mode, precision in CASES:
        case = Case(work, text, mode, precision)
        flat = case.train(case.compile(0), f"{mode}-flat")
        expect("node_size" not in flat[2], flat[2])
        artifact = case.compile(2)
        for shared in (True, False) if mode == "fully_shard" else (True,):
            levels = case.train(artifact, f"{mode}-levels-{shared}", shared)
            expect(levels[0] == flat[0], f"{mode}: steps {levels[0]} and {flat[0]}")
            expect(levels[1] == flat[1], f"{mode}: ranks have other bytes")
            # All ranks are on one machine, which is no node of two.
            expect("the artifact states nodes of 2 ranks (parallelism.node_size), but ranks 0 and "
                   "2 are on one machine" in levels[2], levels[2])
            pairs += 1
            tensors += sum(len(rank) for rank in levels[1])
    print(f"{pairs} pairs of runs, {tensors} tensors: equal to the bit")


main()
