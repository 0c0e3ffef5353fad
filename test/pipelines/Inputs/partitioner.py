"""Saves what PyTorch's partitioner saves (test/golden/partitioner.py), and
decides a plan for the same arena: its step may take no longer. It may compute
for longer, where what is gathered has the memory.

usage: partitioner.py FOLDER BUDGET... -- SETTING...

A BUDGET is one of the partitioner's; plans are written to FOLDER."""
import json
import os
import re
import sys

from support.commands import expect, run

GOLDEN = os.path.join(os.path.dirname(__file__), "..", "..", "golden", "partitioner.json")


def arena(settings):
    said = run("fsdp-compile", *settings, "--emit=memory")
    return int(re.search(r"one arena of .* \((\d+) bytes\)", said)[1])


def step(settings):
    return json.loads(run("fsdp-sim", *settings, "--json"))["step_seconds"]


def main():
    separator = sys.argv.index("--")
    folder, *budgets = sys.argv[1:separator]
    settings = sys.argv[separator + 1:]
    with open(GOLDEN) as file:
        policies = {str(budget): policy for budget, policy in json.load(file)["policies"]}
    for budget in budgets:
        saved = [*settings, "--compile.recompute", policies[budget]]
        room = arena(saved)
        plan = os.path.join(folder, f"{budget}.json")
        run("fsdp-compile", *settings, "--compile.plan", "auto", "--memory-budget", str(room),
            "--emit=plan", "-o", plan)
        decided = [*settings, "--plan", plan]
        expect(arena(decided) <= room, f"{budget}: the decided arena is larger than {room}")
        before, after = step(saved), step(decided)
        expect(after <= before, f"{budget}: a step of {before} s, decided {after} s")
        print(f"{budget}: no slower in as many bytes: {1e3 * before:.1f} ms, "
              f"decided {1e3 * after:.1f} ms")


main()
