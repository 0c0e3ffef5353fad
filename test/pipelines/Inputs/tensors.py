"""Writes or prints small safetensors files.

    tensors.py write FILE NAME=SHAPE:VALUES...    f64; SHAPE 2x3, or empty
    tensors.py print FILE                         one line per tensor, by name
"""
import json
import math
import struct
import sys


def write(path, assignments):
    header, data = {}, b""
    for assignment in assignments:
        name, _, text = assignment.partition("=")
        shape, _, values = text.partition(":")
        numbers = [float(value) for value in values.split(",")]
        sizes = [int(size) for size in shape.split("x") if size]
        assert math.prod(sizes) == len(numbers), assignment
        begin = len(data)
        data += struct.pack(f"<{len(numbers)}d", *numbers)
        header[name] = {"dtype": "F64", "shape": sizes, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def show(path):
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    for name, entry in sorted(header.items()):
        begin, end = entry["data_offsets"]
        numbers = struct.unpack(f"<{(end - begin) // 8}d", data[begin:end])
        print(name, entry["dtype"], entry["shape"], *numbers)


if sys.argv[1] == "write":
    write(sys.argv[2], sys.argv[3:])
else:
    show(sys.argv[2])
