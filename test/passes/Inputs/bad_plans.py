"""Gives fsdp-plan one bad plan after the other; prints what it says.

usage: bad_plans.py MODULE SCRATCH.json"""
import re
import subprocess
import sys

PLANS = [
    # Text.
    '{"version": 3, "rules": []}',
    '{"version": 2}',
    '{"version": 2, "rules": [], "extra": 3}',
    '{"version": 2, "rules": [{"match": "fwd tok all_gather", "prefech": 1}]}',
    '{"version": 2, "rules": [{"match": "fwd tok all_gather", "overlap": 1}]}',
    '{"version": 2, "rules": [{"match": "fwd tok all_gather", "overlap": null}]}',
    '{"version": 2, "rules": [{"match": 1, "overlap": true}]}',
    '{"version": 2, "rules": [{"overlap": true}]}',
    '{"version": 2, "rules": [{"match": [], "overlap": true}]}',
    '{"version": 2, "rules": [{"match": "fwd tok all_gather"}]}',
    '{"version": 2, "rules": [7]}',
    '{"version": 2, "rules": [{"match": "fwd tok all_gather", "prefetch": -1}]}',
    '{"version": 2, "rules": [{"match": "bwd tok reduce_scatter", "defer": -1}]}',
    '{"version": 2, "rules": [{"match": "fwd [tok", "overlap": true}]}',
    '{"version": 2, "rules": [{"match": "a", "overlap": true, "match": "b"}]}',
    # Addresses.
    '{"version": 2, "rules": [{"match": "fwd layers.O.w1 all_gather", "prefetch": 2}]}',
    '{"version": 2, "rules": [{"match": ["fwd tok all_gather", "bwd tok all_gather"], "prefetch": 2}]}',
    '{"version": 2, "rules": [{"match": "fwd tok all_gather", "start_after": "fwd layers.0.w1 lineer"}]}',
    '{"version": 2, "rules": [{"match": "bwd tok reduce_scatter", "await_before": "fwd nothing"}]}',
    # Choices about something else.
    '{"version": 2, "rules": [{"match": "bwd * reduce_scatter", "prefetch": 1}]}',
    '{"version": 2, "rules": [{"match": "fwd * all_gather", "defer": 1}]}',
    '{"version": 2, "rules": [{"match": "bwd tok reduce_scatter", "recompute": true}]}',
    '{"version": 2, "rules": [{"match": "fwd layers.0 silu", "overlap": true}]}',
    '{"version": 2, "rules": [{"match": "fwd layers.0 silu", "bucket": "a"}]}',
    # Buckets.
    '{"version": 2, "rules": [{"match": "fwd tok all_gather", "bucket": "layers.*"}]}',
    '{"version": 2, "rules": [{"match": "fwd layers.0.w1 all_gather", "prefetch": 2}]}',
    # Version 1.
    '{"version": 1, "units": [{"name": "a", "parameters": ["tok.weight"]}]}',
]


def main(module, scratch):
    for plan in PLANS + [None]:
        path = scratch if plan else "absent.json"
        if plan:
            with open(path, "w", encoding="utf-8") as file:
                file.write(plan)
        result = subprocess.run(
            ["fsdp-opt", module, f"--fsdp-plan=file={path}"],
            capture_output=True, text=True)
        if result.returncode == 0:
            print(f"accepted: {plan}")
        for line in re.findall(r"error: (.*)", result.stderr):
            print(line.replace(f"'{path}' ", "").replace(f"'{path}'", ""))


main(*sys.argv[1:])
