"""Forms of single calls of CUDA and its libraries, and the groups of ranks that
they name."""
import collections

from support import exec_text

# What the process has other names for: an event, the host's place of a range,
# memory of the device beside the arena, a communicator, and a collective, by its
# index in the artifact's table, which stands from bit 1 of a progress counter
# whose other bits are known. And a limit of a size.
Event = collections.namedtuple("Event", "name")
Host = collections.namedtuple("Host", "range")
Device = collections.namedtuple("Device", "what")
Channel = collections.namedtuple("Channel", "stream axes")
Progress = collections.namedtuple("Progress", "collective counter")
INDEX = (1 << 24) - 1 << 1
AtMost = collections.namedtuple("AtMost", "bound")
FLAGS = Device("data errors")

TYPES = {"f32": 0, "bf16": 1, "f64": 2, "i8": 3, "i32": 4, "i64": 5}
C_NAMES = {"f32": "float", "bf16": "BF16", "i64": "long"}
# Elements that are only moved, by their bytes.
MOVED = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long",
         16: "gpu::Vector<unsigned int, 4>"}
GATHER, SEND, RECEIVE, REDUCE, REDUCE_SCATTER, ALL_REDUCE = range(6)
SUM_TYPES = {"f32": 1, "i64": 2}  # 0: nothing is added
EXCHANGE_BYTES = 64 << 20  # what a reduction receives at once, about
LEAST_MESSAGE = 1 << 20  # to one rank of another node, of all tensors
SMALL_BYTES = 4096  # an all-reduce of no more sends whole tensors


def ceil_div(a, b):
    return -(-a // b)


#===------------------------------------------------------------------------===#
# Single calls
#===------------------------------------------------------------------------===#

def launch(stream, kernel, blocks, block, pointers, values=()):
    return {"call": "launch", "stream": stream, "kernel": kernel, "grid": [blocks, 1, 1],
            "block": [*block, 1], "pointers": list(pointers), "values": list(values)}


def elements(stream, kernel, count, pointers, values=(), each=4):
    """Threads with `each` elements, 256 in a block."""
    return launch(stream, kernel, ceil_div(count, 256 * each), (256, 1), pointers, values)


def vectors(row_elements, element, places):
    """Elements of 16 bytes, or one where rows or places are no multiples."""
    width = exec_text.ELEMENT_BYTES[element]
    whole = all(place % 16 == 0 for place in [row_elements * width, *places])
    return 16 // width if whole else 1


def rows(stream, kernel, count, pointers, values=()):
    return launch(stream, kernel, ceil_div(count, 16), (256, 1), pointers, values)


def fill(stream, place, size):
    return {"call": "fill", "stream": stream, "value": 0, "to": place, "bytes": size}


def copy(stream, source, target, size):
    return {"call": "copy", "stream": stream, "from": source, "to": target, "bytes": size}


def event(call, name, stream):
    return {"call": call, "event": Event(name), "stream": stream}


#===------------------------------------------------------------------------===#
# Groups of ranks
#===------------------------------------------------------------------------===#

def digits_of(module, axes):
    stride, strides = 1, {}
    for name, size in reversed(module.axes.items()):
        strides[name] = stride
        stride *= size
    return [(axis.size, strides[axis.name] * axis.inner) for axis in axes]


def ranks_of(module, axes, rank):
    digits = digits_of(module, axes)
    start = rank
    for size, stride in digits:
        start -= start // stride % size * stride
    ranks = [start]
    for size, stride in digits:
        ranks = [r + i * stride for r in ranks for i in range(size)]
    return ranks


def place_of(module, axes, rank):
    """A rank's among those that differ from it along the axes alone."""
    return ranks_of(module, axes, rank).index(rank)


def tree_of(module, axes):
    """(ranks, positions from one to the next) by axis, in the mesh's order."""
    found, positions = [], 1
    for size, stride in reversed(digits_of(module, axes)):
        if size > 1:
            found.append((stride, (size, positions)))
        positions *= size
    return [axis for _, axis in sorted(found, reverse=True)]
