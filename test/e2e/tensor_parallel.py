"""Tensor parallelism: loss and every gradient of a small Llama on meshes with an
axis "tp" are those of one rank on the same batch, of which every sequence has
another number of ignored labels.

usage: tensor_parallel.py WORKDIR [NAME...]"""
import os
import random
import sys

from support import commands, runs
from support.tensors import distance, floats, whole, write_rows

BATCH, SEQUENCE, VOCABULARY = 4, 16, 257
TOLERANCE = 1e-5  # relative, in the norm of a tensor: f32 sums in other orders
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
    "tp2_tied": (1, 1, 2, {"model.tied": "true"}),
    # A policy of one's own, which needs an exchange of shards.
    "dp2_tp2_exchange": (1, 2, 2, {"parallelism.placement_policy": EXCHANGE}),
    "dp4": (1, 4, 1, {}),
}


def train(work, name, mesh):
    """One step without an optimizer; (artifact, dump of every rank, loss)."""
    replicate, shard, tensor, own = mesh
    ranks = replicate * shard * tensor
    out = f"{work}/{name}"
    settings = {
        **MODEL, "parallelism.data_parallel_replicate_degree": replicate,
        "parallelism.tensor_parallel_degree": tensor,
        "training.local_batch_size": BATCH // (replicate * shard),
        "training.seq_len": SEQUENCE, "training.steps": 1,
        "training.dataset_path": f"{work}/text",
        "training.mixed_precision_param": "float32", "optimizer.name": "none",
        "lr_scheduler.warmup_steps": 0, "validation.enable": "false",
        "sample.length": 0, "metrics.peak_tflops": 1, **own}
    artifact = runs.Artifact.compiled(out, ranks, settings)
    commands.run(*artifact.command(
        "--load", f"{work}/batch.safetensors", "--dump", f"{out}.safetensors",
        job__dump_folder=f"{out}.run"))
    return (artifact, artifact.dumps(f"{out}.safetensors"),
            runs.metrics(f"{out}.run")[0]["loss"])


def write_inputs(work):
    generator = random.Random(3)
    rows = [[generator.randrange(VOCABULARY) for _ in range(SEQUENCE + 1)]
            for _ in range(BATCH)]
    targets = [[-100 if i < 3 * number else t for i, t in enumerate(row[1:])]
               for number, row in enumerate(rows)]
    write_rows(f"{work}/batch.safetensors", rows, targets)
    with open(f"{work}/text", "w") as file:  # never sampled
        file.write("x" * 1000)


def main(work, *names):
    os.makedirs(work, exist_ok=True)
    write_inputs(work)
    references = {}
    for name in names or MESHES:
        mesh = MESHES[name]
        model = {k: v for k, v in mesh[3].items() if k.startswith("model.")}
        key = str(sorted(model.items()))
        if key not in references:
            references[key] = train(work, f"one-{len(references)}",
                                    (1, 1, 1, model))
        artifact, dumps, loss = train(work, name, mesh)
        one, (alone,), expected = references[key]
        worst = abs(loss / expected - 1)
        gradients = one.names("gradient")
        for gradient in gradients:
            error = distance(whole(artifact.manifest, dumps, gradient),
                             list(floats(alone[gradient][1])))
            worst = max(worst, error)
            if error > TOLERANCE:
                sys.exit(f"{name}: {gradient}: relative error {error:.2e}")
        if abs(loss / expected - 1) > TOLERANCE:
            sys.exit(f"{name}: loss {loss}, on one rank {expected}")
        print(f"{name}: loss and {len(gradients)} gradients, worst relative "
              f"error {worst:.1e}")
    print(f"{len(names or MESHES)} meshes compute what one rank does")


main(*sys.argv[1:])
