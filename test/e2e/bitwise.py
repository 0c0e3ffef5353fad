"""A plan never changes a bit: losses, gradient norms and parameters of 20
steps are equal for every mode, bucketing, overlap, re-gathering and recomputation.

usage: bitwise.py TEXT WORKDIR RANKS PRECISION"""
import json
import os
import shutil
import sys

from support import commands, runs
from support.commands import words
from support.tensors import full_tensor, read_safetensors

# The first is the reference: whole parameters, one collective per tensor, no
# overlap, one kernel per op. Each other changes several choices at once;
# together they cover all. `again`: of four ranks so many gather again together.
PLANS = [
    dict(mode="replicate", bucket="none", overlap="none", reshard="default",
         fuse="none"),
    dict(mode="replicate", bucket="block", overlap="block", reshard="default",
         recompute="selective"),
    dict(mode="fully_shard", bucket="none", overlap="none", reshard="never",
         recompute="every-2"),
    dict(mode="fully_shard", bucket="none", overlap="block", reshard="always",
         recompute="free", again=2),
    dict(mode="fully_shard", bucket="block", overlap="none", reshard="always",
         recompute="full", again=2),
    dict(mode="fully_shard", bucket="block", overlap="block", reshard="default",
         recompute="auto"),
    # By hand: one gather moved, two buckets merged, a third split, and values
    # computed again.
    dict(mode="fully_shard", bucket="block", overlap="block", reshard="default",
         again=2, rules=[
             {"match": "fwd layers.2 all_gather",
              "start_after": "fwd layers.0.attention attention"},
             {"match": "fwd {tok_embeddings,layers.0} all_gather",
              "bucket": "first"},
             {"match": "bwd layers.1.feed_forward.* reduce_scatter",
              "bucket": "layers.1.feed_forward"},
             {"match": "fwd layers.*.feed_forward {silu,mul}",
              "recompute": True}]),
]


def settings(text, precision):
    return words({
        # Small, and with sizes that 3 does not divide: uneven shards.
        "model.flavor": "debugmodel", "model.dim": 64, "model.n_layers": 3,
        "model.n_heads": 4, "model.n_kv_heads": 2, "model.ffn_dim": 160,
        "model.vocab_size": 256,
        "training.dataset_path": text,
        "training.local_batch_size": 2, "training.seq_len": 64,
        "training.steps": 20, "training.mixed_precision_param": precision,
        # The norm starts near 2, so that every step clips.
        "training.max_norm": 0.5, "optimizer.lr": 3e-3,
        "lr_scheduler.warmup_steps": 2,
        "validation.enable": "false", "sample.length": 0,
        "metrics.peak_tflops": 1,
    })


def train(text, work, ranks, precision, plan):
    out = f"{work}/plan"
    shutil.rmtree(out, ignore_errors=True)
    options = settings(text, precision) + [
        "--compile.mode", plan["mode"], "--compile.bucket", plan["bucket"],
        "--compile.overlap", plan["overlap"],
        "--compile.fuse", plan.get("fuse", "chains"),
        "--compile.recompute", plan.get("recompute", "none"),
        "--parallelism.fsdp_reshard_after_forward", plan["reshard"]]
    if ranks == 4:
        options += ["--parallelism.fsdp_reshard_ranks", str(plan.get("again", 0))]
    path = []
    if "rules" in plan:
        path = ["--plan", f"{work}/plan.json"]
        with open(path[1], "w", encoding="utf-8") as file:
            json.dump({"version": 2, "rules": plan["rules"]}, file)
    commands.run("fsdp-compile", *options, *path, "--ranks", str(ranks), "-o",
                 out)
    commands.run("fsdp-run", out, *options, "-n", str(ranks),
                 "--job.dump_folder", f"{out}.run",
                 "--dump", f"{out}.safetensors")
    steps = [(line["loss_hex"], line["grad_norm_hex"])
             for line in runs.metrics(f"{out}.run")]
    shards = [read_safetensors(f"{out}.rank{rank}.safetensors")
              for rank in range(ranks)]
    return steps, shards


def full_bytes(shards, name, shape, sharded):
    """The tensor's bytes without padding; every rank's copy if replicated."""
    values = full_tensor(shards if sharded else shards[:1], name, shape)
    return values.tobytes()


def main():
    text, work, ranks, precision = sys.argv[1:]
    ranks = int(ranks)
    os.makedirs(work, exist_ok=True)
    reference = None
    for plan in PLANS:
        steps, shards = train(text, work, ranks, precision, plan)
        if len(steps) != 20 or len(set(steps)) < 15:
            sys.exit(f"{plan}: the losses do not move: {steps}")
        if reference is None:
            names = [name for name in shards[0]
                     if name.endswith((".weight", ".exp_avg", ".exp_avg_sq"))]
            if not names:
                sys.exit("the dump has no parameters")
            for name in names:
                for other in shards[1:]:
                    if other[name] != shards[0][name]:
                        sys.exit(f"{name} differs between replicas")
            reference = (steps, {name: shards[0][name] for name in names})
            continue
        for step, (mine, theirs) in enumerate(zip(steps, reference[0]), 1):
            if mine != theirs:
                sys.exit(f"{plan}: step {step} has loss and norm {mine}, "
                         f"the reference {theirs}")
        for name, (shape, raw) in reference[1].items():
            sharded = plan["mode"] == "fully_shard"
            if full_bytes(shards, name, shape, sharded) != raw:
                sys.exit(f"{plan}: {name} differs after 20 steps")
    print(f"{ranks} ranks, {precision}: {len(PLANS)} plans, "
          f"{len(reference[1])} tensors, 20 steps: equal to the bit")


main()
