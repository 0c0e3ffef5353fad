"""How near every kind of call of a step comes to what the GPU can do."""
import json
import os

from machine import WARM_UP, Failed, failure, seconds_of

STREAMS = 4  # tracks of a trace, before the one of steps and programs


def last_step(there, model):
    """The calls of the last step in a trace of single launches. A step's working set is far
    larger than a cache, so what a call reads is as cold as in training."""
    prefix = os.path.join(there.scratch("trace-of"), "trace")
    there.train("timeline", model["artifact"], 1, WARM_UP + 1, dump=False, FSDP_TRACE=prefix)
    with open(prefix + ".0.json") as file:
        events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]
    begins = [e["ts"] for e in events if e["tid"] == STREAMS and e["name"].startswith("step ")]
    calls = [e for e in events if e["tid"] < STREAMS and begins and e["ts"] >= max(begins)]
    if not calls:
        raise Failed("the trace has no event")
    return calls


def _kind(event):
    """As traffic.py calls it: matmuls by their sizes."""
    sizes = "x".join(map(str, event["args"]["sizes"]))
    return f"{event['name']} {sizes}" if event["name"].startswith("gemm ") else event["name"]


def _ceilings(there):
    small = ["--bytes", 1 << 20, "--side", 128] if there.small else []
    rows = {row["name"]: row for row in there.checks("ceilings", *small)}
    return rows["copy"]["GB/s"], rows["matmul"]["TFLOP/s"]


def _row(name, microseconds, calls, known, copy, matmul):
    row = {"name": name, "calls": calls, "us": microseconds}
    # Of parts of other operations, as the fills of a norm, there are no bytes.
    if not known or not microseconds:
        return row
    row["GB/s"] = 1e-3 * known["bytes"] / microseconds
    row["% of copy"] = 100 * row["GB/s"] / copy
    if known["flops"]:
        row["TFLOP/s"] = 1e-6 * known["flops"] / microseconds
        row["% of matmul"] = 100 * row["TFLOP/s"] / matmul
    return row


def _of_model(there, name, model, copy, matmul):
    traffic = model["traffic"]
    microseconds, calls = {}, {}
    for event in last_step(there, model):
        kind = _kind(event)
        microseconds[kind] = microseconds.get(kind, 0) + event["dur"]
        calls[kind] = calls.get(kind, 0) + 1
    absent = sorted(set(traffic["kinds"]) - set(calls))
    if absent:
        raise Failed(f"the trace lacks {', '.join(absent)}")
    for kind in sorted(microseconds, key=lambda k: -microseconds[k]):
        yield _row(f"{name}: {kind}", microseconds[kind], calls[kind],
                   traffic["kinds"].get(kind), copy, matmul)
    whole = 1e-3 * sum(microseconds.values())
    graph = 1e3 * seconds_of(there.train("timed", model["artifact"], 1, there.steps_to_time(),
                                         dump=False))
    read = sum(entry["bytes"] for entry in traffic["kinds"].values())
    yield {"name": f"{name}: all", "calls": sum(calls.values()), "us": 1e3 * whole,
           "GB": 1e-9 * read, "% of copy": 100 * 1e-6 * read / whole / copy,
           "step as a graph, ms": graph, "calls / graph": whole / graph,
           "commands of a stream per call": traffic["commands"] / traffic["calls"]}


def bandwidth(there):
    """bytes and operations per second of every kind of call in a step"""
    copy, matmul = _ceilings(there)
    for name, model in there.timed().items():
        try:
            yield from _of_model(there, name, model, copy, matmul)
        except Failed as reason:
            yield {**failure(name, reason), "passed": False}
