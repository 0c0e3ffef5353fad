"""Whether the calls that ranks issued are those of their exec programs.

    compare_trace.py STEP.mlir TRACE RANKS PROGRAM...

STEP.mlir is what `fsdp-compile --target=cuda --emit=mlir` prints, TRACE the
prefix of FSDP_FAKECUDA_TRACE, and the programs are those that a run goes
through, `NAME*3` for three times; `[NAME NAME*2]*3` are three training steps of
these programs, all but the first as CUDA graphs. Every call on the artifact's
streams is accounted for: its operations, streams, events, grids, places in the
arena, sizes, the communicators' ranks, and the edges of graphs. What an exec
operation issues is said once, in exec_calls.py. A difference is one line."""
import collections
import functools
import json
import re
import sys
import threading

import exec_calls
import exec_programs
from exec_call_forms import (
    FLAGS, INDEX, AtMost, Channel, Device, Event, Host, Progress, ranks_of)
from support import exec_text


class Difference(Exception):
    """Where the calls leave the program."""


class Names:
    """What the program and the process call the same thing: one name each."""

    def __init__(self):
        self.ours, self.theirs = {}, {}

    def agree(self, our, their):
        return (self.ours.setdefault(our, their) == their
                and self.theirs.setdefault(their, our) == our)


#===------------------------------------------------------------------------===#
# What was issued
#===------------------------------------------------------------------------===#

class Recorded:
    """A rank's calls on the streams of the artifact, addresses as places."""

    def __init__(self, path, arena_bytes):
        with open(path) as lines:
            calls = [json.loads(line) for line in lines]
        self.allocations = [c for c in calls if c["call"] == "allocate"]
        arenas = [c for c in self.allocations if c["bytes"] == arena_bytes and not c["host"]]
        made = [c["stream"] for c in calls if c["call"] == "create_stream"]
        if not arenas or len(made) < len(exec_text.STREAMS):
            raise Difference("no arena or no streams")
        self.arena = arenas[0]
        self.roles = dict(zip(made, exec_text.STREAMS))
        # The streams of other contexts, which have nothing to do with it.
        others = set(made[len(exec_text.STREAMS):])
        self.splits = [c for c in calls if c["call"] == "comm_split"]
        self.registered = [(c["comm"], c["address"], c["bytes"]) for c in calls
                           if c["call"] == "register"]
        self.calls = [self._placed(c) for c in calls
                      if c["call"] == "instantiate" or "stream" in c
                      and c["stream"] not in others and c["call"] != "create_stream"]

    def place(self, address):
        if not address:
            return None
        for a in self.allocations:
            if a["address"] <= address < a["address"] + a["bytes"]:
                if a is self.arena:
                    return address - a["address"]
                return ("host" if a["host"] else "device", address)
        return ("nowhere", address)

    def _placed(self, call):
        stream = call.get("stream")
        call = dict(call, stream=self.roles.get(stream, stream))
        for name in ("from", "to", "pointers"):
            if name in call:
                value = call[name]
                call[name] = ([self.place(v) for v in value] if isinstance(value, list)
                              else self.place(value))
        if call["call"] == "launch":
            call["kernel"] = exec_calls.short_name(call["kernel"])
            call["values"] = exec_calls.decoded(call["kernel"], call["values"], self.place)
        if call["call"] == "group":
            call["transfers"] = list(zip(*(call.pop(n) for n in
                                           ("kinds", "peers", "from", "to", "bytes", "sums"))))
        return call


#===------------------------------------------------------------------------===#
# The comparison
#===------------------------------------------------------------------------===#

def shown(call, fields):
    return " ".join([call["call"], *(f"{name}={call[name]}" for name in fields
                                     if name in call and name != "call")])


# What the process numbers.
Graph = collections.namedtuple("Graph", "number")
Executable = collections.namedtuple("Executable", "number")

COMPUTE = {"stream": "compute"}
SYNCHRONIZE = {"call": "synchronize", **COMPUTE}
THREAD_LOCAL = 1
# Steps that are on their way at once, each with a graph of its own.
GRAPHS = 2


class Edges:
    """Which captured calls stand after which, by streams, records and waits."""

    def __init__(self):
        self.last, self.recorded = {}, {}  # by stream, by event
        self.nodes, self.pairs = 0, []

    def add(self, call):
        before = list(self.last.get(call["stream"], []))
        if call["call"] == "record":
            self.recorded[call["event"]] = before
            return
        if call["call"] == "wait":
            before += [node for node in self.recorded.get(call["event"], [])
                       if node not in before]
        self.pairs += [(node, self.nodes) for node in before]
        self.last[call["stream"]] = [self.nodes]
        self.nodes += 1

    def check(self, call):
        given = list(zip(call["edges"][::2], call["edges"][1::2]))
        if call["nodes"] != self.nodes:
            raise Difference(f"a graph has {call['nodes']} nodes for {self.nodes} calls")
        for text, edges in (("lacks", set(self.pairs) - set(given)),
                            ("has", set(given) - set(self.pairs))):
            if edges:
                raise Difference(f"a graph {text} the edge {min(edges)}")


class Comparison:
    def __init__(self, module, rank, recorded):
        self.module, self.rank, self.recorded = module, rank, recorded
        self.names = collections.defaultdict(Names)
        self.at, self.compared = 0, 0
        self.runs = 0  # issued or captured

    def _next(self, offset=0):
        at = self.at + offset
        return self.recorded.calls[at] if at < len(self.recorded.calls) else {"call": "nothing"}

    def _agree(self, expected, given):
        """Whether an issued value is the one that a program means."""
        if isinstance(expected, AtMost):
            return given <= expected.bound
        if isinstance(expected, (Event, Channel, Graph, Executable)):
            return self.names[type(expected)].agree(expected, given)
        if isinstance(expected, Progress):
            return (given & ~INDEX == expected.counter and
                    self.names[Progress].agree(expected.collective, given & INDEX))
        if isinstance(expected, (Host, Device)):
            kind = type(expected).__name__.lower()
            return (isinstance(given, tuple) and given[0] == kind
                    and self.names[kind].agree(expected, given))
        if isinstance(expected, list) and isinstance(given, list):
            return len(expected) == len(given) and all(map(self._agree, expected, given))
        return expected == given

    def _take(self, what, expected):
        issued = self._next()
        wrong = [name for name, value in expected.items()
                 if name not in issued or not self._agree(value, issued[name])]
        if wrong:
            fields = expected if "call" in wrong else wrong
            raise Difference(f"{what}: expected {shown(expected, fields)}, "
                             f"issued {shown(issued, fields)}")
        self.at += 1
        self.compared += 1
        return issued

    def _prepare(self):
        """What makes a context: the arena and the flags are zero."""
        size = self.module.bytes["arena_bytes"]
        for expected in (
                {"call": "fill", "stream": "compute", "value": 0, "to": 0, "bytes": size},
                {"call": "fill", "stream": "compute", "value": 0, "to": FLAGS,
                 "bytes": 4},
                SYNCHRONIZE):
            self._take("preparation", expected)

    def _take_transfers(self):
        """Pieces that the host writes or reads between programs."""
        while self._next()["call"] == "copy" and self._next(1)["call"] == "synchronize":
            ends = [self._next()["from"], self._next()["to"]]
            piece = [end for end in ends if isinstance(end, tuple) and end[0] == "host"]
            if len(piece) != 1 or not any(isinstance(end, int) for end in ends):
                raise Difference(f"a copy between programs: {shown(*[self._next()] * 2)}")
            for expected in ({"call": "copy", **COMPUTE}, SYNCHRONIZE):
                self._take("a copy between programs", expected)

    def _calls(self, name):
        self.runs += 1
        return self.module.expected(name, self.rank, self.runs)

    def _run(self, what, name):
        """One program; then the host waits."""
        self._take_transfers()
        for part, expected in self._calls(name):
            self._take(f"{name}, {what}, {part}", expected)
        self._take(f"{name}, {what}, its end", SYNCHRONIZE)

    def _capture(self, number, programs):
        """One graph, whose programs have places of the host for themselves."""
        what = f"graph {number}"
        self._take(what, {"call": "begin_capture", **COMPUTE, "mode": THREAD_LOCAL})
        edges = Edges()
        given = set()  # by earlier programs of the graph, so that no copy of the host's is taken
        for run, name in enumerate(programs):
            for part, expected in self._calls(name):
                if expected["call"] == "copy":
                    if getattr(expected["from"], "range", None) in given:
                        continue
                    if isinstance(expected["to"], Host):
                        given.add(expected["to"].range)
                    expected = {key: Host((number, run, value.range))
                                if isinstance(value, Host) else value
                                for key, value in expected.items()}
                edges.add(self._take(f"{name}, run {run} of {what}, {part}", expected))
        graph = {"graph": Graph(number)}
        edges.check(self._take(what, {"call": "end_capture", **COMPUTE, **graph}))
        self._take(what, {"call": "instantiate", **graph, "executable": Executable(number),
                          "keeps_priorities": 1})

    def _steps(self, programs, count):
        """The first is issued call by call, the second captured; each is awaited
        when the next is on its way."""
        for run, name in enumerate(programs):
            self._run(f"run {run} of step 0", name)
        if count > 1:
            for number in range(GRAPHS):
                self._capture(number, programs)
        finished = None
        for step in range(1, count):
            number = (step - 1) % GRAPHS
            event = Event(f"finished {number}")
            self._take(f"step {step}", {"call": "graph_launch", **COMPUTE,
                                        "executable": Executable(number)})
            self._take(f"step {step}", {"call": "record", **COMPUTE, "event": event})
            self._await(finished)
            finished = event
        self._await(finished)

    def _await(self, event):
        if event:
            self._take("the end of a step", {"call": "event_synchronize", "event": event})

    def _check_channels(self):
        """Returns the order in which each communicator was split off."""
        arena = self.recorded.arena
        order = []
        for channel, comm in self.names[Channel].ours.items():
            ranks = ranks_of(self.module, channel.axes, self.rank)
            splits = [s for s in self.recorded.splits if s["comm"] == comm]
            if len(splits) != 1 or splits[0]["color"] != ranks[0] \
                    or splits[0]["key"] != ranks.index(self.rank):
                raise Difference(f"{channel}: its communicator is that of other ranks")
            if (comm, arena["address"], arena["bytes"]) not in self.recorded.registered:
                raise Difference(f"{channel}: the arena is not registered")
            order.append((channel, self.recorded.splits.index(splits[0])))
        return sorted(order)

    def run(self, words):
        self._prepare()
        number = 0
        for word in words:
            if isinstance(word, Steps):
                self._take_transfers()
                self._steps(word.programs, word.count)
                continue
            self._run(f"run {number}", word)
            number += 1
        self._take_transfers()
        if self._next()["call"] != "nothing":
            raise Difference(f"behind all programs: {shown(*[self._next()] * 2)}")
        return self._check_channels()


Steps = collections.namedtuple("Steps", "programs count")


def repeated(words):
    """The programs of the command line, one by one, and steps of them."""
    for text, inner, times in re.findall(r"((?:\[([^]]*)\]|[^][*\s]+))(?:\*(\d+))?",
                                         " ".join(words)):
        count = int(times or 1)
        yield from ([Steps(list(repeated(inner.split())), count)] if inner
                    else [text] * count)


class Planned(exec_text.Module):
    """An exec module for GPUs. What its runs issue is worked out once, however
    many threads compare traces with it."""

    def __init__(self, text):
        super().__init__(text)
        if self.target != "cuda":
            raise ValueError("the module is not planned for the target cuda")
        # Sizes of workspaces are those of CUDA; exec_order knows a test's.
        self.target = None
        self.known, self.lock = {}, threading.Lock()

    def expected(self, *run):
        """The calls of (program, rank, number of the run)."""
        name, rank, number = run
        with self.lock:
            if run not in self.known:
                self.known[run] = list(exec_programs.calls_of(
                    self, self.blocks[name], rank, number))
            return self.known[run]


planned = functools.lru_cache(maxsize=1)(Planned)


def compare(text, prefix, ranks, programs):
    """A line per rank that differs, and the number of calls that are the same."""
    module = planned(text)
    lines, same, orders = [], 0, {}
    for rank in range(ranks):
        comparison = None
        try:
            recorded = Recorded(f"{prefix}.rank{rank}.jsonl", module.bytes["arena_bytes"])
            comparison = Comparison(module, rank, recorded)
            orders.setdefault(str(comparison.run(list(repeated(programs)))), []).append(rank)
        except (Difference, FileNotFoundError, json.JSONDecodeError) as difference:
            lines.append(f"rank {rank}: {difference}")
        same += comparison.compared if comparison else 0
    if len(orders) > 1:
        lines.append(f"ranks make communicators in other orders: {orders}")
    return lines, same


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    path, prefix, ranks = sys.argv[1:4]
    with open(path) as file:
        lines, same = compare(file.read(), prefix, int(ranks), sys.argv[4:])
    for line in lines:
        print(line)
    if lines:
        sys.exit(1)
    print(f"{same} calls of {ranks} ranks are those of exec")


if __name__ == "__main__":
    main()
