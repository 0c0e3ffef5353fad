"""Runs sums in two levels on the stand-in device, and in one level on the CPU;
compares bytes and calls, and counts what travels between nodes. With
FSDP_FAKECUDA_ROUNDS=1 also sums of tensors that are too large for one round.

usage: levels.py WORKDIR DEVICE"""
import json
import os
import sys

import compare_trace
import faults
from support import commands
from support.commands import expect

HERE = os.path.dirname(os.path.abspath(__file__))
SMALL, LARGE = 20011, 23500003
# Nodes, ranks in each, elements of the largest tensor, rounds.
CASES = [(2, 2, SMALL, 1), (3, 2, SMALL, 1), (2, 4, SMALL, 1), (4, 2, SMALL, 1)]
if os.environ.get("FSDP_FAKECUDA_ROUNDS"):
    CASES.append((2, 2, LARGE, 2))
MAKE = "exec-batch-casts,exec-plan-memory,exec-synchronize,exec-verify"
SEND = 1


def group(number):
    """The group of that number behind the first kernel: two for each of the two
    scattered sums, then those of the gathered one and its results."""
    def fits(calls, i):
        return number == sum(c["call"] == "group" for c in calls.all[calls.first:i])
    return fits


def added(types, number=0):
    """The kernel of that number which adds ranks of these types."""
    def is_one(call):
        return call["call"] == "launch" and "addRanks" in call["kernel"] \
            and types in call["kernel"]

    def fits(calls, i):
        return is_one(calls.all[i]) and number == sum(map(is_one, calls.all[:i]))
    return fits


INSIDE, BETWEEN, BACK, BACK_INSIDE = 0, 1, 6, 7
# (kind, rank or None for all, which call)
FAULTS = [
    ("drop-group", 1, group(INSIDE)),
    ("drop-group", None, group(BETWEEN)),
    ("drop-group", None, group(BACK_INSIDE)),
    ("double-group", 0, group(BETWEEN)),
    ("swap-collectives", 1, group(INSIDE)),
    ("swap-collectives", 0, group(BACK)),
    ("swap-group", 1, group(BACK_INSIDE)),
    ("short-transfer", None, group(BETWEEN)),
    ("wrong-offset-group", 0, group(BETWEEN)),
    ("wrong-peer", 0, group(BETWEEN)),
    ("wrong-stream-group", None, group(BETWEEN)),
    ("drop-launch", None, added("BF16")),
    ("drop-launch", 1, added("float, float")),
    ("double-launch", 1, added("BF16")),
    ("swap-launches", 0, added("BF16")),
    ("wrong-grid", 1, added("BF16")),
    ("wrong-value", 1, added("BF16")),
    ("wrong-value", 0, added("float, float")),
    ("wrong-grid", None, added("float, float")),
]


class Case:
    def __init__(self, work, device, nodes, local, rows):
        self.work, self.device = work, device
        self.nodes, self.local, self.rows = nodes, local, rows
        self.ranks = nodes * local

    def compile(self, name, target, node_size):
        """The artifact and its exec program."""
        with open(f"{HERE}/Inputs/levels.mlir") as file:
            text = file.read()
        for word, value in (
                ("RANKS", self.ranks), ("WSHARD", -(-self.rows // self.ranks)),
                ("VSHARD", -(-9001 // self.ranks)), ("USHARD", -(-100 // self.ranks)),
                ("ROWS", self.rows), ("NODE", node_size)):
            text = text.replace(word, str(value))
        source, planned = f"{self.work}/source.mlir", f"{self.work}/{name}.mlir"
        with open(source, "w") as file:
            file.write(text)
        commands.run("fsdp-opt", source, "-o", planned,
                     f"--pass-pipeline=builtin.module(exec-lower{{target={target}}},{MAKE})")
        commands.run("fsdp-compile", planned, "--threads", "1", f"--target={target}",
                     "-o", f"{self.work}/{name}")
        with open(planned) as file:
            planned = file.read()
        expect(planned.count("node_ranks") == (3 if node_size > 1 else 0), planned)
        return planned

    def run(self, name, *device):
        commands.run(*device, "fsdp-run", f"{self.work}/{name}", "-n", str(self.ranks),
                     "--program", "sums", "--dump", f"{self.work}/dump-{name}")
        return self.dumps(name)

    def dumps(self, name):
        dumps = []
        for rank in range(self.ranks):
            with open(f"{self.work}/dump-{name}.rank{rank}", "rb") as file:
                dumps.append(file.read())
        return dumps

    def trace(self, name, planned):
        """Runs it on the device; its bytes and every rank's groups of transfers."""
        os.environ["FSDP_FAKECUDA_TRACE"] = f"{self.work}/trace-{name}"
        dumps = self.run(name, self.device)
        lines, _ = compare_trace.compare(planned, f"{self.work}/trace-{name}", self.ranks,
                                         ["sums"])
        expect(not lines, "\n".join(lines[:20]))
        groups = []
        for rank in range(self.ranks):
            with open(f"{self.work}/trace-{name}.rank{rank}.jsonl") as calls:
                groups.append([call for call in map(json.loads, calls)
                               if call["call"] == "group"])
        return dumps, groups

    def found(self, fault, planned, good):
        """How a planted fault shows, or nothing."""
        os.environ["FSDP_FAKECUDA_TRACE"] = f"{self.work}/trace-fault"
        os.environ["FSDP_FAKECUDA_FAULT"] = fault
        status, said, errors = commands.finished(
            [self.device, "fsdp-run", f"{self.work}/cuda", "-n", str(self.ranks), "--program",
             "sums", "--dump", f"{self.work}/dump-fault"])
        del os.environ["FSDP_FAKECUDA_FAULT"]
        expect("was not planted" not in said + errors, f"{fault}: {said}{errors}")
        lines, _ = compare_trace.compare(planned, f"{self.work}/trace-fault", self.ranks,
                                         ["sums"])
        lines = [line for line in lines if status == 0 or "issued nothing" not in line]
        ways = ["exec"] * bool(lines) + ["error"] * (status != 0)
        return ways + ["bytes"] * (status == 0 and self.dumps("fault") != good)

    def between(self, groups):
        """Bytes that ranks send to other nodes, but for the tensor that is sent
        whole."""
        sent = 0
        for rank, mine in enumerate(groups):
            for call in mine:
                sent += sum(size for kind, peer, size in
                            zip(call["kinds"], call["peers"], call["bytes"])
                            if kind == SEND and peer // self.local != rank // self.local)
        return sent - self.ranks * (self.ranks - self.local) * 400

    def elements(self):
        """What all ranks send to other nodes in one level of a sum of the large
        tensor and of the other one."""
        others = self.ranks - self.local
        return others * self.rows, others * 9001


def plant(case, planned, good):
    """Says how many of the faults are found."""
    calls = faults.Calls(f"{case.work}/trace-cuda.rank0.jsonl")
    lost = 0
    for kind, rank, fits in FAULTS:
        fault = f"{kind}:{calls.find(kind, fits)}" + ("" if rank is None else f"@{rank}")
        ways = case.found(fault, planned, good)
        print(f"{fault:24} {' '.join(ways) or 'NOT FOUND'}")
        lost += not ways
    print(f"{len(FAULTS) - lost} of {len(FAULTS)} faults are found")


def main():
    work, device = sys.argv[1:]
    for nodes, local, rows, rounds in CASES:
        case = Case(work, device, nodes, local, rows)
        case.compile("flat", "cpu", 0)
        flat = case.run("flat")
        planned = case.compile("cuda", "cuda", local)
        dumps, groups = case.trace("cuda", planned)
        expect(dumps == flat, f"{nodes} x {local}: other bytes on the device")
        large, other = case.elements()
        travelled = case.between(groups)
        # Everything in f32: sums of both tensors, twice, and results of one.
        expect(travelled * local == 4 * (3 * large + 2 * other),
               f"{travelled} bytes between nodes, {large} and {other} elements")
        # Gathers, rounds of two levels, of one tensor in one round, results.
        wanted = 3 + 2 * rounds + 2 + 2 * rounds + 2
        found = {len(mine) for mine in groups}
        expect(found == {wanted}, f"{found} groups, not {wanted}")
        if rows == SMALL and nodes == local:
            dumps, groups = case.trace("one", case.compile("one", "cuda", 0))
            expect(dumps == flat, "other bytes in one level")
            # Sums of both travel in bf16 once.
            sent = case.between(groups)
            expect(sent == 4 * (3 * large + 2 * other) - 2 * (large + other),
                   f"{sent} bytes between nodes in one level")
        print(f"{nodes} nodes of {local}: equal bytes, calls of exec, {rounds} "
              f"round{'s' if rounds > 1 else ''}; between nodes 1/{local} of the elements")
        if rows == SMALL and nodes == local:
            plant(case, planned, flat)


main()
