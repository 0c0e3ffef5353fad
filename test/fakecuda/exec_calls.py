"""The calls of CUDA and its libraries that an exec program issues.

One table says what the runtime makes of each exec operation: a reduction over
ranks is an exchange and one kernel for all tensors, the gradient of an embedding a
sort, a fill and a kernel, and so on. It is written from what the operations mean
(docs/reference) and how the runtime splits its kernels, and shares no code with
either."""
import math
import re
import struct

from exec_call_forms import (
    C_NAMES, FLAGS, GATHER, MOVED, TYPES, AtMost, Host, Progress, ceil_div, copy, elements, fill,
    launch, place_of, ranks_of, rows, vectors)
from exec_reductions import fast_reduction, group, reduction
from support import exec_text


#===------------------------------------------------------------------------===#
# Arguments of kernels that are no pointers
#===------------------------------------------------------------------------===#

def short_name(kernel):
    """Without namespaces, and without a number after the types: for how much a
    kernel was compiled to have room."""
    name = kernel
    for word, other in (("fsdp::rt::device::", ""), ("fsdp::rt::", ""), ("> >", ">>")):
        name = name.replace(word, other)
    return re.sub(r", \d+>$", ">", name)


def _words(text):
    return lambda data, place: struct.unpack(text, data)


def _tensors(lists):
    """Optimizer.cu: of 48 tensors elements, first blocks, pointers and whether the last
    is to bf16."""
    def decode(data, place):
        count = struct.unpack_from("<i", data)[0]
        words = struct.unpack_from(f"<{48 + 49 + 48 * lists}Q", data, 8)
        pointers = [[place(a) for a in words[97 + 48 * l:][:count]] for l in range(lists)]
        narrow = list(data[8 * (1 + 48 + 49 + 48 * lists):][:count])
        return count, list(words[:count]), list(words[48:48 + count + 1]), pointers, narrow
    return decode


def _pieces(data, place):
    """Reduce.cu: the own position, the tree, and of 48 tensors places, elements and
    first blocks."""
    me, count = struct.unpack_from("<ii", data)
    axis = struct.unpack_from("<16i", data, 8)
    axes = struct.unpack_from("<i", data, 72)[0]
    items = [struct.unpack_from("<QQQqq", data, 80 + 40 * i) for i in range(count)]
    first = struct.unpack_from(f"<{count + 1}q", data, 80 + 40 * 48)
    return (me, [(axis[2 * i], axis[2 * i + 1]) for i in range(axes)],
            [(*map(place, item[:3]), *item[3:]) for item in items], list(first))


def _walk(data, place):
    """Layout.cu: elements, first ones of both sides, and by dimension sizes and
    strides of both."""
    rank = struct.unpack_from("<i", data)[0]
    words = struct.unpack("<27q", data[8:])
    return (*words[:3], *(list(words[3 + 8 * i:][:rank]) for i in range(3)))


def _pointers(data, place):
    return [place(a) for a in struct.unpack(f"<{len(data) // 8}Q", data)]


_COUNT, _REAL, _FLAG = _words("<q"), _words("<f"), _words("<?")
_ATTENTION = [_words("<6qf?3xqf4x"), _pointers]
_VALUES = {
    "copyElements": [_walk],
    "rotaryPairs": [_COUNT, _words("<3q?3xf")],
    "splitHeadPairs": [_COUNT, _words("<3q?3xf"), _COUNT],
    "joinHeadPairs": [_COUNT, _words("<3q?3xf"), _COUNT],
    "embeddingRows": [_COUNT] * 3 + [_FLAG],
    "shardRows": [_COUNT] * 2 + [_words("<3q")],
    "sortTokens": [_COUNT] * 2 + [_words("<i"), _FLAG],
    "embeddingGradRows": [_COUNT] * 3,
    "crossEntropyRows": [_COUNT] * 3,
    "crossEntropyGradRows": [_COUNT] * 3,
    "labelsOfBlock": [_COUNT] * 2,
    "narrowElements": [_tensors(2)],
    "addElements": [_tensors(2)],
    "absMaxBits": [_tensors(1), _COUNT],
    "squareDigits": [_tensors(1), _COUNT],
    "finishNorm": [_REAL, _COUNT],
    "adamwStep": [_tensors(4), _COUNT, _words("<4d")],
    "adamwCopyStep": [_tensors(5), _COUNT, _words("<4d")],
    "reduceRanks": [_pieces],
    "addRanks": [_pieces],
    "referenceAttention": _ATTENTION,
    "referenceQueryGrad": _ATTENTION,
    "referenceKeyGrad": _ATTENTION,
}


def decoded(kernel, values, place):
    decoders = _VALUES.get(kernel.split("<")[0], [])
    if len(decoders) != len(values):
        return values
    return [decode(bytes.fromhex(value), place) for decode, value in zip(decoders, values)]


def rounded(number):
    """As an f32."""
    return struct.unpack("<f", struct.pack("<f", number))[0]


#===------------------------------------------------------------------------===#
# Operations
#===------------------------------------------------------------------------===#

class Operation:
    """One exec operation with the places and types of its operands."""

    def __init__(self, module, issued, kinds, rank):
        op = issued.op
        self.module, self.rank, self.what = module, rank, op.what.strip()
        self.stream, self.rest = op.stream, op.rest
        # Of what reads several ranges as one, others follow all operands.
        self.ins = [place.begin for place in issued.reads[:len(op.ins)]]
        self.outs = [place.begin for place in issued.writes]
        self.scratch = [place.begin for place in issued.scratch]
        self.in_kinds = [kinds[name] for name in op.ins]
        self.out_kinds = [kinds[name] for name in op.outs]
        self.scratch_bytes = [exec_text.bytes_of(kinds[name]) for name in op.scratch]

    def has(self, flag):
        return re.search(rf"[{{ ]{flag}[,}}]", self.rest) is not None

    def value(self, name, default=None):
        found = re.search(rf"[{{ ]{name} = ([^,}}]*?)(?: : \w+)?[,}}]", self.rest)
        return found.group(1) if found else default

    def numbers(self, name):
        return [int(n) for n in
                re.search(rf"[{{ ]{name} = array<i64: (.*?)>", self.rest).group(1).split(",")]

    def axes(self):
        return exec_text.axes_of(self.module, self.rest)

    def space(self):
        return self.scratch[0] if self.scratch else None


def _vectors(row_count, column_count, body, by_rows):
    """How many neighbours a thread of a kernel takes at a time: 16 bytes of the
    narrowest, or None where sizes are odd."""
    access = re.search(r"access \[(.*?)\]", body[0]).group(1).split(", ")
    outputs = int(re.search(r"outputs (\d+)", body[0]).group(1))
    names, types = zip(*re.findall(r"(%\w+): memref<(?:\d+x)*(\w+)>", body[1]))
    text, is_map = "\n".join(body[2:]), "column_reduction" not in body[0]
    if any(re.search(rf"exec\.load {name}\b", text) for name in names[-outputs:]) \
            or any(kind != "element" and re.search(rf"(?m)^      exec\.store %\w+, {name}\b", text)
                   for kind, name in zip(access[-outputs:], names[-outputs:])):
        return None
    narrowest = min(exec_text.ELEMENT_BYTES[t] for t, kind in zip(types, access)
                    if kind in ("element", "column"))
    by_blocks = is_map and "exec.reduce_rows" in text
    count = 8 if by_blocks else min(max(16 // narrowest, 4), 8)
    is_flat = is_map and not by_rows and set(access) <= {"element", "scalar"} \
        and "exec.column" not in text and not re.search(r"exec\.load %\w+ at ", text)
    together = row_count * column_count if is_flat else column_count
    return count if together % count == 0 else None


def _launch(op):
    name = op.what.lstrip("@")
    row_count, column_count, body = op.module.kernels[name]
    pointers = [*op.ins, *op.outs]
    kernel = "k_" + name
    # Rows where a kernel reduces, or where it stores a number a row.
    is_columns = "column_reduction" in body[0]
    by_blocks = not is_columns and any("exec.reduce_rows" in line for line in body)
    by_rows = not is_columns and not by_blocks and (
        any(re.match(r"    (%\S+ = exec\.reduce|exec\.store) ", line) for line in body)
        or not any(line.startswith("    exec.map") for line in body))
    each = _vectors(row_count, column_count, body, by_rows)
    if by_rows:
        if each and column_count >= 128 * each:
            return [launch(op.stream, kernel, row_count, (256, 1), pointers)]
        return [rows(op.stream, kernel, row_count, pointers)]
    if by_blocks:
        threads = 32
        while threads < 256 and threads * (each or 1) < column_count:
            threads *= 2
        return [launch(op.stream, kernel, row_count // 32, (threads, 512 // threads), pointers)]
    if " in_order " in "".join(body):
        return [launch(op.stream, kernel, ceil_div(column_count, 32), (32, 16), pointers)]
    if not is_columns:
        return [elements(op.stream, kernel, row_count * column_count, pointers, each=each or 4)]
    if not each:
        return [launch(op.stream, kernel, ceil_div(column_count, 32), (32, 16), pointers)]
    groups = min(max(ceil_div(row_count, 32), 8), 128)
    return [launch(op.stream, kernel, ceil_div(column_count, 2 * each), (2, groups), pointers)]


def _gemm(op, adds=False):
    (lhs, lhs_type), (out, out_type) = (exec_text.shape(k) for k in
                                        (op.in_kinds[0], op.out_kinds[0]))
    batch = 1
    for size in out[:-2]:
        batch *= size
    transposed = [int(op.has("transpose_lhs")), int(op.has("transpose_rhs"))]
    bias = op.ins[2] if len(op.ins) > 2 and not adds else None
    return [{"call": "gemm", "stream": op.stream,
             "sizes": [batch, out[-2], out[-1], lhs[-2] if transposed[0] else lhs[-1]],
             "transposed": transposed, "types": [TYPES[lhs_type], TYPES[out_type]],
             "pointers": [*op.ins[:2], bias, op.outs[0], op.space()],
             "workspace_bytes": AtMost(sum(op.scratch_bytes)), "accumulate": int(adds)}]


def _attention_sizes(op):
    (q, element), (k, _) = (exec_text.shape(kind) for kind in op.in_kinds[:2])
    return [q[0], q[1], k[1], q[2], k[2], q[3]], element


def _attention(op):
    sizes, element = _attention_sizes(op)
    backward = len(op.outs) == 3
    scale, causal = float(op.value("scale")), op.has("causal")
    window, cap = int(op.value("window", 0)), float(op.value("cap", 0))
    window = window if window < sizes[2] else 0  # one of all keys is none
    q, k, v, *rest = op.ins
    starts = rest.pop() if len(op.ins) in (4, 7) else None
    if not op.has("plain"):
        pointers = [q, k, v, *rest, *op.outs, *[None] * (4 * (not backward)), op.space()]
        return [{"call": "attention_grad" if backward else "attention", "stream": op.stream,
                 "sizes": sizes, "scale": scale, "causal": int(causal), "window": window,
                 "type": TYPES[element], "pointers": pointers}]
    shape = (*sizes, rounded(scale), causal, window, rounded(cap))
    batch, q_len, kv_len, heads, kv_heads, _ = sizes
    if not backward:
        out, lse = op.outs
        values = [shape, [q, k, v, None, None, lse, None, out, None, None, starts]]
        return [rows(op.stream, f"referenceAttention<{C_NAMES[element]}>",
                     batch * q_len * heads, [], values)]
    out, lse, dout = rest
    values = [shape, [q, k, v, out, dout, lse, op.space(), *op.outs, starts]]
    return [rows(op.stream, f"referenceQueryGrad<{C_NAMES[element]}>",
                 batch * q_len * heads, [], values),
            rows(op.stream, f"referenceKeyGrad<{C_NAMES[element]}>",
                 batch * kv_len * kv_heads, [], values)]


def _rotary(op):
    (batch, sequence, heads, dim), element = exec_text.shape(op.in_kinds[0])
    count = batch * sequence * heads
    shape = (sequence, heads, dim, "pairs halves" in op.rest,
             -1.0 if op.has("inverse") else 1.0)
    pairs = vectors(dim // 2, element, [*op.ins, *op.outs])
    return [elements(op.stream, f"rotaryPairs<{C_NAMES[element]}>", count * (dim // 2 // pairs),
                     [*op.ins, *op.outs], [(count,), shape], each=1)]


def _heads(op):
    """Of split_heads and join_heads."""
    is_join = len(op.outs) == 1
    kinds = op.in_kinds if is_join else op.out_kinds
    (batch, sequence, heads, dim), element = exec_text.shape(kinds[0])
    kv_heads = exec_text.shape(kinds[1])[0][2]
    count = batch * sequence * (heads + 2 * kv_heads)
    shape = (sequence, heads, dim, "pairs halves" in op.rest, -1.0 if is_join else 1.0)
    buffers = [*op.ins, *op.outs]
    pairs = vectors(dim // 2, element, buffers)
    kernel = "joinHeadPairs" if is_join else "splitHeadPairs"
    return [elements(op.stream, f"{kernel}<{C_NAMES[element]}>", count * (dim // 2 // pairs),
                     buffers, [(count,), shape, (kv_heads,)], each=1)]


def _embedding(op):
    count = exec_text.elements(op.in_kinds[0])[0]
    (classes, cols), element = exec_text.shape(op.in_kinds[1])
    return [elements(op.stream, f"embeddingRows<{C_NAMES[element]}>", count * cols,
                     [*op.ins, *op.outs, FLAGS],
                     [(count,), (classes,), (cols,), (op.has("absent"),)],
                     each=vectors(cols, element, [op.ins[1], *op.outs]))]


def _rows_of_shard(op):
    """The table's rows are in the text after the axes."""
    count = exec_text.elements(op.in_kinds[0])[0]
    classes = int(re.search(r"\] of (\d+)", op.rest).group(1))
    members = ranks_of(op.module, op.axes(), op.rank)
    rows = ceil_div(classes, len(members))
    each = count // len(members) if op.has("by_rank") else count
    shard = (members.index(op.rank) * rows, rows, each)
    return [elements(op.stream, "shardRows", count, [*op.ins, *op.outs, FLAGS],
                     [(count,), (classes,), shard], each=1)]


def _embedding_grad(op):
    count = exec_text.elements(op.in_kinds[0])[0]
    (classes, cols), element = exec_text.shape(op.out_kinds[0])
    ids, order = op.ins[0], op.space()
    each = vectors(cols, element, [op.ins[1], *op.outs])
    digits = ceil_div(classes.bit_length(), 4)
    return [launch(op.stream, "sortTokens", 1, (512, 1), [ids, order, order + 4 * count, FLAGS],
                   [(count,), (classes,), (digits,), (op.has("absent"),)]),
            fill(op.stream, op.outs[0], exec_text.bytes_of(op.out_kinds[0])),
            launch(op.stream, f"embeddingGradRows<{C_NAMES[element]}>",
                   count * ceil_div(cols, 256 * each), (256, 1),
                   [ids, order, op.ins[1], *op.outs], [(count,), (classes,), (cols,)])]


def _cross_entropy(op):
    sizes, element = exec_text.shape(op.in_kinds[0])
    count = exec_text.elements(op.in_kinds[0])[0] // sizes[-1]
    kernel = "crossEntropyGradRows" if len(op.outs) == 1 else "crossEntropyRows"
    return [launch(op.stream, f"{kernel}<{C_NAMES[element]}>", count, (256, 1),
                   [*op.ins, *op.outs, FLAGS],
                   [(count,), (sizes[-1],), (int(op.value("ignore_index")),)])]


def _count_labels(op):
    parts = exec_text.elements(op.out_kinds[0])[0]
    each = exec_text.elements(op.in_kinds[0])[0] // parts
    ignored = int(op.value("ignore_index"))
    return [fill(op.stream, op.outs[0], 8 * parts)] + [
        elements(op.stream, "labelsOfBlock", each,
                 [op.ins[0] + 4 * each * part, op.outs[0] + 8 * part], [(each,), (ignored,)])
        for part in range(parts)]


def _copy(op):
    return [copy(op.stream, op.ins[0], op.outs[0], exec_text.bytes_of(op.in_kinds[0]))]


def _fill_zero(op):
    return [fill(op.stream, op.outs[0], exec_text.bytes_of(op.out_kinds[0]))]


def _shard_of(op):
    """A rank's rows, which are neighbours, and zeros where it lacks some."""
    whole, part = (exec_text.bytes_of(kind) for kind in (op.in_kinds[0], op.out_kinds[0]))
    begin = place_of(op.module, op.axes(), op.rank) * part
    count = min(max(whole - begin, 0), part)
    calls = [copy(op.stream, op.ins[0] + begin, op.outs[0], count)] if count > 0 else []
    if count < part:
        calls.append(fill(op.stream, op.outs[0] + count, part - count))
    return calls


def _strides(sizes):
    """Of elements row by row."""
    strides, stride = [], 1
    for size in reversed(sizes):
        strides.insert(0, stride)
        stride *= size
    return strides


def _move(op, sizes, first, strides):
    """A copy of `sizes` elements with first elements and strides of both sides;
    of 16 bytes each where everything is made of neighbours that fill them."""
    element = exec_text.shape(op.in_kinds[0])[1]
    width = exec_text.ELEMENT_BYTES[element]
    count = math.prod(sizes)
    outer = [stride for side in strides for stride in side[:-1]]
    together = 16 // width
    if sizes and all(side[-1] == 1 for side in strides) \
            and all(place % 16 == 0 for place in (*op.ins, *op.outs)) \
            and all(number % together == 0 for number in (sizes[-1], *first, *outer)):
        width, count = 16, count // together
        sizes = [*sizes[:-1], sizes[-1] // together]
        first = [number // together for number in first]
        strides = [[*(stride // together for stride in side[:-1]), 1] for side in strides]
    if count == 0:
        return []
    return [elements(op.stream, f"copyElements<{MOVED[width]}>", count, [*op.ins, *op.outs],
                     [(count, *first, sizes, *strides)])]


def _transpose(op):
    sizes, _ = exec_text.shape(op.in_kinds[0])
    order, strides = op.numbers("permutation"), _strides(sizes)
    made = [sizes[d] for d in order]
    return _move(op, made, [0, 0], [[strides[d] for d in order], _strides(made)])


def _copy_box(op):
    strides = [_strides(exec_text.shape(kind)[0]) for kind in (op.in_kinds[0], op.out_kinds[0])]
    first = [sum(map(int.__mul__, op.numbers(name), side))
             for name, side in zip(("in_offsets", "out_offsets"), strides)]
    return _move(op, op.numbers("shape"), first, strides)


#===------------------------------------------------------------------------===#
# Collectives
#===------------------------------------------------------------------------===#

def _collective(op):
    axes = op.axes()
    ranks = ranks_of(op.module, axes, op.rank)
    if op.what == "all_gather":
        return [group(op, axes, [
            (GATHER, 0, source, target, exec_text.bytes_of(kind), 0)
            for source, target, kind in zip(op.ins, op.outs, op.in_kinds)])]
    return (fast_reduction if op.has("fast") else reduction)(op, axes, ranks)


def with_progress(op, calls, run, program, number):
    """Progress counters around a collective say in which run of which program it
    is, which of that program's, which of the artifact's, and whether it is inside."""
    def kinds(all_kinds):
        return tuple((exec_text.bytes_of(kind), exec_text.shape(kind)[1]) for kind in all_kinds)

    collective = (op.what, op.axes(), kinds(op.in_kinds), kinds(op.out_kinds),
                  op.value("serves"), "reduce_kind max" in op.rest, op.has("fast"),
                  op.value("node_ranks"))

    def write(is_inside):
        counter = (run % 2 ** 8) << 56 | program << 48 | number + 1 << 25 | is_inside
        return {"call": "write", "stream": op.stream,
                "to": Host(("progress", op.stream, op.axes())),
                "value": Progress(collective, counter)}
    return [write(True), *calls, write(False)]


#===------------------------------------------------------------------------===#
# The optimizer
#===------------------------------------------------------------------------===#

def _tensor_launches(op, kernel, kinds, lists, pointers, values=(), most=None):
    """As many tensors a launch as its parameters have room for; `kinds` of the last list. Where
    `most` blocks are launched, they are told how many they are."""
    counts, calls = [exec_text.elements(kind)[0] for kind in kinds], []
    narrow = [int(exec_text.elements(kind)[1] == "bf16") for kind in kinds]
    for begin in range(0, len(counts), 48):
        part = counts[begin:begin + 48]
        first = [0]
        for count in part:
            first.append(first[-1] + ceil_div(count, 4096))
        tensors = (len(part), part, first, [l[begin:begin + 48] for l in lists],
                   narrow[begin:begin + 48])
        blocks = min(first[-1], most or first[-1])
        if blocks > 0:
            calls.append(launch(op.stream, kernel, blocks, (256, 1), pointers,
                                [tensors, *([(blocks,)] if most else []), *values]))
    return calls


def _narrow(op):
    return _tensor_launches(op, "narrowElements", op.in_kinds, [op.ins, op.outs], [])


def _accumulate(op):
    tensors = len(op.outs)
    return _tensor_launches(op, "addElements", op.in_kinds[tensors:],
                            [op.ins[:tensors], op.ins[tensors:]], [])


def _abs_max(op):
    return [fill(op.stream, op.outs[0], 4)] + _tensor_launches(
        op, "absMaxBits", op.in_kinds, [op.ins], op.outs, most=1024)


def _sum_squares(op):
    return [fill(op.stream, op.outs[0], 16)] + _tensor_launches(
        op, "squareDigits", op.in_kinds[1:], [op.ins[1:]], [op.ins[0], op.outs[0]], most=1024)


def _clip_coefficient(op):
    sums = exec_text.elements(op.in_kinds[1])[0] // 2
    return [launch(op.stream, "finishNorm", 1, (32, 1), [*op.ins, *op.outs],
                   [(rounded(float(op.value("max_norm"))),), (sums,)])]


def _adamw(op, kernel="adamwStep", state=3):
    """Parameters, moments and copies are state; gradients follow."""
    tensors = len(op.outs) // state
    lists = [op.ins[l * tensors:(l + 1) * tensors] for l in range(state + 1)]
    numbers = tuple(float(op.value(n)) for n in ("beta1", "beta2", "eps", "weight_decay"))
    return _tensor_launches(op, kernel, op.in_kinds[state * tensors:(state + 1) * tensors],
                            lists, op.ins[(state + 1) * tensors:], [numbers], most=1024)


ISSUES = {
    "launch": _launch,
    "gemm": _gemm,
    "gemm_add": lambda op: _gemm(op, adds=True),
    "attention": _attention,
    "attention_grad": _attention,
    "rotary": _rotary, "split_heads": _heads, "join_heads": _heads,
    "embedding": _embedding,
    "embedding_grad": _embedding_grad,
    "cross_entropy": _cross_entropy,
    "cross_entropy_grad": _cross_entropy,
    "count_labels": _count_labels,
    "copy": _copy,
    "fill_zero": _fill_zero,
    "shard_of": _shard_of,
    "rows_of_shard": _rows_of_shard,
    "transpose": _transpose,
    "copy_box": _copy_box,
    "collective": _collective,
    "narrow": _narrow,
    "accumulate": _accumulate,
    "abs_max": _abs_max,
    "sum_squares": _sum_squares,
    "clip_coefficient": _clip_coefficient,
    "adamw": _adamw,
    "adamw_copy": lambda op: _adamw(op, "adamwCopyStep", state=4),
}
