"""The calls of whole exec programs, in their order."""
import math
import re

from exec_call_forms import FLAGS, Host, copy, event, fill
from exec_calls import ISSUES, Operation, with_progress
from support import exec_order, exec_text


def _read_kernels(module):
    """Rows, columns and lines of every kernel."""
    kernels, name = {}, None
    for line in module.rest:
        if found := re.match(r"  exec\.kernel @(\S+) over\((\d+), (\d+)\)", line):
            name = found.group(1)
            kernels[name] = (int(found.group(2)), int(found.group(3)), [])
        if name:
            kernels[name][2].append(line)
        if line == "  }":
            name = None
    return kernels


def _exchanged(module, program, what):
    ranges = [module.ranges[name] for name in program.lists[what]]
    if what == "inputs":
        return [r for r in ranges if r.role == "input"]
    return [r for r in ranges if exec_text.elements(r.kind)[0] == 1]


def _begin(module, program):
    for r in _exchanged(module, program, "inputs"):
        yield f"input {r.name}", copy("compute", Host(r.name), r.offset,
                                      exec_text.bytes_of(r.kind))
    yield "its beginning", event("record", "begun", "compute")
    for stream in exec_text.STREAMS[1:]:
        yield "its beginning", event("wait", "begun", stream)


def _end(module, program):
    for stream in exec_text.STREAMS[1:]:
        yield "its end", event("record", f"ended {stream}", stream)
        yield "its end", event("wait", f"ended {stream}", "compute")
    for r in _exchanged(module, program, "outputs"):
        yield f"output {r.name}", copy("compute", r.offset, Host(r.name),
                                       exec_text.bytes_of(r.kind))
    yield "its data errors", copy("compute", FLAGS, Host("data errors"), 4)
    yield "its data errors", fill("compute", FLAGS, 4)


def calls_of(module, program, rank, run):
    """What a run of a program issues until the host waits: (for messages,
    call). Runs count from 1."""
    if not hasattr(module, "kernels"):
        module.kernels = _read_kernels(module)
        module.kinds = {id(op): kinds for block in module.blocks.values()
                        for kinds in [block.kinds()] for op in block.body}
    programs = [block for block in module.blocks.values() if block.op == "program"]
    collectives = 0
    yield from _begin(module, program)
    for number, issued in enumerate(exec_order.Issue(module, program).issued):
        op = issued.op
        what = f"operation {number}, exec.{op.op}"
        if isinstance(op, exec_text.Event):
            yield what, event(op.op, issued.number, op.stream)
            continue
        if op.op not in ISSUES:
            raise ValueError(f"{what}: exec_calls.py does not say what it issues")
        work = Operation(module, issued, module.kinds[id(op)], rank)
        place = work.value("nn.module") or work.value("serves") or ""
        calls = ISSUES[op.op](work)
        # A rank that is alone has nobody who reads them.
        if op.op == "collective" and math.prod(module.axes.values()) > 1:
            calls = with_progress(work, calls, run, programs.index(program), collectives)
            collectives += 1
        for call in calls:
            yield f"{what} {op.what.strip()} {place}".rstrip(), call
    yield from _end(module, program)
