"""Stages that say how fast a GPU trains. Model and PyTorch take turns on the
same GPU in the same run."""
import json
import os
import sys

from machine import WARM_UP, Failed, seconds_of, steps_of

STREAMS = 4  # tracks of a trace


def _torch(there, shape):
    """{mode: seconds and bytes of a step} of PyTorch, None where it is missing."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_step.py")
    try:
        said = there.run([sys.executable, script, json.dumps(shape)], wrapped=False)
    except Failed as reason:
        if "ModuleNotFoundError" in str(reason):
            return None
        raise
    return json.loads(said.splitlines()[-1])


def steps(there):
    """seconds of a step: graph, eager, and torch.compile's best mode"""
    count = there.steps_to_time()
    for name, model in there.prepared["timed"].items():
        graph = there.train("graph", model["artifact"], 1, count)
        eager = there.train("eager", model["artifact"], 1, count, "--no-graph")
        record = steps_of(graph)[-1]
        row = {"name": name, "ms": 1e3 * seconds_of(graph), "ms eager": 1e3 * seconds_of(eager),
               "tokens/s": record["tokens_per_second"],
               "GB of arena": 1e-9 * there.arena_of(model["artifact"])}
        torch = None if there.small else _torch(there, model["shape"])
        if torch == {}:
            row["torch's best mode"] = "none has enough memory"
        elif torch:
            best = min(torch, key=lambda mode: torch[mode]["seconds"])
            row.update({"torch's best mode": best, "ms torch": 1e3 * torch[best]["seconds"],
                        "torch / ours": torch[best]["seconds"] / seconds_of(graph),
                        "GB torch": 1e-9 * torch[best]["bytes"]})
        yield row


def timeline(there):
    """the kernels that take longest, and what is between them"""
    for name, model in there.prepared["timed"].items():
        prefix = os.path.join(there.scratch("trace-of"), "trace")
        there.train("timeline", model["artifact"], 1, WARM_UP + 1, FSDP_TRACE=prefix)
        with open(prefix + ".0.json") as file:
            trace = json.load(file)
        # Behind the tracks of the streams one marks steps and programs.
        events = [e for e in trace["traceEvents"] if e.get("ph") == "X" and e["tid"] < STREAMS]
        if not events:
            raise Failed("the trace has no event")
        total = {}
        for event in events:
            count, sum_ = total.get(event["name"], (0, 0))
            total[event["name"]] = count + 1, sum_ + event["dur"]
        whole = sum(sum_ for _, sum_ in total.values())
        for kernel in sorted(total, key=lambda k: -total[k][1])[:10]:
            count, sum_ = total[kernel]
            yield {"name": f"{name}: {kernel}", "calls": count, "us": sum_,
                   "%": 100 * sum_ / whole}
