#!/usr/bin/env python3
"""Says where a step's time goes, from the trace that FSDP_TRACE=PREFIX makes.

    FSDP_TRACE=trace fsdp-run ARTIFACT -n 2 ...
    test/benchmarks/timeline_summary.py trace.0.json [--step -1] [--top 25]

A step is what the trace marks as one. Per stream it prints the time under each
kernel and how much of it the compute stream did not hide.
"""

import argparse
import collections
import json

COMPUTE = 0
STREAMS = ("compute", "gather", "reduce", "copy")
MARKS = len(STREAMS)  # the track of steps


def load(path):
    """The launches as (stream, name, sizes, begin, end) in seconds."""
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    spans = [(e["tid"], e["name"], tuple(s for s in e["args"]["sizes"] if s),
              e["ts"] * 1e-6, (e["ts"] + e["dur"]) * 1e-6)
             for e in events if e["ph"] == "X"]
    return sorted(spans, key=lambda s: s[3])


def steps_of(spans):
    """Cuts the launches into steps, which a track of the trace marks."""
    marks = [s for s in spans if s[0] == MARKS and s[1].startswith("step ")]
    launches = [s for s in spans if s[0] != MARKS]
    return [[s for s in launches if mark[3] <= s[3] < mark[4]] for mark in marks]


def union(intervals):
    """Sorted, disjoint intervals that cover the same time."""
    result = []
    for begin, end in sorted(intervals):
        if result and begin <= result[-1][1]:
            result[-1][1] = max(result[-1][1], end)
        else:
            result.append([begin, end])
    return result


def length(intervals):
    return sum(end - begin for begin, end in intervals)


def is_wait(name):
    return name.startswith("wait")


def hidden(span, busy):
    """Seconds of a span during which the compute stream computed."""
    return sum(max(0.0, min(span[4], end) - max(span[3], begin))
               for begin, end in busy)


def print_rows(rows, total, top):
    rows = sorted(rows.items(), key=lambda r: -r[1][0])
    for name, (seconds, count) in rows[:top]:
        print(f"  {seconds * 1e3:9.1f} ms {100 * seconds / total:5.1f} %"
              f" {count:5}  {name}")
    if len(rows) > top:
        rest = sum(r[1][0] for r in rows[top:])
        print(f"  {rest * 1e3:9.1f} ms {100 * rest / total:5.1f} %"
              f" {sum(r[1][1] for r in rows[top:]):5}  {len(rows) - top} others")


def rate(name, sizes, seconds):
    """GFLOP/s of a matmul (batch, m, n, k)."""
    flops = 2.0
    for size in sizes:
        flops *= size
    return f"{name} {'x'.join(map(str, sizes))}  {flops / seconds / 1e9:.0f} GFLOP/s"


def summarize(step, top):
    begin = min(s[3] for s in step)
    total = max(s[4] for s in step) - begin
    busy = union((s[3], s[4]) for s in step
                 if s[0] == COMPUTE and not is_wait(s[1]))
    print(f"step: {total * 1e3:.1f} ms, {len(step)} launches")
    for stream, title in enumerate(STREAMS):
        mine = [s for s in step if s[0] == stream]
        if not mine:
            continue
        families = collections.defaultdict(lambda: [0.0, 0])
        for _, name, _, b, e in mine:
            families[name][0] += e - b
            families[name][1] += 1
        covered = length(union((s[3], s[4]) for s in mine))
        print(f"{title}: {covered * 1e3:.1f} ms"
              f" ({100 * covered / total:.1f} % of the step)")
        print_rows(families, total, top)
        if stream != COMPUTE:
            exposed = sum(s[4] - s[3] - hidden(s, busy) for s in mine)
            print(f"  {exposed * 1e3:9.1f} ms of it not beside computation")
    waits = sum(s[4] - s[3] for s in step if s[0] == COMPUTE and is_wait(s[1]))
    print(f"the compute stream waited {waits * 1e3:.1f} ms"
          f" and was between launches"
          f" {(total - length(union((s[3], s[4]) for s in step if s[0] == COMPUTE))) * 1e3:.1f} ms")
    print("by shape:")
    shapes = collections.defaultdict(lambda: [0.0, 0])
    for stream, name, sizes, b, e in step:
        if stream == COMPUTE and not is_wait(name):
            shapes[name, sizes][0] += e - b
            shapes[name, sizes][1] += 1
    rows = {}
    for (name, sizes), (seconds, count) in shapes.items():
        text = rate(name, sizes, seconds / count) if name.startswith("gemm") else \
            f"{name} {'x'.join(map(str, sizes))}"
        rows[text] = (seconds, count)
    print_rows(rows, total, top)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("--step", type=int, default=-1,
                        help="which step, counted from 0; -1: the last")
    parser.add_argument("--top", type=int, default=25,
                        help="rows of each table")
    args = parser.parse_args()
    summarize(steps_of(load(args.trace))[args.step], args.top)


if __name__ == "__main__":
    main()
