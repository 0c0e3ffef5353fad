"""Plans that are decided for budgets train to the bits of the rule's plan.

usage: decided.py CONFIG TEXT WORKDIR

Ranks, precision, microbatches, reshard, machine and budget in rows that hold every
pair of choices: losses, gradient norms and what all ranks hold after 20 steps are
equal to the bit. A budget is a place between the arenas of full recomputation (0)
and of the rule (1). By default eight rows, which share four runs of the rule; with
FSDP_DECIDED_ROWS=all all rows, of a deeper model."""
import functools
import json
import os
import re
import sys

from support import commands, runs
from support.commands import expect, words
from support.covering import rows_covering

JOBS = {"ranks": [2, 3, 4], "precision": ["float32", "bfloat16"],
        "microbatches": [1, 4]}
DECISIONS = {"reshard": ["default", "always", "never"], "machine": ["h100", "slow"],
             "budget": [0, 0.2, 0.4, 0.6, 0.8, 1, 4]}
FEW_JOBS = [(2, "float32", 4), (3, "bfloat16", 1), (4, "float32", 1),
            (4, "bfloat16", 4)]
STEPS = 20
# Ranks are nodes of their own, whose network is slow against their compute.
SLOW = """name = "slow"
base = "h100"

[device]
ranks_per_node = 1

[network]
bytes_per_second = 1e9

[exact]
network_bytes_per_second = 1e9
message_seconds = 0
"""


def few_rows():
    """Two of each of a few jobs, in eight budgets."""
    budgets = [0, 0.2, 0.4, 0.5, 0.6, 0.8, 1, 4]
    return [{**dict(zip(JOBS, FEW_JOBS[number % len(FEW_JOBS)])),
             "reshard": DECISIONS["reshard"][number % 3],
             "machine": DECISIONS["machine"][number // len(FEW_JOBS)],
             "budget": budget} for number, budget in enumerate(budgets)]


class Trainer:
    def __init__(self, config, text, work, layers):
        self.config, self.text, self.work = config, text, work
        self.layers = layers
        self.machine = f"{work}/slow.toml"
        with open(self.machine, "w", encoding="utf-8") as file:
            file.write(SLOW)

    def settings(self, row):
        return {
            "model.n_layers": self.layers,
            "training.steps": STEPS, "training.local_batch_size": 1,
            "training.global_batch_size": row["ranks"] * row["microbatches"],
            "training.mixed_precision_param": row["precision"],
            # The norm starts near 2, so that every step clips.
            "training.max_norm": 0.5}

    @functools.cache
    def arena_of_full(self, ranks, precision, microbatches):
        """The bytes with everything computed again."""
        row = dict(ranks=ranks, precision=precision, microbatches=microbatches)
        said = self.compile(row, ["--compile.recompute=full", "--emit=memory"])
        return int(re.search(r"one arena of .*\((\d+) bytes\)", said).group(1))

    def compile(self, row, options):
        return commands.run("fsdp-compile", "--config", self.config, "--ranks",
                            str(row["ranks"]), *words(self.settings(row)), *options)

    def train(self, artifact):
        """The steps, and what every rank holds."""
        commands.run(*artifact.command(
            "--dump", f"{artifact.path}.safetensors",
            **{"training.dataset_path": self.text,
               "job.dump_folder": f"{artifact.path}.run"}))
        steps = [(line["loss_hex"], line["grad_norm_hex"])
                 for line in runs.metrics(f"{artifact.path}.run")]
        expect(len(steps) == STEPS and len(set(steps)) > 15,
               f"{artifact.path}: the losses do not move: {steps}")
        held = [{name: values for name, values in dump.items()
                 if name.endswith((".weight", ".exp_avg", ".exp_avg_sq"))}
                for dump in artifact.dumps(f"{artifact.path}.safetensors")]
        expect(all(held), f"{artifact.path}: the dump has no parameters")
        return steps, held

    @functools.cache
    def by_rule(self, ranks, precision, microbatches):
        """The bytes of the rule's arena, its plan, and what it trains to."""
        row = dict(ranks=ranks, precision=precision, microbatches=microbatches)
        artifact = runs.Artifact.compiled(
            f"{self.work}/rule-{ranks}-{precision}-{microbatches}", ranks,
            self.settings(row), self.config)
        return (artifact.manifest["arena"]["bytes"],
                self.compile(row, ["--emit=plan"]), self.train(artifact))

    def check(self, number, row):
        """Decides, trains and compares; the plan and the arena."""
        group = row["ranks"], row["precision"], row["microbatches"]
        arena, plan, (steps, held) = self.by_rule(*group)
        full = self.arena_of_full(*group)
        expect(full < arena, f"{row}: full takes {full} bytes, the rule {arena}")
        budget = int(full + (arena - full) * row["budget"])
        machine = self.machine if row["machine"] == "slow" else row["machine"]
        reshard = {"parallelism.fsdp_reshard_after_forward": row["reshard"]}
        decided = self.compile(row, [
            "--compile.plan=auto", f"--memory-budget={budget}",
            f"--compile.machine={machine}", *words(reshard), "--emit=plan"])
        expect(decided != plan, f"{row}: the plan is the rule's")
        path = f"{self.work}/decided-{number}"
        with open(f"{path}.json", "w", encoding="utf-8") as file:
            file.write(decided)
        self.compile(row, [*words(reshard), f"--plan={path}.json", "-o", path])
        artifact = runs.Artifact(path, row["ranks"], {**self.settings(row), **reshard},
                                 self.config)
        used = artifact.manifest["arena"]["bytes"]
        expect(used <= budget, f"{row}: {used} bytes in a budget of {budget}")
        mine, ours = self.train(artifact)
        expect(mine == steps, f"{row}: {mine}, not {steps}")
        for rank, (some, others) in enumerate(zip(ours, held)):
            expect(some.keys() == others.keys(), f"{row}: other tensors")
            for name, values in others.items():
                expect(some[name] == values, f"{row}: {name} of rank {rank} differs")
        return json.dumps(json.loads(decided)["rules"]), used


def main():
    config, text, work = sys.argv[1:]
    os.makedirs(work, exist_ok=True)
    every = os.environ.get("FSDP_DECIDED_ROWS") == "all"
    rows = rows_covering({**JOBS, **DECISIONS}, 2) if every else few_rows()
    trainer = Trainer(config, text, work, 4 if every else 2)
    found = [trainer.check(number, row) for number, row in enumerate(rows)]
    plans, arenas = map(set, zip(*found))
    expect(len({row["ranks"] for row in rows}) == 3, "some ranks are not tried")
    # Where one schedule is the best for several settings, theirs may agree.
    expect(2 * len(plans) > len(rows) and 2 * len(arenas) > len(rows),
           f"only {len(plans)} plans and {len(arenas)} arenas differ")
    print(f"{len(rows)} decided plans equal to the rule's to the bit, {STEPS} steps; "
          f"{len(plans)} plans and {len(arenas)} arenas differ")


main()
