"""Inputs, and damage to files."""
import ctypes
import json
import os


def read(path):
    with open(path) as file:
        return file.read()


def write(path, content):
    """Writes text or bytes; gives the path."""
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return path


def change_json(path, change):
    """Writes a file's value again after `change(value)`."""
    value = json.loads(read(path))
    change(value)
    write(path, json.dumps(value))


def shorten(path, count):
    """Cuts bytes off a file's end."""
    os.truncate(path, os.path.getsize(path) - count)


def same_bytes(a, b):
    with open(a, "rb") as one, open(b, "rb") as other:
        return one.read() == other.read()


def write_checksum(folder):
    """The checksum of an artifact's library, as fsdp-compile writes it."""
    with open(f"{folder}/step.so", "rb") as file:
        library = file.read()
    xxh3 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    xxh3.restype = ctypes.c_uint64
    xxh3.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    write(f"{folder}/step.so.xxh3", f"xxh3 {xxh3(library, len(library)):016x} of "
                                    f"{len(library)} bytes\n")
