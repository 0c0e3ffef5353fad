"""Every mode trains on a mesh of two axes, under every plan, and all give the
same bits: sums over ranks nest by mesh axis in every mode. A shard degree of 3
shows it, since trees over 2 x 2 ranks are equal to flat ones.

usage: hybrid.py CONFIG TEXT WORKDIR SHARD_DEGREE"""
import functools
import itertools
import json
import os
import shutil
import sys

from support import commands, runs
from support.commands import expect
from support.tensors import floats, read_safetensors

REPLICATE = 2
MODES = ("hybrid_shard", "fully_shard", "replicate")
BUCKETS = OVERLAPS = ("none", "block")
RESHARDS = ("default", "always", "never")
DISTANCES = (0, 1, 2)
STEPS = 4

# What is trained: mode, bucket, overlap, reshard, distance of prefetches and
# deferred reductions (none: the planner's), through shared memory or MPI. The
# first is the reference.
RUNS = [
    ("hybrid_shard", "none", "none", "never", None, True),
    ("hybrid_shard", "block", "none", "always", None, True),
    ("hybrid_shard", "none", "block", "default", None, True),
    ("hybrid_shard", "block", "block", "default", 0, True),
    ("hybrid_shard", "block", "block", "always", None, True),
    ("hybrid_shard", "block", "block", "never", 2, False),
    ("fully_shard", "block", "block", "default", None, True),
    ("fully_shard", "none", "none", "always", None, True),
    ("replicate", "block", "block", "default", None, False),
    ("replicate", "none", "block", "never", 2, True),
]


class Mesh:
    def __init__(self, config, text, work, shard):
        self.text, self.work, self.shard = text, work, shard
        self.ranks = REPLICATE * shard
        # Few steps and layers: without buckets every tensor is a barrier, and
        # six ranks may share two cores.
        self.settings = [
            "--config", config, "--training.steps", str(STEPS),
            "--model.n_layers", "2",
            "--parallelism.data_parallel_replicate_degree", str(REPLICATE)]

    def options(self, mode, bucket, overlap, reshard):
        # Whole parameters are gathered again along the inner axis.
        whole = mode == "fully_shard" and reshard != "never"
        again = self.shard if whole else 0
        return self.settings + [
            "--parallelism.fsdp_reshard_ranks", str(again),
            "--compile.mode", mode, "--compile.bucket", bucket,
            "--compile.overlap", overlap,
            "--parallelism.fsdp_reshard_after_forward", reshard]

    def compile(self, options, *output):
        return commands.run("fsdp-compile", *options, "--ranks",
                            str(self.ranks), *output)

    @functools.lru_cache(maxsize=None)
    def plan_without_distance(self, mode, bucket, reshard):
        return self.compile(self.options(mode, bucket, "block", reshard), "--emit=plan")

    def plan(self, mode, bucket, reshard, distance):
        """Options that put `distance` into the plan with overlap."""
        if distance is None:
            return []
        path = f"{self.work}/{mode}-{bucket}-{reshard}-{distance}.json"
        if not os.path.exists(path):
            plan = json.loads(self.plan_without_distance(mode, bucket, reshard))
            for rule in plan["rules"]:
                for key in ("prefetch", "defer"):
                    if key in rule and "bucket" in rule:
                        rule[key] = distance
            with open(path, "w") as file:
                json.dump(plan, file)
        return ["--plan", path]

    def compile_all(self):
        """Every combination passes the proofs after --emit=memory."""
        count = 0
        for mode, bucket, reshard in itertools.product(MODES, BUCKETS, RESHARDS):
            for overlap in OVERLAPS:
                options = self.options(mode, bucket, overlap, reshard)
                for distance in DISTANCES if overlap == "block" else (None,):
                    plan = self.plan(mode, bucket, reshard, distance)
                    said = self.compile(options + plan, "--emit=memory")
                    expect("@train: peak" in said, said)
                    count += 1
        return count

    def train(self, mode, bucket, overlap, reshard, distance, shared):
        options = self.options(mode, bucket, overlap, reshard)
        out = f"{self.work}/artifact"
        shutil.rmtree(out, ignore_errors=True)
        self.compile(options + self.plan(mode, bucket, reshard, distance), "-o", out)
        os.environ["FSDP_SHARED_MEMORY"] = "1" if shared else "0"
        # On this mesh auto means hybrid_shard, for the compiler and the run.
        if mode == "hybrid_shard":
            options = self.options("auto", bucket, overlap, reshard)
        count = str(self.ranks)
        commands.run(*([] if shared else [*commands.MPIRUN, count]),
                     "fsdp-run", out, *options,
                     *(["-n", count] if shared else []),
                     "--training.dataset_path", self.text,
                     "--job.dump_folder", f"{out}.run",
                     "--dump", f"{out}.safetensors")
        steps = [(line["loss"], line["loss_hex"], line["grad_norm_hex"])
                 for line in runs.metrics(f"{out}.run")]
        expect(len(steps) == STEPS, f"{len(steps)} steps")
        return steps, self.tensors(mode, [
            read_safetensors(f"{out}.rank{rank}.safetensors")
            for rank in range(self.ranks)])

    def tensors(self, mode, ranks):
        """{name: values} of the parameters and moments: shards joined, copies
        compared."""
        copies = {"fully_shard": 1, "hybrid_shard": REPLICATE,
                  "replicate": self.ranks}[mode]
        shards = self.ranks // copies
        result = {}
        for name in ranks[0]:
            if not name.endswith((".weight", ".exp_avg", ".exp_avg_sq")):
                continue
            parts = [rank[name][1] for rank in ranks]
            for group in range(copies):
                mine = parts[group * shards:(group + 1) * shards]
                expect(mine == parts[:shards], f"{name} differs between groups")
            result[name] = floats(b"".join(parts[:shards]))
        expect(result, "the dump has no parameters")
        return result


def equal(mine, theirs):
    """Bits of two tensors. Shards over more ranks have more padding, which is
    zero."""
    short, long = sorted((mine, theirs), key=len)
    return long[:len(short)] == short and not any(long[len(short):])


def compare(mode, run, reference):
    (steps, tensors), (wanted_steps, wanted) = run, reference
    expect(tensors.keys() == wanted.keys(), f"{mode}: other tensors")
    expect(steps == wanted_steps,
           f"{mode}: steps {steps}, the reference {wanted_steps}")
    for name in wanted:
        expect(equal(tensors[name], wanted[name]),
               f"{mode}: {name} has other bits")


def main():
    config, text, work, shard = sys.argv[1:]
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    mesh = Mesh(config, text, work, int(shard))
    compiled = mesh.compile_all()
    reference = None
    for run in RUNS:
        result = mesh.train(*run)
        reference = reference or result
        compare(run[0], result, reference)
    print(f"{REPLICATE} x {shard}: {compiled} plans compiled, {len(RUNS)} "
          "trained to the same bits")


main()
