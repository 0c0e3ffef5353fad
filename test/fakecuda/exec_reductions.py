"""The calls of a reduction over ranks: rounds of an exchange and a kernel for
all tensors. Where the operation has node_ranks a round has both twice, inside the
node and between nodes; which rank is on which node follows from the numbers of
ranks alone."""
import collections

from exec_call_forms import (
    ALL_REDUCE, C_NAMES, EXCHANGE_BYTES, LEAST_MESSAGE, RECEIVE, REDUCE, REDUCE_SCATTER, SEND,
    SMALL_BYTES, SUM_TYPES, Channel, ceil_div, digits_of, fill, launch, tree_of)
from support import exec_text

ITEMS = 48  # tensors of one launch


class Item:
    """One tensor of a reduction, split into a part for every rank."""

    def __init__(self, kind, in_kind, out_kind, ranks):
        sizes, element = exec_text.shape(in_kind)
        self.full = exec_text.elements(in_kind)[0]
        self.width = exec_text.ELEMENT_BYTES[element]
        self.is_small = kind == "all_reduce" and self.full * self.width <= SMALL_BYTES
        self.out_width = exec_text.ELEMENT_BYTES[exec_text.shape(out_kind)[1]]
        self.shard = exec_text.elements(out_kind)[0]
        self.piece = self.shard if kind == "reduce_scatter" else \
            self.full if self.is_small else ceil_div(self.full, ranks)

    def cut(self, rounds):
        """Elements of every piece that are exchanged at a time."""
        even = ceil_div(self.piece, max(rounds, 1))
        self.slice = min(self.piece, max(4096, ceil_div(even, 64) * 64))

    def part(self, index, turn=None):
        """First element and count, of all or of what goes in a round."""
        begin, count = 0, self.full
        if not self.is_small:
            begin = min(index * self.piece, self.full)
            count = max(0, min(self.piece, self.full - index * self.piece))
        if turn is None:
            return begin, count
        skipped = min(turn * self.slice, count)
        return begin + skipped, min(self.slice, count - skipped)


#===------------------------------------------------------------------------===#
# Nodes
#===------------------------------------------------------------------------===#

class Levels:
    """The nodes of a group: positions of its ranks by node and place, the own
    ones, and the trees over places and over nodes."""

    def __init__(self, op, axes, ranks):
        size = op.module.node_size
        nodes = collections.defaultdict(list)
        for rank in sorted(ranks):
            nodes[rank // size].append(ranks.index(rank))
        self.positions = list(nodes.values())
        self.places = int(op.value("node_ranks"))
        if {len(node) for node in self.positions} != {self.places}:
            raise ValueError(f"nodes of {self.positions}, and node_ranks {self.places}")
        me = ranks.index(op.rank)
        self.node = next(i for i, node in enumerate(self.positions) if me in node)
        self.place = self.positions[self.node].index(me)
        self.mates = self.positions[self.node]
        self.peers = [node[self.place] for node in self.positions]
        inside, between = [], []
        for ranks_along, stride in sorted(digits_of(op.module, axes), key=lambda d: -d[1]):
            here = min(ranks_along, max(size // stride, 1))
            inside.append(here)
            between.append(ranks_along // here)
        self.inside, self.between = _compact(inside), _compact(between)

    def bytes(self, item, count):
        """Partial sums, and what arrives beside them, for so many elements of a
        piece."""
        nodes = len(self.positions)
        inside, between = (self.places - 1) * nodes * item.width, (nodes - 1) * 4
        return 4 * nodes * count, max(inside, between) * count


def _compact(sizes):
    tree, stride = [], 1
    for size in reversed(sizes):
        if size > 1:
            tree.insert(0, (size, stride))
        stride *= size
    return tree


#===------------------------------------------------------------------------===#
# Exchanges
#===------------------------------------------------------------------------===#

def group(op, axes, transfers):
    return {"call": "group", "stream": op.stream, "comm": Channel(op.stream, axes),
            "transfers": transfers}


def _exchange(op, axes, swaps):
    """swaps: (peer's position, from, bytes, to, bytes)."""
    transfers = []
    for peer, source, sent, target, received in swaps:
        if sent > 0:
            transfers.append((SEND, peer, source, None, sent, 0))
        if received > 0:
            transfers.append((RECEIVE, peer, None, target, received, 0))
    return group(op, axes, transfers)


def _kernel(op, tree, source):
    """Its name, and the elements of a thread."""
    combine = "Max" if "reduce_kind max" in op.rest else "Add"
    target = exec_text.shape(op.out_kinds[0])[1]
    types = f"{C_NAMES[target]}, {C_NAMES[source]}"
    # Sums of gradients over powers of two ranks that are neighbours.
    ranks, are_halves = 1, combine == "Add" and target == "f32"
    for size, stride in reversed(tree):
        are_halves &= size & (size - 1) == 0 and stride == ranks
        ranks *= size
    kernel = f"addRanks<{types}>" if are_halves and ranks in (2, 4, 8, 16) else \
        f"reduceRanks<{combine}, {types}>"
    return kernel, 16 // exec_text.ELEMENT_BYTES[source]


def _added(item, own, others, count, to):
    """A tensor of a launch, if it has elements."""
    return [(own, others, to, item.slice, count)] if count else []


def _launches(op, tree, source, me, tensors):
    """The kernels that add them: 48 tensors fit into one."""
    kernel, each = _kernel(op, tree, source)
    for begin in range(0, len(tensors), ITEMS):
        some = tensors[begin:begin + ITEMS]
        first = [0]
        for *_, count in some:
            first.append(first[-1] + ceil_div(count, 256 * each))
        yield launch(op.stream, kernel, first[-1], (256, 1), [], [(me, tree, some, first)])


#===------------------------------------------------------------------------===#
# Rounds
#===------------------------------------------------------------------------===#

def _rounds(items, others, levels):
    """How many there are, if everything is cut evenly."""
    beside = sum(sum(levels.bytes(item, item.piece)) if levels and not item.is_small
                 else others * item.piece * item.width for item in items)
    rounds = ceil_div(beside, EXCHANGE_BYTES)
    if levels:
        least = sum(levels.bytes(items[0], LEAST_MESSAGE // 4))
        rounds = min(rounds, max(beside // least, 1))
    return rounds


def reduction(op, axes, ranks):
    me, others = ranks.index(op.rank), [p for p in range(len(ranks)) if ranks[p] != op.rank]
    levels = Levels(op, axes, ranks) if op.value("node_ranks") else None
    items = [Item(op.what, *kinds, len(ranks)) for kinds in zip(op.in_kinds, op.out_kinds)]
    rounds = _rounds(items, len(others), levels)
    for item in items:
        item.cut(rounds)
    tensors = list(zip(items, op.ins, op.outs, op.scratch or [None] * len(items)))
    calls = []
    for turn in range(max(1, *(ceil_div(item.piece, item.slice) for item in items))):
        calls += _round(op, axes, tensors, turn, me, others, levels)
    if op.what == "reduce_scatter":
        for item, _, target, _ in tensors:
            calls += _padding(op, item, target, item.part(me)[1])
        return calls
    return calls + _results(op, axes, tensors, me, others, levels)


def _round(op, axes, tensors, turn, me, others, levels):
    """A slice of every part is exchanged and reduced."""
    if not others:
        return _sums(op, axes, tensors, turn, me, others, None)
    swaps = []
    for item, source, _, space in tensors:
        two = levels and not item.is_small
        swaps += _swaps_inside(item, source, space, turn, levels) if two else \
            _swaps(item, source, space, turn, me, others)
    calls = [_exchange(op, axes, swaps)]
    if levels:
        calls += _sums_inside(op, tensors, turn, levels)
        calls.append(_exchange(op, axes, _swaps_between(tensors, turn, me, levels)))
    return calls + _sums(op, axes, tensors, turn, me, others, levels)


def _swaps(item, source, space, turn, me, others):
    mine = item.part(me, turn)[1]
    for slot, peer in enumerate(others):
        begin, count = item.part(peer, turn)
        yield (peer, source + begin * item.width, count * item.width,
               space + slot * item.slice * item.width, mine * item.width)


def _swaps_inside(item, source, space, turn, levels):
    """Of the ranks at the own place of each node, what the own node has."""
    slot = 0
    to = space + levels.bytes(item, item.slice)[0]
    for node, mine in enumerate(levels.peers):
        for place, peer in enumerate(levels.mates):
            if place == levels.place:
                continue
            begin, count = item.part(levels.positions[node][place], turn)
            yield (peer, source + begin * item.width, count * item.width,
                   to + slot * item.slice * item.width, item.part(mine, turn)[1] * item.width)
            slot += 1


def _sums_inside(op, tensors, turn, levels):
    added = []
    for item, source, _, space in tensors:
        if item.is_small:
            continue
        arrived = space + levels.bytes(item, item.slice)[0]
        for node, position in enumerate(levels.peers):
            begin, count = item.part(position, turn)
            added += _added(
                item, source + begin * item.width,
                arrived + node * (levels.places - 1) * item.slice * item.width, count,
                space + node * item.slice * 4)
    return [*_launches(op, levels.inside, exec_text.shape(op.in_kinds[0])[1], levels.place, added)]


def _swaps_between(tensors, turn, me, levels):
    """Partial sums: every node's of the own part."""
    for item, _, _, space in tensors:
        if item.is_small:
            continue
        arrived, slot = space + levels.bytes(item, item.slice)[0], 0
        for node, peer in enumerate(levels.peers):
            if node == levels.node:
                continue
            yield (peer, space + node * item.slice * 4, item.part(peer, turn)[1] * 4,
                   arrived + slot * item.slice * 4, item.part(me, turn)[1] * 4)
            slot += 1


def _sums(op, axes, tensors, turn, me, others, levels):
    flat, between = [], []
    for item, source, target, space in tensors:
        first, mine = item.part(me, turn)
        to = target + first * item.out_width
        if op.what == "reduce_scatter":
            to -= item.part(me)[0] * item.out_width
        if levels and not item.is_small:
            between += _added(item, space + levels.node * item.slice * 4,
                              space + levels.bytes(item, item.slice)[0], mine, to)
        else:
            flat += _added(item, source + first * item.width, space if others else None, mine, to)
    kernels = [*_launches(op, tree_of(op.module, axes), exec_text.shape(op.in_kinds[0])[1], me,
                          flat)]
    return kernels + ([*_launches(op, levels.between, "f32", levels.node, between)]
                      if levels else [])


def _results(op, axes, tensors, me, others, levels):
    """Of an all-reduce: every rank's part to everybody, with nodes to the own
    place of each first."""
    large = [(item, target) for item, _, target, _ in tensors if not item.is_small]
    if not large or not others:
        return []

    def parts(moves):
        swaps = []
        for item, target in large:
            for peer, mine, theirs in moves:
                (first, sent), (begin, count) = item.part(mine), item.part(theirs)
                swaps.append((peer, target + first * item.out_width, sent * item.out_width,
                              target + begin * item.out_width, count * item.out_width))
        return _exchange(op, axes, swaps)

    if not levels:
        return [parts([(peer, me, peer) for peer in others])]
    return [parts([(peer, me, peer) for peer in levels.peers if peer != me]),
            parts([(peer, mine, levels.positions[node][place])
                   for place, peer in enumerate(levels.mates) if peer != me
                   for node, mine in enumerate(levels.peers)])]


def _padding(op, item, target, mine):
    """What is after a rank's part in its shard."""
    return [fill(op.stream, target + mine * item.out_width,
                 (item.shard - mine) * item.out_width)] if item.shard > mine else []


#===------------------------------------------------------------------------===#
# NCCL's own sums
#===------------------------------------------------------------------------===#

def fast_reduction(op, axes, ranks):
    """One group of NCCL's own sums: of uneven parts, one to every rank's."""
    me, transfers, padding = ranks.index(op.rank), [], []
    sums = SUM_TYPES[exec_text.shape(op.out_kinds[0])[1]]
    for in_kind, out_kind, source, target in zip(op.in_kinds, op.out_kinds, op.ins, op.outs):
        item = Item(op.what, in_kind, out_kind, len(ranks))
        if op.what == "all_reduce":
            transfers.append((ALL_REDUCE, 0, source, target, item.full * item.width, sums))
            continue
        padding += _padding(op, item, target, item.part(me)[1])
        if item.full == item.shard * len(ranks):
            transfers.append((REDUCE_SCATTER, 0, source, target, item.shard * item.width, sums))
            continue
        for root in range(len(ranks)):
            begin, count = item.part(root)
            if count > 0:
                transfers.append((REDUCE, root, source + begin * item.width,
                                  target if root == me else None, count * item.width, sums))
    return [group(op, axes, transfers), *padding]
