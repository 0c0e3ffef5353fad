"""What a planned exec module must keep to, checked the plain way.

The rules are those of exec-verify (docs/reference/passes.md); nothing else is
shared with it. exec-verify compares vector clocks and sweeps over the bytes;
this walks in order of issue, keeps the set of all operations that are over,
and remembers of every byte who wrote it last and who has read it since."""
import bisect
import collections
import copy
import re

from support import exec_text as text

Access = collections.namedtuple("Access", "buffer begin end")
Issued = collections.namedtuple("Issued", "op stream reads writes scratch number")


class Fault(Exception):
    """What is wrong."""


def require(condition, message, *details):
    if not condition:
        raise Fault(message.format(*details))


#===------------------------------------------------------------------------===#
# Places and order of issue
#===------------------------------------------------------------------------===#

LIBRARY = ("gemm", "gemm_add", "attention", "attention_grad")


class Issue:
    """One program, calls followed."""

    def __init__(self, module, program):
        self.module, self.program = module, program
        self.calls = 0
        self.issued = []
        self._walk(program, {}, None)

    def _place(self, block, name, arguments, known):
        if name in arguments:
            return arguments[name]
        if name in known:
            return known[name]
        value = block.values[name]
        if isinstance(value, text.View):
            source = self._place(block, value.source, arguments, known)
            count, element = text.elements(value.kind)
            available, source_element = text.elements(value.source_kind)
            require(element == source_element, "a view changes the type")
            require(0 <= value.offset <= available - count, "a view leaves its source")
            begin = source.begin + value.offset * text.ELEMENT_BYTES[element]
            place = Access(source.buffer, begin, begin + text.bytes_of(value.kind))
        elif isinstance(value, text.Get):
            ranges = [self.module.ranges[name] for name in value.ranges]
            require(value.fits(ranges), "ranges of another type, or apart")
            begin = ranges[0].offset
            place = Access(" ".join("@" + name for name in value.ranges),
                           begin, begin + text.bytes_of(value.kind))
        else:
            # An interval of a function is a new one in every call.
            owner = (block.name, self.calls if block.op == "func" else 0, name)
            place = Access(owner, value.offset, value.offset + text.bytes_of(value.kind))
        known[name] = place
        return place

    def _parts(self, place):
        """A place in several ranges is an access of each, in order."""
        if not isinstance(place.buffer, str) or " " not in place.buffer:
            return [place]
        parts = []
        for name in place.buffer.split():
            entry = self.module.ranges[name[1:]]
            begin = max(entry.offset, place.begin)
            end = min(entry.offset + text.bytes_of(entry.kind), place.end)
            if begin < end or (begin == end == place.begin == place.end and not parts):
                parts.append(Access(name, begin, end))
        return parts

    def _walk(self, block, arguments, events):
        known, kinds = {}, block.kinds()

        def places(names):
            return [self._place(block, name, arguments, known) for name in names]

        def accesses(names):
            each = [self._parts(place) for place in places(names)]
            return [parts[0] for parts in each] + [part for parts in each for part in parts[1:]]

        for op in block.body:
            if isinstance(op, text.Event):
                number = op.number
                if events is not None:
                    require(0 <= number < len(events), "an event that the call lacks")
                    number = events[number]
                require(number >= 0, "a negative event")
                self.issued.append(Issued(op, op.stream, (), (), (), number))
            elif isinstance(op, text.Call):
                function = self.module.blocks[op.callee]
                require([kinds[n] for n in op.operands] == [k for _, k in function.arguments],
                        "a call with other types")
                given = dict(zip((n for n, _ in function.arguments), places(op.operands)))
                self.calls += 1
                self._walk(function, given, op.events)
            else:
                self._check_form(op, kinds)
                # What a library computes with is aligned, parts of buffers too.
                if self.module.target and op.op in LIBRARY:
                    require(all(place.begin % alignment_of(self.module) == 0
                                for place in places([*op.ins, *op.outs, *op.scratch])),
                            "an operand of a library is not aligned")
                reads, writes = accesses(op.ins), accesses(op.outs)
                require(len(writes) == len(op.outs), "a write to several ranges as one")
                self.issued.append(Issued(op, op.stream, reads, writes, places(op.scratch), -1))

    def _check_form(self, op, kinds):
        """What an operation demands of its own operands."""
        ranks = 1
        if op.op == "collective":
            for axis in text.axes_of(self.module, op.rest):
                ranks *= axis.size
            for source, target in zip(op.ins, op.outs):
                made, kind = text.shape(kinds[target])
                require((made, kind) == result_of(op.what, kinds[source], ranks),
                        "a collective's sizes")
        if op.op in ("adamw", "accumulate"):
            require(op.outs == op.ins[:len(op.outs)],
                    f"{op.op} updates other buffers than it reads")
        if op.op == "gemm_add":
            require(op.outs == op.ins[2:], "gemm_add updates another buffer than it reads")
        if self.module.target:
            require(self.module.target == "test", "another target")
            spaces = [text.bytes_of(kinds[name]) for name in op.scratch]
            needed = workspaces_of(op, kinds, ranks)
            require(len(spaces) == len(needed), "the number of workspaces")
            require(all(map(int.__ge__, spaces, needed)), "a workspace is too small")


def result_of(what, kind, ranks):
    """The shape and type that a collective makes of a tensor."""
    sizes, element = text.shape(kind)
    if what != "all_reduce " and not sizes:
        return None
    if what == "all_gather ":
        return [sizes[0] * ranks, *sizes[1:]], element
    if what == "reduce_scatter ":
        sizes = [-(-sizes[0] // ranks), *sizes[1:]]
    return sizes, "f32" if element == "bf16" else element


def workspaces_of(op, kinds, ranks):
    """Bytes of scratch by the formulas of the target "test"."""
    if op.op == "collective" and op.what != "all_gather ":
        if re.search(r"[{ ]fast[,}]", op.rest):
            return [0] * len(op.outs)
        pieces = (text.elements(kinds[name])[0] for name in op.outs)
        if op.what == "all_reduce ":
            pieces = (-(-piece // ranks) for piece in pieces)
        width = text.ELEMENT_BYTES[text.elements(kinds[op.ins[0]])[1]]
        return [ranks * piece * width for piece in pieces]
    if op.op == "embedding_grad":
        count, element = text.elements(kinds[op.outs[0]])
        return [] if element == "f32" else [4 * count]
    fixed = {"gemm": 64, "gemm_add": 64, "attention": 4096, "attention_grad": 8192}
    return [fixed[op.op]] if op.op in fixed else []


def alignment_of(module):
    """What places are multiples of: by what the target "test" says, or of all targets."""
    return 128 if module.target == "test" else 64


def check_places(module):
    alignment = alignment_of(module)
    persistent, arena = module.bytes["persistent_bytes"], module.bytes["arena_bytes"]
    top = 0
    for entry in sorted(module.ranges.values(), key=lambda entry: entry.offset):
        require(entry.offset % alignment == 0 and entry.offset >= top, "a range's place")
        top = entry.offset + text.bytes_of(entry.kind)
        # What one program alone gives may lie where others have intervals.
        limit = arena if entry.role == "output" else persistent
        require(top <= limit, "a range above the persistent part")
    for block in module.blocks.values():
        limit = arena if block.arena is None else block.arena
        require(limit <= arena, "a program above the arena")
        for value in block.values.values():
            if isinstance(value, text.Alloc):
                end = value.offset + text.bytes_of(value.kind)
                require(value.offset % alignment == 0, "an interval's alignment")
                require(persistent <= value.offset and end <= limit, "an interval's place")


#===------------------------------------------------------------------------===#
# Happens-before and content
#===------------------------------------------------------------------------===#

class Bytes:
    """What happened last to every byte, in segments: [writer, owner, readers].
    Operations are bits; owner is the buffer whose content lies there."""

    def __init__(self, size):
        self.starts, self.states = [0, size], [[0, None, 0], None]

    def cut(self, byte):
        at = bisect.bisect_left(self.starts, byte)
        if at == len(self.starts) or self.starts[at] != byte:
            self.starts.insert(at, byte)
            self.states.insert(at, copy.copy(self.states[at - 1]))
        return at

    def segments(self, access):
        begin = self.cut(access.begin)
        return self.states[begin:self.cut(access.end)]

    def replace(self, access, state):
        if access.begin == access.end:
            return  # a workspace that nobody needs
        begin = self.cut(access.begin)
        end = self.cut(access.end)
        self.starts[begin:end] = [access.begin]
        self.states[begin:end] = [state]


def check_operands(issue):
    in_place = issue.op.op in ("adamw", "adamw_copy", "accumulate") or issue.op.what == "all_reduce "
    updated = {0: 2} if issue.op.op == "gemm_add" else {
        i: i for i in range(len(issue.writes)) if in_place}
    writes = [*issue.writes, *issue.scratch]
    for i, write in enumerate(writes):
        for j, read in enumerate(issue.reads):
            if write.begin < read.end and read.begin < write.end:
                require(updated.get(i) == j and write == read,
                        "an output is an input")
        for other in writes[:i]:
            require(write.end <= other.begin or other.end <= write.begin, "outputs meet")


def check_outputs(module, program, issued):
    """A program uses outputs after the persistent part only if it gives them,
    and writes no interval there."""
    work = [issue for issue in issued if not isinstance(issue.op, text.Event)]
    used = {}
    for access in (access for issue in work for access in (*issue.reads, *issue.writes)):
        if isinstance(access.buffer, str) and access.end > module.bytes["persistent_bytes"]:
            entry = module.ranges[access.buffer[1:]]
            require(entry.name in program.lists.get("outputs", []),
                    "an output of another program")
            used[entry.name] = (entry.offset, entry.offset + text.bytes_of(entry.kind))
    for access in (access for issue in work for access in (*issue.writes, *issue.scratch)):
        for begin, end in used.values():
            require(isinstance(access.buffer, str) or access.end <= begin or end <= access.begin,
                    "an interval over an output")


def check_program(module, program, issued, gradients):
    arena = Bytes(module.bytes["arena_bytes"])
    for entry in module.ranges.values():
        filled = entry.role in ("parameter", "state", "buffer", "compute_copy", "input") or (
            entry.role == "gradient" and entry.name in gradients)
        access = Access("@" + entry.name, entry.offset, entry.offset + text.bytes_of(entry.kind))
        arena.replace(access, [0, access.buffer if filled else None, 0])
    # Bit 0 is the program's start, which belongs to the compute stream.
    over = dict.fromkeys(text.STREAMS, 0)
    over["compute"] = 1
    events, bit = {}, 1
    for issue in issued:
        if isinstance(issue.op, text.Event):
            if issue.op.op == "record":
                events[issue.number] = over[issue.stream]
            else:
                require(issue.number in events, "a wait without record")
                over[issue.stream] |= events[issue.number]
            continue
        before = over[issue.stream]
        require(before & 1, "a stream starts before the program")
        require(issue.op.op != "copy_box", "copy_box writes a part, which is not modelled")
        check_operands(issue)
        bit <<= 1
        for access in (*issue.reads, *issue.writes, *issue.scratch):
            require(access.end <= program.arena, "bytes above the program's peak")
        for access in issue.reads:
            for state in arena.segments(access):
                require(state[0] & ~before == 0, "a read does not wait for a write")
                require(state[1] == access.buffer, "a read of what is not there")
                state[2] |= bit
        for accesses, holds in ((issue.writes, True), (issue.scratch, False)):
            for access in accesses:
                require(holds or isinstance(access.buffer, tuple), "a range as workspace")
                for state in arena.segments(access):
                    require(state[0] & ~before == 0, "a write does not wait for a write")
                    require(state[2] & ~before & ~bit == 0, "a write does not wait for a read")
                arena.replace(access, [bit, access.buffer if holds else None, 0])
        over[issue.stream] |= bit
    require(over["compute"] == 2 * bit - 1, "a stream is left running")


#===------------------------------------------------------------------------===#
# Statements and steps
#===------------------------------------------------------------------------===#

def stated(program, name):
    return set(program.lists.get(name, []))


def check_statement(module, program):
    require({"reads", "writes"} <= program.lists.keys(), "a program states nothing")
    require(all(name in module.ranges for names in program.lists.values() for name in names),
            "a name of no range")
    reads, writes = stated(program, "reads"), stated(program, "writes")
    require(stated(program, "outputs") <= writes, "an output is given, but not written")
    adds, clears = stated(program, "adds"), stated(program, "clears")
    require(adds <= reads & writes, "a sum is not read and written")
    require(clears <= writes, "what is cleared is not written")
    require(not adds & clears, "a sum is added to and cleared")
    inputs = {name for name in reads if module.ranges[name].role == "input"}
    require(inputs <= stated(program, "inputs"), "an input is read that nobody fills")


def check_effects(module, program, issued):
    """A byte of a range is 1 when the program has written it."""
    reads, writes = stated(program, "reads"), stated(program, "writes")
    written = {name: bytearray(text.bytes_of(entry.kind))
               for name, entry in module.ranges.items()}
    seen = set()

    def accesses(names):
        for access in names:
            if isinstance(access.buffer, str):
                name = access.buffer[1:]
                start = module.ranges[name].offset
                yield name, slice(access.begin - start, access.end - start)

    for issue in issued:
        for name, part in accesses(issue.reads):
            if 0 in written[name][part]:
                require(name in reads, "a read that is not stated")
                seen.add(name)
        for name, part in accesses(issue.writes):
            require(name in writes, "a write that is not stated")
            written[name][part] = b"\1" * (part.stop - part.start)
    require(not any(0 in written[name] for name in writes), "a range is not written whole")
    require(seen == reads, "a stated read is missing")


#===--- Sums ---------------------------------------------------------------===#

KERNEL = re.compile(r"  exec\.kernel @(\S+) over\(.*?\) access \[(.*?)\] outputs (\d+)")
KERNEL_OP = re.compile(r"(%\w+) = (exec\.load|arith\.\w+) (.*?) : (\S+)(?: (?:->|to) (\S+))?$")


def sums_of_kernels(module):
    """{kernel: [the inputs that output k is a sum of, by k]}."""
    found = {}
    for start, line in enumerate(module.rest):
        if match := KERNEL.match(line):
            name, accesses, outputs = match.groups()
            arguments = re.findall(r"(%\w+): (\S+?)[,)]", module.rest[start + 1])
            end = module.rest.index("  }", start)
            found[name] = sums_of_kernel(
                [line.strip() for line in module.rest[start + 2:end]],
                {argument: (access, text.shape(kind)[1]) for (argument, kind), access
                 in zip(arguments, accesses.split(", "))},
                [argument for argument, _ in arguments][-int(outputs):])
    return found


def sums_of_kernel(lines, arguments, outputs):
    values, stores = {}, {}
    for line in lines:
        if match := KERNEL_OP.match(line):
            name, op, operands, kind, other = match.groups()
            # A name may come again in another region.
            values[name] = (op, [values.get(operand, operand) for operand in operands.split(", ")],
                            other or kind)
        elif match := re.match(r"(%\w+) = ", line):
            values.pop(match.group(1), None)
        elif match := re.match(r"exec\.store (%\w+), (%\w+) ", line):
            stores.setdefault(match.group(2), []).append(values.get(match.group(1)))

    def unrounded(value, element):
        if (value and value[0] == "arith.extf" and value[1][0][0] == "arith.truncf" and
                value[1][0][2] == element):
            return value[1][0][1][0]
        return value

    def leaves(value, element):
        value = unrounded(value, element)
        if not isinstance(value, tuple) or value[0] not in ("arith.addf", "arith.addi"):
            return [value]
        return [leaf for operand in value[1] for leaf in leaves(operand, element)]

    def sums_of(output):
        stored = stores.get(output, [])
        found = leaves(stored[0], arguments[output][1]) if len(stored) == 1 else []
        if len(found) < 2:
            return []
        return [leaf[1][0] for leaf in found if isinstance(leaf, tuple) and
                leaf[0] == "exec.load" and leaf[1][0] not in outputs and
                arguments.get(leaf[1][0]) == arguments[output]]

    numbers = {name: i for i, name in enumerate(arguments)}
    return [[numbers[name] for name in sums_of(output)] for output in outputs]


class Known:
    """What is known of bytes: "zero", or {(range, how far its bytes lie after
    these): whether something was added}."""

    def __init__(self, size):
        self.bytes = Bytes(size)
        self.bytes.states[0] = None

    def set(self, access, state):
        self.bytes.cut(access.begin)
        self.bytes.replace(access, state)

    def pieces(self, access):
        states = list(self.bytes.segments(access))
        starts = self.bytes.starts
        at = bisect.bisect_left(starts, access.begin)
        return [(starts[at + i], starts[at + i + 1], state) for i, state in enumerate(states)]

    def whole(self, access):
        """What all of these bytes are."""
        states = [state for _, _, state in self.pieces(access)]
        if "zero" in states:
            return "zero" if all(state == "zero" for state in states) else {}
        common = dict(states[0] or {}) if states else {}
        for state in states[1:]:
            common = {key: added for key, added in common.items()
                      if (state or {}).get(key) == added}
        return common


def follow_sums(module, issued, ranges):
    """What is known at the end of what `ranges` held at the start."""
    known = Known(module.bytes["arena_bytes"])
    places = {name: Access(name, entry.offset, entry.offset + text.bytes_of(entry.kind))
              for name, entry in module.ranges.items()}
    for name in ranges:
        known.set(places[name], {(name, 0): False})
    kernels = sums_of_kernels(module)
    for issue in issued:
        if isinstance(issue.op, text.Event):
            continue
        made = []
        if issue.op.op == "copy":
            to = issue.writes[0].begin
            for read in issue.reads:
                moved = to - read.begin
                for begin, end, state in known.pieces(read):
                    if isinstance(state, dict):
                        state = {(name, away - moved): added
                                 for (name, away), added in state.items()}
                    made.append((Access(None, begin + moved, end + moved), state))
                to += read.end - read.begin
        elif issue.op.op == "fill_zero":
            made.append((issue.writes[0], "zero"))
        elif issue.op.op in ("launch", "gemm_add", "accumulate"):
            sums = ([[2]] if issue.op.op == "gemm_add" else
                    [[i] for i in range(len(issue.writes))] if issue.op.op == "accumulate"
                    else kernels[re.match(r"@(\S+)", issue.op.what).group(1)])
            for write, inputs in zip(issue.writes, sums):
                state = {}
                for source in (issue.reads[i] for i in inputs):
                    held = known.whole(source)
                    # Else the first of several ranges that are read as one.
                    is_whole = source.end - source.begin == write.end - write.begin
                    if held != "zero" and is_whole:
                        state.update({(name, away + source.begin - write.begin): True
                                      for name, away in held})
                made.append((write, state))
        for access in (*issue.writes, *issue.scratch):
            if access.begin != access.end:
                known.set(access, None)
        for access, state in made:
            known.set(access, state)
    return {name: known.whole(place) for name, place in places.items()}


def check_sums(module, program, issued, cleared):
    adds, clears = stated(program, "adds"), stated(program, "clears")
    others = (stated(program, "reads") & stated(program, "writes") & cleared) - adds - clears
    if not adds | clears | others:
        return
    held = follow_sums(module, issued, adds | others)
    require(all(held[name] == "zero" for name in clears), "a range is not cleared")

    def is_sum(name):
        return held[name] != "zero" and held[name].get((name, 0), False)
    require(all(map(is_sum, adds)), "a sum is not added to")
    require(not any(map(is_sum, others)), "an addition that is not stated")


#===--- Steps --------------------------------------------------------------===#

def sizes_of(entry):
    match = re.search(r"full = tensor<((?:\d+x)*)\w+>", entry.rest)
    return [int(n) for n in match.group(1).split("x")[:-1]] if match else text.shape(entry.kind)[0]


def check_slices(module, programs, counts):
    """An input of the whole step says how often its slices are taken."""
    for name in counts:
        for whole in programs[name].lists.get("inputs", []):
            part = whole.removesuffix(".of_step")
            takers = [taker for taker in counts if part in stated(programs[taker], "inputs")]
            if part == whole or not takers or part not in module.ranges:
                continue
            few, many = sizes_of(module.ranges[part]), sizes_of(module.ranges[whole])
            require(few and few[0] and many and few[1:] == many[1:] and many[0] and
                    many[0] % few[0] == 0, "slices of another size")
            require(all(counts[taker] * few[0] == many[0] for taker in takers),
                    "another number of slices")


def check_step(module):
    programs = {program.name: program for program in module.programs()}
    step = module.step
    if step is None:
        step = [["train", 1]] if "train" in programs else []
    else:
        require(module.runs is not None, "a step states nothing")
    require(all(name in programs for name, _ in step), "a step runs no program")
    counts = collections.Counter()
    for name, times in step:
        counts[name] += times
    require(module.runs is None or counts == module.runs, "a program runs too often or too seldom")
    check_slices(module, programs, counts)

    def makes(program):
        return stated(program, "writes") - stated(program, "reads") - stated(program, "clears")
    here = [programs[name] for name in counts]
    made = set().union(*map(makes, here))
    of_model = {name for name, entry in module.ranges.items()
                if entry.role in ("parameter", "buffer", "compute_copy")}
    elsewhere = set().union(*map(makes, programs.values())) - of_model - set().union(
        *(stated(program, "writes") for program in here))
    sums = set().union(*(stated(program, "adds") for program in programs.values()))
    written, filled, from_zero, lost = set(), set(), set(), set()
    unread = {}
    for name, times in step:
        program = programs[name]
        reads, writes, adds, clears = (stated(program, what)
                                       for what in ("reads", "writes", "adds", "clears"))
        slices = {"tokens", "targets"} & stated(program, "inputs")
        for _ in range(times):
            require(reads & made <= written, "a read of what another program has yet to write")
            require(not reads & elsewhere, "a read of what no program of the step writes")
            require((reads & sums) - adds <= filled, "a read of an empty sum")
            require(not reads & lost, "a read of the last microbatch alone")
            from_zero |= adds - written
            written |= writes
            filled = (filled | writes) - clears
            parts = makes(program) if slices else set()
            lost = (lost - writes) | {part for part in parts if unread.get(part) == name}
            unread = {**{part: maker for part, maker in unread.items()
                         if part not in reads | writes}, **dict.fromkeys(parts, name)}
    require(not from_zero & filled, "a sum is left full")
    require(all(re.search(r"init = (?!#nn\.zeros)", module.ranges[name].rest) is None
                for name in from_zero), "a sum begins with a value")


def fault_of(module):
    """None, or what is wrong with the module."""
    if module.fault:
        return module.fault
    try:
        check_places(module)
        programs = [(program, Issue(module, program).issued) for program in module.programs()]
        for program, issued in programs:
            others = set().union(*(stated(other, "writes") for other, _ in programs
                                   if other is not program))
            check_outputs(module, program, issued)
            check_program(module, program, issued, others)
        for program, _ in programs:
            check_statement(module, program)
        step = {name for name, _ in module.step or []}
        cleared = set().union(*(stated(program, "clears") for program, _ in programs
                                if program.name in step))
        for program, issued in programs:
            check_effects(module, program, issued)
            check_sums(module, program, issued, cleared if program.name in step else set())
        check_step(module)
    except Fault as fault:
        return str(fault)
    return None
