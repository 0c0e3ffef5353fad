"""Safetensors, and full tensors from the parts that ranks have."""
import array
import itertools
import json
import math
import struct
import sys


def write_int32(path, tensors):
    """Writes {name: (shape, values)} of i32 as safetensors."""
    write_safetensors(path, {name: ("I32", shape,
                                    array.array("i", values).tobytes())
                             for name, (shape, values) in tensors.items()})


def write_rows(path, rows, targets=None):
    """Writes a batch of rows with one token more than a sequence has; `targets`
    are the rows after their first token unless they are given."""
    shape = [len(rows), len(rows[0]) - 1]
    targets = targets or [row[1:] for row in rows]
    write_int32(path, {"tokens": (shape, [t for row in rows for t in row[:-1]]),
                       "targets": (shape, [t for row in targets for t in row])})


def write_rows_of_ranks(path, rows, ranks):
    """A file with an equal part of the batch for each rank."""
    each = len(rows) // ranks
    for rank in range(ranks):
        write_rows(f"{path}.rank{rank}.safetensors", rows[rank * each:(rank + 1) * each])


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
        file.write(encoded(text, data))


def encoded(header, data=b"", length=None):
    """A file of that header, a value or its text, perhaps with a wrong length."""
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def read_header(path):
    """(header, data) of a file."""
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8:8 + length]), content[8 + length:]


def read_safetensors(path):
    """{name: (shape, bytes)}."""
    header, data = read_header(path)
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
    return values[:math.prod(shape)]


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
