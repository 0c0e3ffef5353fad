"""Tensor parallelism: loss and every gradient on meshes with an axis "tp" are
those of one rank on the same batch, of which every sequence has another number
of ignored labels. A small Llama on every mesh; and models of every family with
their weights, from the directories of test/golden/hf_families, on the named
mesh: CASE/MESH.

usage: tensor_parallel.py WORKDIR [MESH | CASE/MESH]..."""
import json
import math
import os
import random
import sys

from support import cache, commands, runs
from support.tensors import distance, floats, whole, write_rows

BATCH, SEQUENCE, VOCABULARY = 4, 16, 257
# Relative, in the norm of a tensor: f32 sums in other orders. A gradient may be 0
# but for rounding, as of a key's bias without rotary: it may differ by this share
# of the largest.
TOLERANCE, FLOOR = 1e-5, 1e-6
FAMILIES = os.path.join(cache.SOURCE, "test", "golden", "hf_families")
MODEL = {"model.dim": 32, "model.n_layers": 2, "model.n_heads": 8,
         "model.n_kv_heads": 4, "model.ffn_dim": 48,
         "model.vocab_size": VOCABULARY}
EXCHANGE = os.path.join(os.path.dirname(__file__), "Inputs", "exchange.toml")
# Name: (replicate, shard, tensor, settings)
MESHES = {
    "tp4": (1, 1, 4, {}),
    "dp2_tp2": (1, 2, 2, {}),
    "replicate2_tp2": (2, 1, 2, {"compile.mode": "replicate"}),
    "dp2_tp2_whole_loss": (1, 2, 2, {"parallelism.disable_loss_parallel": "true"}),
    "dp2_tp2_no_sequence": (1, 2, 2, {"parallelism.sequence_parallel": "false"}),
    "tp4_neither": (1, 1, 4, {"parallelism.sequence_parallel": "false",
                              "parallelism.disable_loss_parallel": "true"}),
    # Fewer key heads than ranks: every rank needs some of them.
    "tp4_grouped": (1, 1, 4, {"model.n_kv_heads": 2}),
    "tp2": (1, 1, 2, {}),
    "tp2_tied": (1, 1, 2, {"model.tied": "true"}),
    # A policy of one's own, which needs an exchange of shards.
    "dp2_tp2_exchange": (1, 2, 2, {"parallelism.placement_policy": EXCHANGE}),
    "dp4": (1, 4, 1, {}),
}

ON_FAMILIES = ["tp2", "dp2_tp2", "dp2_tp2_whole_loss", "dp2_tp2_no_sequence", "tp4", "tp4_neither"]


class Model:
    """What all meshes train, its batch, and where its weights come from."""

    def __init__(self, settings, rows, weights=()):
        self.settings = {**settings, "training.seq_len": len(rows[0]) - 1}
        self.rows, self.weights = rows, list(weights)
        self.reference = None

    @classmethod
    def llama(cls, settings):
        generator = random.Random(3)
        return cls(settings, [[generator.randrange(VOCABULARY) for _ in range(SEQUENCE + 1)]
                              for _ in range(BATCH)])

    @classmethod
    def of_family(cls, case):
        folder = os.path.join(FAMILIES, case)
        with open(f"{folder}/golden.json") as file:
            rows = json.load(file)["rows"]
        return cls({"model.hf_assets_path": folder}, rows, [
            "--checkpoint.enable", "true", "--checkpoint.load_only", "true",
            "--checkpoint.initial_load_path", folder])

    def write_batch(self, path):
        targets = [[-100 if i < 3 * number else t for i, t in enumerate(row[1:])]
                   for number, row in enumerate(self.rows)]
        write_rows(path, self.rows, targets)


def train(work, name, model, mesh):
    """One step without an optimizer; (artifact, dump of every rank, loss)."""
    replicate, shard, tensor, own = mesh
    ranks = replicate * shard * tensor
    out = f"{work}/{name.replace('/', '.')}"
    settings = {
        **model.settings, "parallelism.data_parallel_replicate_degree": replicate,
        "parallelism.tensor_parallel_degree": tensor,
        "training.local_batch_size": len(model.rows) // (replicate * shard),
        "training.steps": 1, "training.dataset_path": f"{work}/text",
        "training.mixed_precision_param": "float32", "optimizer.name": "none",
        "lr_scheduler.warmup_steps": 0, "validation.enable": "false",
        "sample.length": 0, "metrics.peak_tflops": 1, **own}
    model.write_batch(f"{out}.batch.safetensors")
    artifact = runs.Artifact.compiled(out, ranks, settings)
    commands.run(*artifact.command(
        "--load", f"{out}.batch.safetensors", "--dump", f"{out}.safetensors",
        *model.weights, job__dump_folder=f"{out}.run"))
    return (artifact, artifact.dumps(f"{out}.safetensors"),
            runs.metrics(f"{out}.run")[0]["loss"])


def norm(values):
    return math.sqrt(sum(value * value for value in values))


def compare(name, model, found):
    """Loss and gradients of a mesh with those of one rank."""
    one, (alone,), expected = model.reference
    artifact, dumps, loss = found
    worst = abs(loss / expected - 1)
    if worst > TOLERANCE:
        sys.exit(f"{name}: loss {loss}, on one rank {expected}")
    wanted = {gradient: list(floats(alone[gradient][1])) for gradient in one.names("gradient")}
    floor = FLOOR / TOLERANCE * max(norm(values) for values in wanted.values())
    for gradient, values in wanted.items():
        error = (distance(whole(artifact.manifest, dumps, gradient), values)
                 * min(1, norm(values) / floor))
        worst = max(worst, error)
        if error > TOLERANCE:
            sys.exit(f"{name}: {gradient}: relative error {error:.2e}")
    print(f"{name}: loss and {len(wanted)} gradients, worst relative error {worst:.1e}")


def main(work, *names):
    os.makedirs(work, exist_ok=True)
    with open(f"{work}/text", "w") as file:  # never sampled
        file.write("x" * 1000)
    if "/" in "".join(names) and os.environ.get("FSDP_ALL_FAMILIES"):
        names = [f"{case}/{mesh}" for case in sorted(os.listdir(FAMILIES))
                 for mesh in ON_FAMILIES]
    models = {}
    for name in names or MESHES:
        case, _, mesh = name.rpartition("/")
        mesh = MESHES[mesh]
        settings = {**MODEL, **{k: v for k, v in mesh[3].items() if k.startswith("model.")}}
        key = case or str(sorted(settings.items()))
        if key not in models:
            models[key] = Model.of_family(case) if case else Model.llama(settings)
            models[key].reference = train(work, f"one-{len(models)}", models[key], (1, 1, 1, {}))
        compare(name, models[key], train(work, name, models[key], mesh))
    print(f"{len(names or MESHES)} meshes compute what one rank does")


main(*sys.argv[1:])
