"""Decides plans for budgets between the arenas of no and of full recomputation."""

import pathlib
import re
import subprocess
import sys

folder, command = pathlib.Path(sys.argv[1]), sys.argv[2:]


def run(*options):
    return subprocess.run([*command, *options], check=True, capture_output=True, text=True).stdout


def arena(*options):
    return int(re.search(r"one arena of .*\((\d+) bytes\)", run("--emit=memory", *options)).group(1))


none, full = (arena("--compile.recompute", policy) for policy in ("none", "full"))
assert full < none, "recomputation saves nothing here"
for part in range(4):
    budget = full + (none - full) * part // 3
    auto = ["--compile.plan", "auto", "--memory-budget", str(budget)]
    used = arena(*auto)
    assert used <= budget, f"{used} bytes in a budget of {budget}"
    plan = folder / f"{part}.json"
    plan.write_text(run("--emit=plan", *auto))
    program = run("--emit=mlir", *auto)
    assert run("--emit=mlir", "--plan", str(plan)) == program, "the plan alone produces another program"
    print(f"{budget}: fits, the plan alone produces the same program")
least = subprocess.run(
    [*command, "--compile.plan", "auto", "--memory-budget", "1", "--emit=memory"], capture_output=True, text=True
)
needed = int(re.search(r"needs .*?\((\d+) bytes\)", least.stderr).group(1))
assert needed <= full, f"{needed} bytes at least, and full takes {full}"
print("full needs more than the least" if needed < full else "full needs the least")
