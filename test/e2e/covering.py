"""Plans that together hold every triple of choices train to the same bits.

usage: covering.py CONFIG TEXT WORKDIR RANKS

Bucket, prefetch, defer, reshard, fusion, and whether gathers are kept from
microbatch to microbatch: losses, gradient norms and what all ranks hold are equal
to the bit for gradients that are reduced every time, and so among those that are
reduced once; across the two forms they differ by rounding. FSDP_COVERING_ROWS sets
how many plans are tried (0: all that the array has)."""
import json
import os
import shutil
import sys

from support import commands, runs
from support.covering import rows_covering
from support.tensors import read_safetensors

FACTORS = {
    "bucket": ["block", "none"],
    "prefetch": [0, 1, 2],
    "defer": [0, 1, 2],
    "reshard": ["default", "always", "never"],
    "fuse": ["chains", "none"],
    "gathers": ["repeat", "keep"],
}
STEPS, MICROBATCHES = 3, 2
# f32 sums of two microbatches in another order, over three AdamW steps with an
# epsilon that keeps rounding small.
TOLERANCE = 1e-6


class Trainer:
    def __init__(self, config, text, work, ranks):
        self.config, self.text, self.work, self.ranks = config, text, work, ranks

    def options(self, row, reduce):
        return [
            "--config", self.config, "--training.steps", str(STEPS),
            "--model.n_layers", "2", "--optimizer.eps", "1e-3",
            "--training.local_batch_size", "1",
            "--training.global_batch_size", str(MICROBATCHES * self.ranks),
            "--compile.bucket", row["bucket"], "--compile.fuse", row["fuse"],
            "--compile.accumulate_gathers", row["gathers"],
            "--compile.accumulate_reduce", reduce,
            "--parallelism.fsdp_reshard_after_forward", row["reshard"]]

    def plan(self, row, options):
        """The planner's plan with other distances."""
        plan = json.loads(commands.run("fsdp-compile", *options, "--ranks",
                                       str(self.ranks), "--emit=plan"))
        for rule in plan["rules"]:
            for key in ("prefetch", "defer"):
                if key in rule and "bucket" in rule:
                    rule[key] = row[key]
        path = f"{self.work}/plan.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(plan, file)
        return path

    def train(self, row, reduce):
        options = self.options(row, reduce)
        out = f"{self.work}/artifact"
        shutil.rmtree(out, ignore_errors=True)
        commands.run("fsdp-compile", *options, "--ranks", str(self.ranks),
                     "--plan", self.plan(row, options), "-o", out)
        commands.run("fsdp-run", out, *options, "-n", str(self.ranks),
                     "--training.dataset_path", self.text,
                     "--job.dump_folder", f"{out}.run",
                     "--dump", f"{out}.safetensors")
        steps = [(line["loss"], line["grad_norm"], line["loss_hex"],
                  line["grad_norm_hex"]) for line in runs.metrics(f"{out}.run")]
        shutil.rmtree(f"{out}.run")
        state = {}
        for rank in range(self.ranks):
            tensors = read_safetensors(f"{out}.rank{rank}.safetensors")
            for name, (_, values) in tensors.items():
                if name.endswith((".weight", ".exp_avg", ".exp_avg_sq")):
                    state[rank, name] = values
        return steps, state


def main():
    config, text, work, ranks = sys.argv[1:]
    os.makedirs(work, exist_ok=True)
    trainer = Trainer(config, text, work, int(ranks))
    rows = rows_covering(FACTORS, 3)
    wanted = int(os.environ.get("FSDP_COVERING_ROWS", "6"))
    tried = rows[:wanted] if wanted else rows
    losses = {}
    for reduce, some in (("every", tried), ("once", tried[:2])):
        reference = None
        for row in some:
            steps, state = trainer.train(row, reduce)
            if len(steps) != STEPS:
                sys.exit(f"{row}: {len(steps)} steps")
            if reference is None:
                reference = steps, state
                losses[reduce] = steps
            if steps != reference[0]:
                sys.exit(f"{row}, {reduce}: {steps}, not {reference[0]}")
            for key, values in reference[1].items():
                if state[key] != values:
                    sys.exit(f"{row}, {reduce}: {key} differs")
    worst = max(abs(a - b) / abs(b)
                for one, other in zip(losses["every"], losses["once"])
                for a, b in zip(one[:2], other[:2]))
    if worst > TOLERANCE:
        sys.exit(f"the two forms of reduction differ by {worst}")
    print(f"{ranks} ranks: {len(tried)} of {len(rows)} plans equal to the bit, "
          f"reduced once within {TOLERANCE}")


main()
