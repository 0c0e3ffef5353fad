"""Helpers of the end-to-end tests: run the tools, watch processes, read and
write safetensors.

Only Python's standard library, as the tests run where nothing else is."""
import array
import contextlib
import ctypes
import itertools
import json
import math
import os
import struct
import subprocess
import sys
import time

# Ranks by MPI, which a program and its arguments follow.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to",
          "none", "-n"]
SECONDS = 300  # what has not happened after these never will


def run(*command):
    """Runs a tool; on failure prints what it said and stops the test."""
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print("$ " + " ".join(command))
        print(done.stdout)
        sys.exit(f"{command[0]} ended with {done.returncode}")
    return done.stdout


def process_fields(pid):
    """Fields of a process from its state on, or nothing if it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()
    except OSError:
        return []


def is_alive(pid):
    """Whether a process runs; one that waits to be reaped does not."""
    fields = process_fields(pid)
    return bool(fields) and fields[0] not in "ZX"


def children(pid):
    """Processes that `pid` started."""
    return [int(name) for name in filter(str.isdigit, os.listdir("/proc"))
            if process_fields(name)[1:2] == [str(pid)]]


def listeners(*pids):
    """Addresses at which processes listen, as /proc/net/tcp has them."""
    listens = "0A"
    sockets = {}
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/net/{table}") as file:
            for fields in map(str.split, file):
                if fields[3] == listens:
                    sockets[f"socket:[{fields[9]}]"] = fields[1]
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for number in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    found.add(sockets.get(os.readlink(f"/proc/{pid}/fd/{number}")))
    return found - {None}


def expect(condition, what):
    """The test fails unless `condition` holds."""
    if not condition:
        sys.exit(what)


def wait_until(condition, what):
    """Returns when `condition` holds; the test fails if it never does."""
    end = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"{what}: not within {SECONDS} s")
        time.sleep(0.05)


def write_checksum(folder):
    """The checksum of an artifact's library, as fsdp-compile writes it."""
    with open(f"{folder}/step.so", "rb") as file:
        library = file.read()
    xxh3 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    xxh3.restype = ctypes.c_uint64
    xxh3.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    with open(f"{folder}/step.so.xxh3", "w") as file:
        file.write(f"xxh3 {xxh3(library, len(library)):016x} of "
                   f"{len(library)} bytes\n")


def write_int32(path, tensors):
    """Writes {name: (shape, values)} of i32 as safetensors."""
    write_safetensors(path, {name: ("I32", shape,
                                    array.array("i", values).tobytes())
                             for name, (shape, values) in tensors.items()})


def write_safetensors(path, tensors):
    """Writes {name: (type, shape, bytes)}."""
    header, data = {}, b""
    for name, (dtype, shape, raw) in sorted(tensors.items()):
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    """{name: (shape, bytes)}."""
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length])
    data = content[8 + length:]
    return {name: (entry["shape"], data[slice(*entry["data_offsets"])])
            for name, entry in header.items() if name != "__metadata__"}


def floats(raw):
    values = array.array("f")
    values.frombytes(raw)
    return values


def full_tensor(shards, name, shape):
    """Joins the shards of all ranks along dimension 0 and cuts the padding."""
    values = array.array("f")
    for shard in shards:
        values.extend(floats(shard[name][1]))
    count = 1
    for size in shape:
        count *= size
    return values[:count]


def coordinate(axes, parts, rank):
    """(how many, which one) a rank has along axes of the mesh or parts of them."""
    count, index = 1, 0
    for part in parts:
        if isinstance(part, str):
            part = {"axis": part, "pre": 1, "size": None}
        stride = 1
        for axis in reversed(axes):
            if axis["name"] == part["axis"]:
                size = part["size"] or axis["size"]
                inner = stride * (axis["size"] // (part["pre"] * size))
                index = index * size + rank // inner % size
                count *= size
            stride *= axis["size"]
    return count, index


def whole(manifest, dumps, name):
    """The full tensor; ranks that have the same agree."""
    (entry,) = [r for r in manifest["ranges"] if r["name"] == name]
    full, axes = entry["full"], manifest["mesh"]["axes"]
    if not entry["placement"]:
        return list(floats(dumps[0][name][1]))
    values = [None] * math.prod(full)
    for rank, dump in enumerate(dumps):
        held, local = floats(dump[name][1]), entry["shape"]
        boxes = []
        for size, stored, dim in zip(full, local, entry["placement"]["dims"]):
            computed, first = coordinate(axes, dim["compute"], rank)
            _, second = coordinate(axes, dim["storage"], rank)
            part = size // computed
            boxes.append([(i, first * part + second * stored + i)
                          for i in range(stored) if second * stored + i < part])
        for box in itertools.product(*boxes):
            at = there = 0
            for (i, j), stored, size in zip(box, local, full):
                at, there = at * stored + i, there * size + j
            if values[there] not in (None, held[at]):
                sys.exit(f"{name}: rank {rank} differs from another replica")
            values[there] = held[at]
    return values


def distance(actual, expected):
    square = sum((a - e) ** 2 for a, e in zip(actual, expected, strict=True))
    return math.sqrt(square / sum(e ** 2 for e in expected))


def metric_runs(folder):
    """All runs in a folder: [(what the header says, [a step's values, ...])]."""
    runs = []
    with open(os.path.join(folder, "metrics.jsonl")) as file:
        for line in map(json.loads, file):
            if "run" in line:
                runs.append((line["run"], []))
            else:
                runs[-1][1].append(line)
    return runs


def metrics(folder):
    """The steps of the last run in a folder."""
    return metric_runs(folder)[-1][1]
