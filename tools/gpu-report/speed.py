"""Stages that say how fast a GPU trains."""
import json
import os
import sys

from bandwidth import last_step
from machine import Failed, failure, seconds_of, steps_of

OURS = {"fsdp": (), "fsdp --no-graph": ("--no-graph",)}
# Those whose compilation takes long come last.
TORCH = ("eager", "eager in a CUDA graph", "default", "reduce-overhead", "max-autotune")


def _ours(there, name, model):
    for mode, options in OURS.items():
        row = f"{name}: {mode}"
        try:
            ran = there.train("timed", model["artifact"], 1, there.steps_to_time(), *options,
                              dump=False)
            yield {"name": row, "ms": 1e3 * seconds_of(ran),
                   "tokens/s": steps_of(ran)[-1]["tokens_per_second"],
                   "GB": 1e-9 * there.arena_of(model["artifact"])}
        except Failed as reason:
            yield {**failure(row, reason), "passed": False}


def _torch(there, name, model, ours):
    """A row for each mode, with a limit of its own."""
    script = there.torch or os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                         "torch_step.py")
    for mode in TORCH:
        row = f"{name}: torch {mode}"
        try:
            said = there.run([sys.executable, script, json.dumps(model.get("shape", {})), mode],
                             wrapped=False, limit=there.torch_limit)
            found = json.loads(said.splitlines()[-1])
            yield {"name": row, "ms": 1e3 * found["seconds"],
                   "ms without a sync per step": 1e3 * found["seconds_unsynced"],
                   "torch / ours": found["seconds"] / ours if ours else "",
                   "GB": 1e-9 * found["bytes"]}
        except Failed as reason:
            yield failure(row, reason)
            if "ModuleNotFoundError" in str(reason):
                return


def steps(there):
    """seconds of a step: graph, single launches, and PyTorch's modes"""
    seconds = {}
    # Ours first: what PyTorch compiles may use up the time.
    for name, model in there.timed().items():
        for row in _ours(there, name, model):
            if "ms" in row:
                seconds.setdefault(name, 1e-3 * row["ms"])
            yield row
    if there.small and not there.torch:
        return
    for name, model in there.timed().items():
        yield from _torch(there, name, model, seconds.get(name))


def timeline(there):
    """the kernels that take longest"""
    for name, model in there.timed().items():
        try:
            events = last_step(there, model)
        except Failed as reason:
            yield {**failure(name, reason), "passed": False}
            continue
        total = {}
        for event in events:
            count, sum_ = total.get(event["name"], (0, 0))
            total[event["name"]] = count + 1, sum_ + event["dur"]
        whole = sum(sum_ for _, sum_ in total.values())
        for kernel in sorted(total, key=lambda k: -total[k][1])[:10]:
            count, sum_ = total[kernel]
            yield {"name": f"{name}: {kernel}", "calls": count, "us": sum_,
                   "%": 100 * sum_ / whole}
