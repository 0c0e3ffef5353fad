"""Kinds of mutations of a planned program: each changes the module, or raises
NothingToDo. Those of what programs and steps state, and of kernels, stand in
exec_statement_mutations.py."""
import math
import pickle

from support import exec_text as text
from support.exec_text import Alloc, Call, Event, Get, View, Work

MUTATIONS = {}


class NothingToDo(Exception):
    """A module has nothing that a mutation could change."""


def mutation(function):
    MUTATIONS[function.__name__.replace("_", " ")] = function
    return function


def choose(rng, candidates):
    """A random one of a list."""
    if not candidates:
        raise NothingToDo
    return rng.choice(candidates)


def pick(rng, module, wanted, where=lambda op: True):
    """A random (block, index) of an operation."""
    return choose(rng, [(block, i) for block in module.blocks.values()
                        for i, op in enumerate(block.body)
                        if isinstance(op, wanted) and where(op)])


def exchange(a, j, b, k):
    """Exchanges a[j] and b[k]."""
    a[j], b[k] = b[k], a[j]


def root_of(block, name):
    while isinstance(block.values.get(name), View):
        name = block.values[name].source
    return name


def roots(block, names):
    return {root_of(block, name) for name in names}


def operands_of(op):
    if isinstance(op, Call):
        return [op.operands]
    return [op.ins, op.outs, op.scratch]


def delete(rng, module, wanted, where=lambda op: True):
    block, i = pick(rng, module, wanted, where)
    del block.body[i]


def relocate(block, i, to):
    block.body.insert(to, block.body.pop(i))


@mutation
def delete_a_wait(rng, module):
    delete(rng, module, Event, lambda op: op.op == "wait")


@mutation
def delete_a_record(rng, module):
    delete(rng, module, Event, lambda op: op.op == "record")


@mutation
def swap_two_events(rng, module):
    block, i = pick(rng, module, Event)
    others = [op for op in block.body if isinstance(op, Event) and
              op.number != block.body[i].number]
    other = choose(rng, others)
    block.body[i].number, other.number = other.number, block.body[i].number


@mutation
def await_another_event(rng, module):
    block, i = pick(rng, module, Event, lambda op: op.op == "wait")
    block.body[i].number += rng.choice((-2, -1, 1, 2))


@mutation
def change_an_event_of_a_call(rng, module):
    block, i = pick(rng, module, Call, lambda op: op.events)
    events = block.body[i].events
    events[rng.randrange(len(events))] += rng.choice((-2, -1, 1, 2))


@mutation
def wait_on_another_stream(rng, module):
    block, i = pick(rng, module, Event)
    block.body[i].stream = rng.choice([s for s in text.STREAMS if s != block.body[i].stream])


@mutation
def wait_later(rng, module):
    block, i = pick(rng, module, Event, lambda op: op.op == "wait")
    relocate(block, i, min(len(block.body) - 1, i + rng.randint(1, 4)))


@mutation
def record_earlier(rng, module):
    block, i = pick(rng, module, Event, lambda op: op.op == "record")
    relocate(block, i, max(0, i - rng.randint(1, 4)))


def links(block):
    """(producer, consumer) by position: the consumer reads what the producer
    writes. What a call does with an operand is unknown: both."""
    found, writer = [], {}
    for i, op in enumerate(block.body):
        if isinstance(op, Event):
            continue
        is_call = isinstance(op, Call)
        for root in sorted(roots(block, op.operands if is_call else op.ins)):
            if root in writer:
                found.append((writer[root], i))
        for root in roots(block, op.operands if is_call else op.outs):
            writer[root] = i
    return found


def pick_link(rng, module):
    found = [(block, link) for block in module.blocks.values() for link in links(block)]
    return choose(rng, found)


@mutation
def move_a_producer_behind_its_consumer(rng, module):
    block, (producer, consumer) = pick_link(rng, module)
    relocate(block, producer, consumer)


@mutation
def move_a_consumer_before_its_producer(rng, module):
    block, (producer, consumer) = pick_link(rng, module)
    relocate(block, consumer, producer)


@mutation
def delete_a_producer(rng, module):
    block, (producer, _) = pick_link(rng, module)
    del block.body[producer]


@mutation
def swap_neighbours(rng, module):
    block, i = pick(rng, module, (Work, Call))
    if i + 1 == len(block.body):
        raise NothingToDo
    relocate(block, i, i + 1)


@mutation
def change_a_stream(rng, module):
    block, i = pick(rng, module, Work)
    block.body[i].stream = rng.choice([s for s in text.STREAMS if s != block.body[i].stream])


@mutation
def repeat_an_operation(rng, module):
    block, i = pick(rng, module, (Work, Call))
    copy = pickle.loads(pickle.dumps(block.body[i]))
    block.body.insert(rng.randint(i, min(len(block.body), i + 6)), copy)


@mutation
def repeat_a_collective(rng, module):
    block, i = pick(rng, module, Work, lambda op: op.op == "collective")
    block.body.insert(i, pickle.loads(pickle.dumps(block.body[i])))


@mutation
def drop_a_collective(rng, module):
    delete(rng, module, Work, lambda op: op.op == "collective")


@mutation
def swap_two_operands(rng, module):
    block, i = pick(rng, module, Work)
    kinds = block.kinds()
    slots = [(names, k) for names in operands_of(block.body[i]) for k in range(len(names))]
    pairs = [(a, b) for a in slots for b in slots if a[0][a[1]] != b[0][b[1]] and
             kinds[a[0][a[1]]] == kinds[b[0][b[1]]]]
    (a, j), (b, k) = choose(rng, pairs)
    exchange(a, j, b, k)


@mutation
def use_another_buffer(rng, module):
    block, i = pick(rng, module, (Work, Call))
    kinds = block.kinds()
    names, k = rng.choice([(names, k) for names in operands_of(block.body[i])
                           for k in range(len(names))])
    others = [name for name, kind in kinds.items()
              if kind == kinds[names[k]] and name != names[k]]
    names[k] = choose(rng, others)


def alias(rng, module, what, aliased):
    """Makes an operand of `aliased` another view of one that `what` gives."""
    block, i = pick(rng, module, Work, lambda op: what(op) and aliased(op))
    op, kinds = block.body[i], block.kinds()
    targets = aliased(op)
    k = rng.randrange(len(targets))
    for name in rng.sample(what(op), len(what(op))):
        count, element = text.elements(kinds[targets[k]])
        available, other = text.elements(kinds[name])
        if element != other or count > available or root_of(block, name) == root_of(
                block, targets[k]):
            continue
        view = View("alias", name, rng.choice((0, available - count)), kinds[name],
                    kinds[targets[k]])
        block.values[view.name] = view
        targets[k] = view.name
        return
    raise NothingToDo


@mutation
def a_matmul_writes_its_input(rng, module):
    alias(rng, module, lambda op: op.op == "gemm" and op.ins, lambda op: op.outs)


@mutation
def an_operation_writes_its_input(rng, module):
    alias(rng, module, lambda op: op.ins, lambda op: op.outs)


@mutation
def a_collective_in_place(rng, module):
    alias(rng, module, lambda op: op.op == "collective" and op.ins, lambda op: op.outs)


def replace_by_view(block, names, k, offset, kind):
    """Operand k becomes a view of what it was."""
    view = View("cut", names[k], offset, block.kinds()[names[k]], kind)
    block.values[view.name] = view
    names[k] = view.name


@mutation
def shrink_a_workspace(rng, module):
    # Matmuls would be most of them.
    kind = choose(rng, sorted({op.op for block in module.blocks.values() for op in block.body
                               if isinstance(op, Work) and op.scratch}))
    block, i = pick(rng, module, Work, lambda op: op.op == kind and op.scratch)
    names = block.body[i].scratch
    k = rng.randrange(len(names))
    count, element = text.elements(block.kinds()[names[k]])
    if count == 0:
        raise NothingToDo
    replace_by_view(block, names, k, 0,
                    text.memref([max(0, count - rng.choice((1, 2, 64, count)))], element))


@mutation
def enlarge_a_workspace(rng, module):
    """Good where nothing lies after it."""
    block, i = pick(rng, module, Work, lambda op: op.scratch)
    value = block.values.get(rng.choice(block.body[i].scratch))
    others = [op for op in block.body if not isinstance(op, Event) and
              value and any(value.name in names for names in operands_of(op))]
    if not isinstance(value, Alloc) or len(others) != 1:
        raise NothingToDo
    count, element = text.elements(value.kind)
    value.kind = text.memref([count + rng.choice((1, 64, 4096))], element)


@mutation
def drop_a_workspace(rng, module):
    block, i = pick(rng, module, Work, lambda op: op.scratch)
    scratch = block.body[i].scratch
    del scratch[rng.randrange(len(scratch))]


@mutation
def put_an_output_where_an_input_is(rng, module):
    """Two buffers at one place: only their bytes say that they are one."""
    block, i = pick(rng, module, Work, lambda op: op.ins)
    op = block.body[i]
    values = [[block.values.get(root_of(block, name)) for name in names]
              for names in (op.ins, op.outs)]
    first, second = choose(rng, [(a, b) for a in values[0] for b in values[1] if a is not b and
                                 isinstance(a, Alloc) and isinstance(b, Alloc)])
    second.offset = first.offset


@mutation
def change_a_shape_of_a_collective(rng, module):
    block, i = pick(rng, module, Work, lambda op: op.op == "collective")
    op, kinds = block.body[i], block.kinds()
    names = rng.choice((op.ins, op.outs))
    k = rng.randrange(len(names))
    sizes, element = text.shape(kinds[names[k]])
    others = [sizes[::-1], [math.prod(sizes)], [*sizes, 1], [1, *sizes],
              [sizes[0] - 1, *sizes[1:]] if sizes else [1],
              [*sizes[:-1], sizes[-1] - 1] if sizes else [1, 1]]
    replace_by_view(block, names, k, 0, text.memref(
        choose(rng, [other for other in others if other != sizes and 0 not in other]), element))


@mutation
def exchange_the_kinds_of_collectives(rng, module):
    block, i = pick(rng, module, Work, lambda op: op.op == "collective")
    others = ["all_gather ", "reduce_scatter ", "all_reduce "]
    block.body[i].what = rng.choice([what for what in others if what != block.body[i].what])


def allocs(module):
    return [(block, value) for block in module.blocks.values()
            for value in block.values.values() if isinstance(value, Alloc)]


def two_allocs(rng, module):
    block, first = rng.choice(allocs(module))
    others = [value for value in block.values.values()
              if isinstance(value, Alloc) and value is not first]
    return first, choose(rng, others)


@mutation
def give_an_interval_another_s_place(rng, module):
    first, second = two_allocs(rng, module)
    first.offset = second.offset


@mutation
def give_an_interval_an_equal_one_s_place(rng, module):
    """Equal spans: only identity tells the two apart."""
    pairs = [(a, b) for block, a in allocs(module) for b in block.values.values()
             if isinstance(b, Alloc) and a is not b and a.offset != b.offset and
             text.bytes_of(a.kind) == text.bytes_of(b.kind)]
    first, second = choose(rng, pairs)
    first.offset = second.offset


@mutation
def give_an_interval_one_s_place_of_another_block(rng, module):
    _, first = rng.choice(allocs(module))
    _, second = rng.choice(allocs(module))
    if first is second:
        raise NothingToDo
    first.offset = second.offset


@mutation
def swap_two_intervals(rng, module):
    first, second = two_allocs(rng, module)
    first.offset, second.offset = second.offset, first.offset


@mutation
def move_an_interval(rng, module):
    _, value = rng.choice(allocs(module))
    value.offset += rng.choice((-64, 64, -256, 256, -1024, 1024, 32, -4096))
    if value.offset < 0:
        raise NothingToDo


@mutation
def lower_the_peak(rng, module):
    program = rng.choice(module.programs())
    program.arena -= 64 * rng.randint(1, 8)


@mutation
def move_a_range(rng, module):
    entry, other = rng.sample(list(module.ranges.values()), 2)
    entry.offset = rng.choice((other.offset, entry.offset + 64, max(0, entry.offset - 64)))


@mutation
def name_another_range(rng, module):
    gets = [value for block in module.blocks.values() for value in block.values.values()
            if isinstance(value, Get)]
    value = rng.choice(gets)
    which = rng.randrange(len(value.ranges))
    kind = module.ranges[value.ranges[which]].kind
    value.ranges[which] = choose(rng, [
        entry.name for entry in module.ranges.values()
        if entry.kind == kind and entry.name not in value.ranges])


@mutation
def read_another_group_as_one(rng, module):
    """Other ranges that lie side by side, of the same elements."""
    value = choose(rng, [value for block in module.blocks.values()
                         for value in block.values.values()
                         if isinstance(value, Get) and len(value.ranges) > 1])
    kinds = [module.ranges[name].kind for name in value.ranges]
    ranges = sorted(module.ranges.values(), key=lambda entry: entry.offset)
    groups = [ranges[i:i + len(kinds)] for i in range(len(ranges) - len(kinds) + 1)]
    value.ranges = choose(rng, [
        names for names, found in (([entry.name for entry in group],
                                    [entry.kind for entry in group]) for group in groups)
        if found == kinds and names != value.ranges])


@mutation
def reverse_ranges_that_are_one(rng, module):
    value = choose(rng, [value for block in module.blocks.values()
                         for value in block.values.values()
                         if isinstance(value, Get) and len(value.ranges) > 1])
    value.ranges.reverse()


@mutation
def shift_a_view(rng, module):
    views = [value for block in module.blocks.values() for value in block.values.values()
             if isinstance(value, View)]
    value = choose(rng, views)
    value.offset += rng.choice((-16, -1, 1, 8, 16, 64))


@mutation
def shift_one_view_of_a_larger_interval(rng, module):
    """The interval grows, so that the view stays inside it."""
    choices = []
    for block, source in allocs(module):
        views = [view for view in block.values.values()
                 if isinstance(view, View) and view.source == source.name]
        used = any(source.name in names for op in block.body if not isinstance(op, Event)
                   for names in operands_of(op))
        if views and not used:
            choices.append((source, views))
    source, views = choose(rng, choices)
    count, element = text.elements(source.kind)
    source.kind = f"memref<{count + 16}x{element}>"
    for view in views:
        view.source_kind = source.kind
    rng.choice(views).offset += 16


@mutation
def drop_a_call(rng, module):
    delete(rng, module, Call)


@mutation
def swap_two_calls(rng, module):
    block, i = pick(rng, module, Call)
    others = [k for k, op in enumerate(block.body) if isinstance(op, Call) and k != i]
    k = choose(rng, others)
    exchange(block.body, i, block.body, k)


@mutation
def permute_a_call_s_arguments(rng, module):
    block, i = pick(rng, module, Call)
    kinds, names = block.kinds(), block.body[i].operands
    pairs = [(j, k) for j in range(len(names)) for k in range(j) if names[j] != names[k] and
             kinds[names[j]] == kinds[names[k]]]
    j, k = choose(rng, pairs)
    exchange(names, j, names, k)


@mutation
def give_a_call_one_buffer_twice(rng, module):
    block, i = pick(rng, module, Call)
    kinds, names = block.kinds(), block.body[i].operands
    pairs = [(j, k) for j in range(len(names)) for k in range(len(names))
             if names[j] != names[k] and kinds[names[j]] == kinds[names[k]]]
    j, k = choose(rng, pairs)
    names[j] = names[k]


@mutation
def keep_an_argument_inside(rng, module):
    """A function names an interval of its own where it had an argument."""
    calls = [(block, op) for block in module.blocks.values() for op in block.body
             if isinstance(op, Call)]
    choices = [(op.callee, k, block.values[root_of(block, name)]) for block, op in calls
               for k, name in enumerate(op.operands)
               if isinstance(block.values.get(name), Alloc)]
    callee, k, value = choose(rng, choices)
    function = module.blocks[callee]
    name, kind = function.arguments.pop(k)
    function.values[name] = Alloc(name, value.offset, kind)
    for _, op in calls:
        if op.callee == callee:
            del op.operands[k]


@mutation
def change_nothing(rng, module):
    pass
