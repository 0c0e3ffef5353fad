"""Planted faults: every one must be found.

    faults.py FOLDER DEVICE RANKS PROGRAMS ARGUMENTS...

Runs the artifact of FOLDER (see support/fake_device.py) once without a fault, to know its
calls, and once for each fault. PROGRAMS are those of compare_trace.py in one
word, ARGUMENTS those of fsdp-run. A fault is found by

  bytes  the run ends well with other parameters, moments or losses than the CPU's;
  exec   the recorded calls are not those of the exec program;
  error  the run ends with a message of the stand-in device, or of fsdp-run that
         names the rank that is dead, or goes on without graphs and says so.

If PROGRAMS are steps, as `[train]*4`, the faults are those of graphs.

FSDP_FAKECUDA_FAULTS=all plants one in every wait, record, launch, matmul,
transfer and edge instead of the chosen ones, which takes long."""
import concurrent.futures
import json
import os
import re
import sys

import compare_trace
from support import fake_device


#===------------------------------------------------------------------------===#
# Calls
#===------------------------------------------------------------------------===#

# Where the kinds of a process begin to count; all others with the first kernel.
FROM_START = ("drop-synchronize", "host-read", "host-write", "reuse-pinned", "dead-rank",
              "stale-algorithm", "wrong-place", "drop-registration", "wrong-window",
              "drop-event-synchronize")
# Those that count only launches under capture.
CAPTURED = ("captured-question", "captured-legacy", "captured-allocation")
CALLS = {"wait": ("drop-wait", "wrong-event", "wrong-stream-wait"),
         "record": ("drop-record", "early-record"),
         "gemm": ("drop-matmul", "wrong-stream-matmul", "wrong-operand", "wrong-result",
                  "stale-descriptor", "wrong-workspace-matmul", "stale-algorithm"),
         "attention": ("drop-attention", "wrong-stream-attention", "wrong-workspace",
                       "stale-attention"),
         "group": ("drop-group", "double-group", "swap-group", "swap-collectives",
                   "wrong-stream-group", "short-transfer", "wrong-offset-group",
                   "wrong-memory-group", "wrong-peer"),
         "comm_split": ("wrong-place",),
         "register": ("drop-registration", "wrong-window"),
         "copy": ("drop-copy", "short-copy", "wrong-stream-copy", "host-read", "host-write",
                  "reuse-pinned", "stale-copy"),
         "fill": ("drop-fill", "short-fill", "wrong-stream-fill", "wrong-fill"),
         "synchronize": ("drop-synchronize",),
         "graph_launch": ("drop-graph", "double-graph"),
         "event_synchronize": ("drop-event-synchronize",)}
CALL_OF = {kind: call for call, kinds in CALLS.items() for kind in kinds}


class Calls:
    """The calls of a good run, to say which one a fault is planted in."""

    def __init__(self, path):
        with open(path) as lines:
            self.all = [json.loads(line) for line in lines]
        self.first = next(i for i, c in enumerate(self.all) if c["call"] == "launch")
        self.pinned = [(c["address"], c["address"] + c["bytes"]) for c in self.all
                       if c["call"] == "allocate" and c["host"]]
        # Streams in the order of their roles.
        self.streams = [c["stream"] for c in self.all if c["call"] == "create_stream"]

        # Of every graph, from its beginning to its end.
        self.graphs = list(zip(*([i for i, c in enumerate(self.all) if c["call"] == call]
                                 for call in ("begin_capture", "end_capture"))))

    def is_captured(self, i):
        return any(begin < i < end for begin, end in self.graphs)

    def is_pinned(self, address):
        return any(begin <= address < end for begin, end in self.pinned)

    def counted(self, kind):
        """Positions of the calls that a kind counts, or of edges in their list."""
        if kind == "drop-edge":
            return range(len(self.edges()))
        call = CALL_OF.get(kind, "launch")
        names = ("attention", "attention_grad") if call == "attention" else (call,)
        found = [i for i, c in enumerate(self.all) if c["call"] in names]
        if kind == "reuse-pinned":
            found = [i for i in found if self.is_pinned(self.all[i]["from"])]
        if kind in CAPTURED:
            return [i for i in found if self.is_captured(i)]
        return [i for i in found if kind in FROM_START or i >= self.first]

    def edges(self):
        """Of the first graph: the streams of both nodes."""
        begin, end = self.graphs[0]
        streams = [c["stream"] for c in self.all[begin + 1:end] if c["call"] != "record"]
        numbers = self.all[end]["edges"]
        return [(streams[a], streams[b]) for a, b in zip(numbers[::2], numbers[1::2])]

    def find(self, kind, fits):
        """The number of the first call that fits(calls, position)."""
        for number, i in enumerate(self.counted(kind)):
            if fits(self, i):
                return number
        raise SystemExit(f"no call of this program is right for {kind}")


#===------------------------------------------------------------------------===#
# The faults
#===------------------------------------------------------------------------===#

def kernel(name):
    return lambda calls, i: re.search(rf"\b{name}\b", calls.all[i]["kernel"])


def on(role, nth=0):
    """The nth call on a stream."""
    def fits(calls, i):
        stream = calls.streams[role]
        return calls.all[i]["stream"] == stream and nth == sum(
            c["call"] == calls.all[i]["call"] and c.get("stream") == stream
            for c in calls.all[calls.first:i])
    return fits


def any_call(calls, i):
    return True


def behind_launch(calls, i):
    return calls.all[i - 1]["call"] == "launch"


def behind_group(calls, i):
    """But for the word that says that it is done, which nobody reads."""
    return [c["call"] for c in calls.all[i - 2:i]] == ["group", "write"]


def is_wide(calls, i):
    return calls.all[i]["grid"][0] > 1


def many_transfers(calls, i):
    return len(set(calls.all[i]["bytes"])) > 1


def is_kind(kind):
    return lambda calls, i: kind in calls.all[i]["kinds"]


def behind_other_size(calls, i):
    before = [c for c in calls.all[:i] if c["call"] == "gemm"]
    return before and before[-1]["sizes"] != calls.all[i]["sizes"]


def is_causal(calls, i):
    return calls.all[i]["call"] == "attention"


def before_kernel(name):
    return lambda calls, i: name in calls.all[i + 1].get("kernel", "")


def is_input(calls, i):
    """Pushed when a program begins: nobody waits for it at once."""
    return calls.all[i + 1]["call"] != "synchronize"


def is_output(calls, i):
    return calls.is_pinned(calls.all[i]["to"]) and is_input(calls, i)


def behind_fill(calls, i):
    """The end of a program, where data errors have been reset."""
    return calls.all[i - 1]["call"] == "fill" and calls.all[i - 1]["bytes"] == 4 \
        and i > calls.first


def is_upload(calls, i):
    before = calls.all[i - 1]
    return before["call"] == "copy" and calls.is_pinned(before["from"]) \
        and before["bytes"] > 4096


def captured(fits, graph=0):
    """Under capture, of this graph."""
    def check(calls, i):
        begin, end = calls.graphs[graph]
        return begin < i < end and fits(calls, i)
    return check


def is_join(calls, i):
    """The last wait of a capture."""
    begin, end = calls.graphs[0]
    return begin < i < end and not any(c["call"] == "wait" for c in calls.all[i + 1:end])


def on_stream(role):
    return lambda calls, i: calls.all[i]["stream"] == calls.streams[role]


def edge(source, target, nth=0):
    """The nth edge between two streams."""
    def fits(calls, i):
        streams = (calls.streams[source], calls.streams[target])
        return calls.edges()[i] == streams and calls.edges()[:i].count(streams) == nth
    return fits


COMPUTE, GATHER, REDUCE = range(3)
# (kind, rank or None for all, which call)
FAULTS = [
    ("drop-wait", None, on(COMPUTE)),
    ("drop-wait", None, on(COMPUTE, 2)),
    ("drop-wait", 1, on(REDUCE)),
    ("drop-wait", None, on(GATHER, 1)),
    ("wrong-event", None, on(COMPUTE, 1)),
    ("wrong-stream-wait", None, on(COMPUTE)),
    ("drop-record", None, on(GATHER)),
    ("drop-record", 1, on(REDUCE)),
    ("early-record", None, behind_launch),
    ("early-record", None, behind_group),
    ("drop-launch", None, kernel("k_rms_norm")),
    ("double-launch", None, kernel("labelsOfBlock")),
    ("double-launch", None, kernel("adamwStep")),
    ("wrong-stream", None, kernel("k_add")),
    ("wrong-grid", 1, is_wide),
    ("wrong-block", None, kernel("k_silu_mul")),
    ("wrong-offset", None, kernel("rotaryPairs")),
    ("wrong-value", None, kernel("embeddingRows")),
    ("wrong-value", 1, kernel("adamwStep")),
    ("wrong-kernel", None, kernel("k_divide_by_count_2")),
    ("swap-pointers", None, kernel("k_mul")),
    ("swap-launches", None, kernel("k_rms_norm_input_grad")),
    ("hang", 1, kernel("k_add")),
    ("dead-rank", 1, kernel("k_add")),
    ("drop-matmul", None, any_call),
    ("wrong-stream-matmul", None, any_call),
    ("wrong-operand", None, any_call),
    ("wrong-result", None, any_call),
    ("stale-descriptor", None, any_call),
    ("stale-algorithm", None, behind_other_size),
    ("wrong-workspace-matmul", None, any_call),
    ("drop-attention", None, any_call),
    ("wrong-stream-attention", None, any_call),
    ("wrong-workspace", None, any_call),
    ("stale-attention", None, is_causal),
    ("drop-group", 1, on(GATHER, 1)),
    ("drop-group", None, on(REDUCE)),
    ("double-group", 0, any_call),
    ("swap-group", 1, many_transfers),
    ("swap-collectives", 1, on(GATHER)),
    ("wrong-stream-group", None, on(REDUCE)),
    ("short-transfer", None, is_kind(0)),
    ("short-transfer", 1, is_kind(1)),
    ("wrong-offset-group", 0, any_call),
    ("wrong-memory-group", 1, any_call),
    ("wrong-peer", 0, is_kind(1)),
    ("wrong-place", None, any_call),
    ("drop-registration", 0, any_call),
    ("wrong-window", 1, any_call),
    ("drop-copy", None, is_output),
    ("short-copy", None, is_output),
    ("wrong-stream-copy", None, is_output),
    ("drop-fill", None, before_kernel("embeddingGradRows")),
    ("short-fill", None, before_kernel("embeddingGradRows")),
    ("wrong-stream-fill", None, before_kernel("embeddingGradRows")),
    ("wrong-fill", None, before_kernel("labelsOfBlock")),
    ("host-read", 0, is_input),
    ("host-write", 1, is_input),
    ("reuse-pinned", 1, is_input),
    ("drop-synchronize", 0, behind_fill),
    ("drop-synchronize", 1, is_upload),
]

# In a run of steps, all but the first of which are graphs.
GRAPH_FAULTS = [
    ("captured-question", None, any_call),
    ("captured-legacy", 1, kernel("k_add")),
    ("captured-allocation", 0, kernel("adamwStep")),
    ("drop-wait", None, is_join),
    ("drop-wait", None, captured(on_stream(COMPUTE))),
    ("drop-wait", 1, captured(on_stream(REDUCE), graph=1)),
    ("drop-record", None, captured(on_stream(COMPUTE))),
    ("drop-record", None, captured(on_stream(GATHER))),
    ("drop-edge", None, edge(COMPUTE, GATHER)),
    ("drop-edge", None, edge(GATHER, COMPUTE)),
    ("drop-edge", None, edge(COMPUTE, REDUCE)),
    ("drop-edge", 1, edge(REDUCE, COMPUTE)),
    ("drop-edge", 0, edge(COMPUTE, COMPUTE, 5)),
    ("stale-copy", 1, captured(any_call)),
    ("stale-descriptor", None, captured(any_call)),
    ("wrong-offset", None, captured(kernel("rotaryPairs"), graph=1)),
    ("drop-launch", None, captured(kernel("k_rms_norm"))),
    ("hang", 1, captured(kernel("k_add"))),
    ("swap-collectives", 1, captured(any_call)),
    ("drop-group", 0, captured(any_call)),
    ("wrong-stream-fill", None, captured(before_kernel("embeddingGradRows"))),
    ("drop-graph", None, any_call),
    ("drop-graph", 1, any_call),
    ("double-graph", None, any_call),
    ("drop-event-synchronize", 0, any_call),
]

# One in every call that exec decides.
EVERYWHERE = ("drop-wait", "wrong-event", "drop-record", "early-record", "drop-launch",
              "wrong-grid", "wrong-stream", "wrong-stream-matmul", "wrong-result",
              "drop-group", "wrong-stream-group")


def chosen_faults(calls, programs):
    if os.environ.get("FSDP_FAKECUDA_FAULTS") == "all":
        kinds = EVERYWHERE + (("drop-edge",) if "[" in programs else ())
        return [f"{kind}:{number}" for kind in kinds
                for number in range(len(calls.counted(kind)))]
    return [f"{kind}:{calls.find(kind, fits)}" + ("" if rank is None else f"@{rank}")
            for kind, rank, fits in (GRAPH_FAULTS if "[" in programs else FAULTS)]


#===------------------------------------------------------------------------===#
# Finding them
#===------------------------------------------------------------------------===#

class Finder:
    def __init__(self, job, programs):
        self.job, self.programs = job, programs
        with open(os.path.join(job.folder, "step.mlir")) as file:
            self.text = file.read()
        self.reference = job.on_cpu()
        # The first run times matmuls, which the others do not.
        job.on_device("first")
        good = job.on_device("good", trace="%t/trace")
        found = self._found(good)
        if found:
            raise SystemExit(f"found without a fault: {found}\n{good.output}")
        self.calls = Calls(good.trace + ".rank0.jsonl")

    def _difference(self, result):
        """A rank's first call that exec does not say; that one is missing
        because a run has ended says nothing."""
        lines, _ = compare_trace.compare(self.text, result.trace, self.job.ranks, self.programs)
        lines = [line for line in lines if result.status == 0 or "issued nothing" not in line]
        return lines[0] if lines else None

    def _found(self, result):
        found = {}
        if line := self._difference(result):
            found["exec"] = line
        if result.status == 0 and not fake_device.same_bytes(result, self.reference):
            found["bytes"] = "other bytes than the CPU's"
        # A step that cannot be captured is issued call by call.
        if result.status != 0 or "as with --no-graph" in result.output:
            errors = re.findall(r"fakecuda: (?!the fault was not).*|.*was ended by signal.*",
                                result.output)
            # The device may see that the others wait before fsdp-run passes on
            # what a rank said at its end.
            errors.sort(key=lambda error: "deadlock" in error or "ended by" in error)
            if errors:
                found["error"] = errors[0]
        return found

    def find(self, fault):
        result = self.job.on_device(fault, fault=fault, trace="%t/trace")
        if "the fault was not planted" in result.output:
            return {}, result
        found = self._found(result)
        if found:
            result.remove()
        return found, result


def main():
    folder, device, ranks, programs = sys.argv[1:5]
    finder = Finder(fake_device.Job(folder, device, int(ranks), sys.argv[5:]), programs.split())
    faults = chosen_faults(finder.calls, programs)
    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count())) as pool:
        results = list(pool.map(finder.find, faults))
    lost = 0
    print(f"{'fault':28} bytes exec error")
    for fault, (found, result) in zip(faults, results):
        marks = " ".join(("x" if way in found else "").center(len(way))
                         for way in ("bytes", "exec", "error"))
        reason = found.get("error") or found.get("exec") or found.get("bytes")
        print(f"{fault:28} {marks} {(reason or 'NOT FOUND')[:150]}")
        if not found:
            lost += 1
            print(result.output[-1500:])
    kinds = len({fault.split(":")[0] for fault in faults})
    print(f"{len(faults) - lost} of {len(faults)} faults of {kinds} kinds are found")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
