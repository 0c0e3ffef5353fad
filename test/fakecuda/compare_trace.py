"""Whether the calls that ranks issued are those of their exec programs.

    compare_trace.py STEP.mlir TRACE RANKS PROGRAM...

STEP.mlir is what `fsdp-compile --target=cuda --emit=mlir` prints, TRACE the
prefix of FSDP_FAKECUDA_TRACE, and the programs are those that a run goes
through, `NAME*3` for three times. Every call on the artifact's streams is
accounted for: its operations, streams, events, grids, places in the arena,
sizes, and the communicators' ranks. What an exec operation issues is said once,
in exec_calls.py. A difference is one line."""
import collections
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))

import exec_calls
import exec_text


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
                      if "stream" in c and c["stream"] not in others
                      and c["call"] != "create_stream"]

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
        call = dict(call, stream=self.roles.get(call["stream"], call["stream"]))
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
                                           ("kinds", "peers", "from", "to", "bytes"))))
        return call


#===------------------------------------------------------------------------===#
# The comparison
#===------------------------------------------------------------------------===#

def shown(call, fields):
    return " ".join([call["call"], *(f"{name}={call[name]}" for name in fields
                                     if name in call and name != "call")])


class Comparison:
    def __init__(self, module, rank, recorded):
        self.module, self.rank, self.recorded = module, rank, recorded
        self.names = collections.defaultdict(Names)
        self.at, self.compared = 0, 0

    def _next(self, offset=0):
        at = self.at + offset
        return self.recorded.calls[at] if at < len(self.recorded.calls) else {"call": "nothing"}

    def _agree(self, expected, given):
        """Whether an issued value is the one that a program means."""
        if isinstance(expected, exec_calls.AtMost):
            return given <= expected.bound
        if isinstance(expected, (exec_calls.Event, exec_calls.Channel)):
            return self.names[type(expected)].agree(expected, given)
        if isinstance(expected, (exec_calls.Host, exec_calls.Device)):
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

    def _prepare(self):
        """What makes a context: the arena and the flags are zero."""
        size = self.module.bytes["arena_bytes"]
        for expected in (
                {"call": "fill", "stream": "compute", "value": 0, "to": 0, "bytes": size},
                {"call": "fill", "stream": "compute", "value": 0, "to": exec_calls.FLAGS,
                 "bytes": 4},
                {"call": "synchronize", "stream": "compute"}):
            self._take("preparation", expected)

    def _take_transfers(self):
        """Pieces that the host writes or reads between programs."""
        while self._next()["call"] == "copy" and self._next(1)["call"] == "synchronize":
            ends = [self._next()["from"], self._next()["to"]]
            piece = [end for end in ends if isinstance(end, tuple) and end[0] == "host"]
            if len(piece) != 1 or not any(isinstance(end, int) for end in ends):
                raise Difference(f"a copy between programs: {shown(*[self._next()] * 2)}")
            for expected in ({"call": "copy", "stream": "compute"},
                             {"call": "synchronize", "stream": "compute"}):
                self._take("a copy between programs", expected)

    def _check_channels(self):
        """Returns the order in which each communicator was split off."""
        arena = self.recorded.arena
        order = []
        for channel, comm in self.names[exec_calls.Channel].ours.items():
            ranks = exec_calls.ranks_of(self.module, channel.axes, self.rank)
            splits = [s for s in self.recorded.splits if s["comm"] == comm]
            if len(splits) != 1 or splits[0]["color"] != ranks[0] \
                    or splits[0]["key"] != ranks.index(self.rank):
                raise Difference(f"{channel}: its communicator is that of other ranks")
            if (comm, arena["address"], arena["bytes"]) not in self.recorded.registered:
                raise Difference(f"{channel}: the arena is not registered")
            order.append((channel, self.recorded.splits.index(splits[0])))
        return sorted(order)

    def run(self, programs):
        self._prepare()
        for number, name in enumerate(programs):
            self._take_transfers()
            program = self.module.blocks[name]
            for what, expected in exec_calls.calls_of(self.module, program, self.rank):
                self._take(f"{name}, run {number}, {what}", expected)
        self._take_transfers()
        if self._next()["call"] != "nothing":
            raise Difference(f"behind all programs: {shown(*[self._next()] * 2)}")
        return self._check_channels()


def repeated(programs):
    for entry in programs:
        name, _, times = entry.partition("*")
        yield from [name] * int(times or 1)


def compare(text, prefix, ranks, programs):
    """A line per rank that differs, and the number of calls that are the same."""
    module = exec_text.Module(text)
    if module.target != "cuda":
        raise ValueError("the module is not planned for the target cuda")
    # Sizes of workspaces are those of CUDA; exec_order knows a test's.
    module.target = None
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
