"""The printed text of a planned exec module: read, changed and written again.

Written from the text alone and sharing nothing with the compiler, so that a
mistake there is not repeated here. It knows the ops that a module holds after
exec-synchronize, and keeps meshes and kernels as they are."""
import collections
import functools
import math
import re

STREAMS = ("compute", "gather", "reduce", "copy")
ELEMENT_BYTES = {"f32": 4, "bf16": 2, "f64": 8, "i8": 1, "i32": 4, "i64": 8}

_TYPE = re.compile(r"memref<((?:\d+x)*)(\w+)>$")
_RANGE = re.compile(r"\s*exec\.range @(\S+) : (\S+) role (\w+) at (\d+)(.*)$")
_GET = re.compile(r"%(\S+) = exec\.get @(\S+)(?: adjacent \[(.*?)\])? : (\S+)$")
_ALLOC = re.compile(r"%(\S+) = exec\.alloc at (\d+)(?: \"[^\"]*\")? : (\S+)$")
_VIEW = re.compile(r"%(\S+) = exec\.view %(\S+)\[(-?\d+)\] : (\S+) to (\S+)$")
_EVENT = re.compile(r"exec\.(record|wait) (-?\d+) on (\w+)$")
_WORK = re.compile(r"exec\.(\w+) (.*?)on (\w+)\((.*?)\)"
                   r" outs\((.*?)\)(?: workspace\((.*?)\))?( .*)?$")
_CALL = re.compile(r"exec\.call @(\S+?)\((.*)\) events \[(.*?)\]( \{.*\})?(?: : .*)?$")
_BLOCK = re.compile(r"  exec\.(program|func) @(\S+)(?: arena (\d+))?(?: attributes (\{.*\}))? \{$")
_MODULE = re.compile(r"exec\.(arena_bytes|persistent_bytes) = (\d+)")
_TARGET = re.compile(r"exec\.target = \"(\w+)\"")
_STEP = re.compile(r"nn\.steps = \{train = \[(.*?)\]\}")
_RUNS = re.compile(r"exec\.steps = \{train = \{(.*?)\}\}")
_LIST = re.compile(r"exec\.(inputs|outputs|reads|writes|adds|clears) = \[(.*?)\]")
_MESH = re.compile(r"\s*fsdp\.mesh @\S+ \[(.*?)\](?: \{node_size = (\d+))?")


def shape(kind):
    """The dimensions of a memref and the name of its elements' type."""
    sizes, element = _TYPE.match(kind).groups()
    return [int(size) for size in sizes.split("x")[:-1]], element


@functools.lru_cache(maxsize=None)
def elements(kind):
    """Elements of a memref and the name of their type."""
    sizes, element = shape(kind)
    return math.prod(sizes), element


def memref(sizes, element):
    return f"memref<{'x'.join(map(str, [*sizes, element]))}>"


@functools.lru_cache(maxsize=None)
def bytes_of(kind):
    count, element = elements(kind)
    return count * ELEMENT_BYTES[element]


# A part of a mesh's axis; `inner` ranks of that axis lie between two of it.
Axis = collections.namedtuple("Axis", "name size inner")


def axes_of(module, rest):
    """Those that an operation names: `over @mesh["dp", "tp":(1)2]`."""
    axes = []
    for name, outer, size in re.findall(
            r'"(\w+)"(?::\((\d+)\)(\d+))?', re.search(r"over @\S+?\[(.*?)\]", rest).group(1)):
        whole = module.axes[name]
        size, outer = (int(size), int(outer)) if size else (whole, 1)
        axes.append(Axis(name, size, whole // (outer * size)))
    return tuple(axes)


class Range:
    def __init__(self, name, kind, role, offset, rest):
        self.name, self.kind, self.role, self.offset, self.rest = name, kind, role, offset, rest

    def text(self):
        return f"  exec.range @{self.name} : {self.kind} role {self.role} at {self.offset}{self.rest}"


class Get:
    """`ranges` are the names of those that it gives, side by side."""

    def __init__(self, name, first, others, kind):
        self.name, self.kind = name, kind
        self.ranges = [first, *re.findall(r"@([^\s,]+)", others or "")]

    def fits(self, ranges):
        """Whether these, which it names, are its value: one has its type, several lie
        without a gap, are of one role and have its elements."""
        if len(ranges) == 1:
            return ranges[0].kind == self.kind
        role, end = ranges[0].role, ranges[0].offset
        sizes, element = shape(self.kind)
        for entry in ranges:
            if (entry.offset, entry.role, elements(entry.kind)[1]) != (end, role, element):
                return False
            end += bytes_of(entry.kind)
        return (role != "output" and len(set(self.ranges)) == len(ranges) and
                len(sizes) == 1 and end == ranges[0].offset + bytes_of(self.kind))

    def text(self):
        first, *others = self.ranges
        adjacent = f" adjacent [{', '.join('@' + name for name in others)}]" if others else ""
        return f"%{self.name} = exec.get @{first}{adjacent} : {self.kind}"


class Alloc:
    def __init__(self, name, offset, kind):
        self.name, self.offset, self.kind = name, offset, kind

    def text(self):
        return f"%{self.name} = exec.alloc at {self.offset} : {self.kind}"


class View:
    def __init__(self, name, source, offset, source_kind, kind):
        self.name, self.source, self.offset = name, source, offset
        self.source_kind, self.kind = source_kind, kind

    def text(self):
        return (f"%{self.name} = exec.view %{self.source}[{self.offset}] : "
                f"{self.source_kind} to {self.kind}")


class Event:
    def __init__(self, op, number, stream):
        self.op, self.number, self.stream = op, number, stream

    def text(self, _):
        return f"exec.{self.op} {self.number} on {self.stream}"


class Work:
    """`ins`, `outs` and `scratch` are names of values."""

    def __init__(self, op, what, stream, ins, outs, scratch, rest):
        self.op, self.what, self.stream, self.rest = op, what, stream, rest
        self.ins, self.outs, self.scratch = ins, outs, scratch

    def text(self, kinds):
        def operands(names):
            if not names:
                return ""
            return (", ".join("%" + name for name in names) + " : " +
                    ", ".join(kinds[name] for name in names))
        scratch = f" workspace({operands(self.scratch)})" if self.scratch else ""
        return (f"exec.{self.op} {self.what}on {self.stream}({operands(self.ins)})"
                f" outs({operands(self.outs)}){scratch}{self.rest}")


class Call:
    def __init__(self, callee, operands, events, rest=""):
        self.callee, self.operands, self.events, self.rest = callee, operands, events, rest

    def text(self, kinds):
        types = ", ".join(kinds[name] for name in self.operands)
        return (f"exec.call @{self.callee}({', '.join('%' + n for n in self.operands)})"
                f" events [{', '.join(map(str, self.events))}]{self.rest}"
                + (f" : {types}" if types else ""))


class Block:
    """A program or function. Where a value is defined says nothing, so that
    definitions are written first and operations can be moved freely."""

    def __init__(self, op, name, arena, attributes):
        self.op, self.name, self.arena = op, name, arena
        # What it states of ranges, list by list; all else is as it was.
        self.lists = {name: re.findall(r'"(.*?)"', names)
                      for name, names in _LIST.findall(attributes or "")}
        self.rest = re.sub(r"(, )+", ", ", _LIST.sub("", (attributes or "{}")[1:-1])).strip(", ")
        self.arguments, self.values, self.body = [], {}, []

    def kinds(self):
        return {**dict(self.arguments), **{v.name: v.kind for v in self.values.values()}}

    def lines(self):
        arena = "" if self.arena is None else f" arena {self.arena}"
        parts = [f"exec.{name} = [{', '.join(map(_quoted, names))}]"
                 for name, names in self.lists.items()]
        parts += [self.rest] if self.rest else []
        attributes = f" attributes {{{', '.join(parts)}}}" if parts else ""
        yield f"  exec.{self.op} @{self.name}{arena}{attributes} {{"
        if self.arguments:
            yield "  ^bb0(" + ", ".join(f"%{n}: {k}" for n, k in self.arguments) + "):"
        for wanted in ((Get, Alloc), (View,)):
            for value in self.values.values():
                if isinstance(value, wanted):
                    yield "    " + value.text()
        kinds = self.kinds()
        for op in self.body:
            yield "    " + op.text(kinds)
        yield "  }"


def _quoted(name):
    return f'"{name}"'


def _names(text):
    return [name.strip()[1:] for name in text.split(" : ")[0].split(",") if name.strip()]


class Module:
    def __init__(self, text):
        self.bytes, self.target = {}, None
        # The step "train": [[program, times]], and how often programs are to run.
        self.step, self.runs = None, None
        # What is known to be wrong with a kernel, whose text is not looked into.
        self.fault = None
        self.ranges, self.blocks, self.rest, self.axes = {}, {}, [], {}
        self.aliases = []  # of attributes, in front of the module
        block = None
        for line in text.splitlines():
            if line.startswith("#"):
                self.aliases.append(line)
            elif line.startswith("module"):
                self.bytes = {name: int(value) for name, value in _MODULE.findall(line)}
                self.target = (_TARGET.findall(line) or [None])[0]
                if match := _STEP.search(line):
                    self.step = [[name, int(times)] for name, times in
                                 re.findall(r"@(\w+) times (\d+)", match.group(1))]
                if match := _RUNS.search(line):
                    self.runs = {name: int(times) for name, times in
                                 re.findall(r"(\w+) = (\d+) : i64", match.group(1))}
            elif match := _BLOCK.match(line):
                op, name, arena, attributes = match.groups()
                block = self.blocks[name] = Block(op, name, arena and int(arena), attributes)
            elif block and line == "  }":
                block = None
            elif block:
                self._read_op(block, line.strip())
            elif match := _RANGE.match(line):
                name, kind, role, offset, rest = match.groups()
                self.ranges[name] = Range(name, kind, role, int(offset), rest)
            elif line != "}":
                if match := _MESH.match(line):
                    self.axes = {name: int(size) for name, size in
                                 re.findall(r'"(\w+)" = (\d+)', match.group(1))}
                    self.node_size = int(match.group(2) or 1)
                self.rest.append(line)

    @staticmethod
    def _read_op(block, line):
        if line.startswith("^bb0("):
            for argument in line[5:-2].split(", "):
                name, kind = argument.split(": ")
                block.arguments.append((name[1:], kind))
        elif match := _GET.match(line):
            block.values[match.group(1)] = Get(*match.groups())
        elif match := _ALLOC.match(line):
            name, offset, kind = match.groups()
            block.values[name] = Alloc(name, int(offset), kind)
        elif match := _VIEW.match(line):
            name, source, offset, source_kind, kind = match.groups()
            block.values[name] = View(name, source, int(offset), source_kind, kind)
        elif match := _EVENT.match(line):
            op, number, stream = match.groups()
            block.body.append(Event(op, int(number), stream))
        elif match := _WORK.match(line):
            op, what, stream, ins, outs, scratch, rest = match.groups()
            block.body.append(Work(op, what, stream, _names(ins), _names(outs),
                                   _names(scratch or ""), rest or ""))
        elif match := _CALL.match(line):
            callee, operands, events, rest = match.groups()
            block.body.append(Call(callee, _names(operands),
                                   [int(e) for e in events.split(",") if e.strip()],
                                   rest or ""))
        else:
            raise ValueError(f"cannot read: {line}")

    def programs(self):
        return [block for block in self.blocks.values() if block.op == "program"]

    def text(self):
        attributes = ", ".join(f"exec.{n} = {v} : i64" for n, v in self.bytes.items())
        if self.target:
            attributes += f', exec.target = "{self.target}"'
        if self.runs is not None:
            runs = ", ".join(f"{name} = {times} : i64" for name, times in self.runs.items())
            attributes += f", exec.steps = {{train = {{{runs}}}}}"
        if self.step is not None:
            actions = ", ".join(f"#nn.action<@{name} times {times}>"
                                for name, times in self.step)
            attributes += f", nn.steps = {{train = [{actions}]}}"
        lines = self.aliases + [f"module attributes {{{attributes}}} {{"]
        lines += [entry.text() for entry in self.ranges.values()] + self.rest
        for block in self.blocks.values():
            lines += block.lines()
        return "\n".join(lines) + "\n}\n"
