#!/usr/bin/env python3
"""How well fsdp-sim foresees steps on this machine.

    test/benchmarks/foresight.py --bin build/bin [--machine FILE.toml]

Calibrates a machine file for 2 ranks on 2 cores (or takes that of --machine), and
then trains models S and L of training_speed.py, in f32 and bf16, under six plans
each: the rule's; all of a block computed again; parameters that stay gathered;
buckets of two blocks; and what compile.plan = auto decides for a budget below and
one above the rule's arena. Plans take turns, --rounds times. Beside the measured
median stands what fsdp-sim says of the same settings, and how far off that is. Of
every two plans of a model and type whose measured medians differ by more than 3 %
it counts whether the faster one was foreseen.

Nothing is fitted to a training step: the machine file has times of single calls.
The machine's load counts as much as the model, so measure when nothing else runs.
"""

import argparse
import collections
import itertools
import json
import os
import pathlib
import statistics
import sys
import tempfile

from training_speed import RANKS, TYPES, Benchmark, describe_machine

PLANS = ("rule", "full", "never", "two blocks", "auto small", "auto large")
# Of the bytes between the arena with full recomputation and the rule's.
BUDGETS = {"auto small": 0.4, "auto large": 1.3}
# Plans that are not about values: they differ in nothing else.
SAVED = ["--compile.recompute", "none"]
APART = 0.03


def pairs_of_blocks(layers):
    """A plan whose buckets have two blocks each."""
    rules = []
    for first in range(0, layers, 2):
        blocks = f"{{layers.{first},layers.{first + 1}}}"
        for phase, kind in (("fwd", "all_gather"), ("again", "all_gather"),
                            ("bwd", "reduce_scatter")):
            rules.append({"match": f"{phase} {blocks} {kind}", "bucket": f"pair{first}"})
    return {"version": 2, "rules": rules}


class Foresight(Benchmark):
    def __init__(self, args, work):
        super().__init__(args, work)
        self.machine = args.machine
        self.options = {}

    def calibrate(self, cells):
        self.machine = str(self.work / "here.toml")
        runs = []
        if not self.args.common:
            for cell in cells:
                runs += ["--for", self.settings(*cell)]
        self.run(self.tool("fsdp-sim"), "--calibrate", "-n", RANKS, "--seconds",
                 self.args.seconds, *runs, "-o", self.machine)

    def simulate(self, model, dtype, options):
        return json.loads(self.run(
            self.tool("fsdp-sim"), "--config", self.settings(model, dtype), "-n", RANKS,
            "--machine", self.machine, "--workspaces", "cpu", "--json", *options))

    def options_of(self, model, dtype, plan):
        """What fsdp-compile and fsdp-sim are told of a plan."""
        if plan in BUDGETS:
            peaks = [self.simulate(model, dtype, self.options_of(model, dtype, other))
                         ["peak_memory_bytes"]["total"] for other in ("full", "rule")]
            budget = int(peaks[0] + BUDGETS[plan] * (peaks[1] - peaks[0]))
            return ["--compile.plan", "auto", "--compile.machine", self.machine,
                    "--memory-budget", budget]
        if plan == "two blocks":
            path = self.work / f"pairs-{model}.json"
            layers = {"S": 8, "L": 2}[model]
            path.write_text(json.dumps(pairs_of_blocks(layers)))
            return [*SAVED, "--plan", path]
        return {"rule": SAVED, "full": ["--compile.recompute", "full"],
                "never": [*SAVED, "--parallelism.fsdp_reshard_after_forward", "never"]}[plan]

    def prepare(self, case):
        model, dtype, plan = case
        self.options[case] = self.options_of(*case)
        artifact = self.work / f"{model}-{dtype}-{plan.replace(' ', '-')}"
        self.artifacts[case] = artifact
        if not artifact.exists():
            self.run(self.tool("fsdp-compile"), "--config", self.settings(model, dtype),
                     *self.options[case], "--ranks", RANKS, "-o", artifact)

    def measured(self, case):
        """Seconds of the timed steps."""
        outputs = pathlib.Path(f"{self.artifacts[case]}-outputs")
        prefix = str(self.artifacts[case]) + "-trace"
        if self.args.trace:
            self.environment["FSDP_TRACE"] = prefix
        # Those that are settings of a run, which an artifact has to agree with.
        settings = [word for pair in zip(*[iter(self.options[case])] * 2)
                    if "." in pair[0] for word in pair]
        self.run(self.tool("fsdp-run"), self.artifacts[case], "--config",
                 self.settings(*case[:2]), *settings, "-n", RANKS,
                 "--job.dump_folder", outputs)
        with open(outputs / "metrics.jsonl") as file:
            seconds = [line["seconds"] for line in map(json.loads, file) if "step" in line]
        return seconds[-self.args.steps:]


def order_check(cases):
    """(pairs that differ in truth, those of which the faster one was foreseen)."""
    differing, right = [], 0
    for a, b in itertools.combinations(cases, 2):
        if a[:2] != b[:2]:
            continue
        truth, foreseen = cases[a], cases[b]
        if abs(truth[0] - foreseen[0]) <= APART * min(truth[0], foreseen[0]):
            continue
        differing.append((a, b))
        right += (truth[0] < foreseen[0]) == (truth[1] < foreseen[1])
    return differing, right


def report(cases):
    print(f"{'model':6}{'type':6}{'plan':12}{'measured s':>11}{'foreseen s':>11}{'off':>8}")
    errors = []
    for (model, dtype, plan), (truth, foreseen) in cases.items():
        error = foreseen / truth - 1
        errors.append(abs(error))
        print(f"{model:6}{dtype:6}{plan:12}{truth:11.3f}{foreseen:11.3f}{100 * error:7.1f} %")
    differing, right = order_check(cases)
    print(f"{len(cases)} configurations: median off {100 * statistics.median(errors):.1f} %,"
          f" largest {100 * max(errors):.1f} %")
    share = 100 * right / len(differing) if differing else 100
    print(f"faster of two that differ by more than {100 * APART:.0f} %:"
          f" {right} of {len(differing)} foreseen ({share:.0f} %)")
    for a, b in differing:
        if (cases[a][0] < cases[b][0]) != (cases[a][1] < cases[b][1]):
            print(f"  not: {' '.join(a)} and {' '.join(b)}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="directory of fsdp-compile, fsdp-run and fsdp-sim")
    parser.add_argument("--models", default="S,L")
    parser.add_argument("--types", default="f32,bf16")
    parser.add_argument("--plans", default=",".join(PLANS))
    parser.add_argument("--steps", type=int, default=3, help="timed steps of a run")
    parser.add_argument("--warmup", type=int, default=1, help="steps before them")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--machine", help="a machine file; nothing is calibrated")
    parser.add_argument("--common", action="store_true",
                        help="calibrate common shapes alone, not those of the models")
    parser.add_argument("--seconds", type=float, default=120,
                        help="what calibration may take")
    parser.add_argument("--trace", action="store_true", help="trace all runs")
    parser.add_argument("--work", help="keep artifacts and traces there")
    parser.add_argument("--json", help="write all seconds there")
    args = parser.parse_args()

    cores = set(sorted(os.sched_getaffinity(0))[:RANKS])
    os.sched_setaffinity(0, cores)
    describe_machine(cores)
    with tempfile.TemporaryDirectory() as scratch:
        if args.work:
            os.makedirs(args.work, exist_ok=True)
        bench = Foresight(args, os.path.abspath(args.work or scratch))
        cells = list(itertools.product(args.models.split(","), args.types.split(",")))
        if not bench.machine:
            bench.calibrate(cells)
        cases = [(*cell, plan) for cell in cells for plan in args.plans.split(",")]
        seconds = collections.defaultdict(list)
        for case in cases:
            bench.prepare(case)
        for _ in range(args.rounds):
            for case in cases:
                load = pathlib.Path("/proc/loadavg").read_text().split()[0]
                print(f"... {' '.join(case)} (load {load})", file=sys.stderr)
                seconds[case] += bench.measured(case)
        result = {}
        for case in cases:
            foreseen = bench.simulate(*case[:2], bench.options[case])["step_seconds"]
            result[case] = (statistics.median(seconds[case]), foreseen)
        report(result)
        if args.json:
            rows = [{"case": case, "seconds": seconds[case], "foreseen": result[case][1]}
                    for case in cases]
            pathlib.Path(args.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
