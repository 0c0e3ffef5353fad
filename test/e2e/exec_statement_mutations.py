"""Kinds of mutations of what programs and steps state, and of kernels."""
import re

from support import exec_text as text
from exec_mutation_kinds import NothingToDo, choose, mutation
from support.exec_text import View, Work


#===--- What programs and steps state --------------------------------------===#

@mutation
def cut_a_program_short(rng, module):
    body = rng.choice(module.programs()).body
    del body[rng.randrange(len(body)):]


@mutation
def copy_a_part(rng, module):
    """Half of what was written whole."""
    block, op = choose(rng, [(block, op) for block in module.blocks.values() for op in block.body
                             if isinstance(op, Work) and op.op == "copy" and
                             text.elements(block.kinds()[op.ins[0]])[0] > 1])
    for names in (op.ins, op.outs):
        kind = block.kinds()[names[0]]
        count, element = text.elements(kind)
        view = View(f"part{len(block.values)}", names[0], 0, kind,
                    text.memref([count // 2], element))
        block.values[view.name] = view
        names[0] = view.name


def a_list(rng, module, wanted=("reads", "writes", "adds", "clears", "inputs",
                                "outputs")):
    """A list of names that a program states, which is not empty."""
    return choose(rng, [names for program in module.programs()
                        for what, names in program.lists.items() if what in wanted and names])


@mutation
def state_less(rng, module):
    names = a_list(rng, module)
    del names[rng.randrange(len(names))]


@mutation
def state_more(rng, module):
    program = rng.choice(module.programs())
    names = program.lists.setdefault(rng.choice(
        ("reads", "writes", "adds", "clears", "outputs")), [])
    names.append(choose(rng, [name for name in module.ranges if name not in names]))


@mutation
def state_another_range(rng, module):
    names = a_list(rng, module)
    names[rng.randrange(len(names))] = rng.choice([*module.ranges, "nothing"])


@mutation
def state_nothing(rng, module):
    del rng.choice(module.programs()).lists[rng.choice(("reads", "writes"))]


@mutation
def state_no_sum(rng, module):
    lists, what = choose(rng, [(program.lists, what) for program in module.programs()
                               for what in ("adds", "clears") if program.lists.get(what)])
    del lists[what]


def sums_of(module):
    """(block, exec.accumulate, number of a sum) of every sum in f32 that a value in f32 is added to."""
    for block in module.blocks.values():
        kinds = block.kinds()
        for op in block.body:
            if isinstance(op, Work) and op.op == "accumulate":
                for i, name in enumerate(op.outs):
                    if kinds[op.ins[len(op.outs) + i]] == kinds[name]:
                        yield block, op, i


def take_out(block, op, i):
    """Takes sum i out of an exec.accumulate; the names of the sum and of the value."""
    value = op.ins.pop(len(op.outs) + i)
    name = op.outs.pop(i)
    op.ins.pop(i)
    if not op.outs:
        block.body.remove(op)
    return name, value


@mutation
def overwrite_instead_of_adding(rng, module):
    block, op, i = choose(rng, list(sums_of(module)))
    at = block.body.index(op)
    name, value = take_out(block, op, i)
    block.body.insert(at, Work("copy", "", op.stream, [value], [name], [], op.rest))


@mutation
def leave_a_sum_as_it_is(rng, module):
    take_out(*choose(rng, list(sums_of(module))))


@mutation
def add_twice(rng, module):
    """Good: what is added is not looked at, nor how often."""
    block, op, _ = choose(rng, list(sums_of(module)))
    block.body.insert(block.body.index(op),
                      Work(op.op, op.what, op.stream, [*op.ins], [*op.outs], [], op.rest))


@mutation
def add_to_another_sum(rng, module):
    block, op, i = choose(rng, list(sums_of(module)))
    other = choose(rng, [name for name, kind in block.kinds().items()
                         if kind == block.kinds()[op.outs[i]] and name not in op.ins])
    op.ins[i] = op.outs[i] = other


@mutation
def clear_to_something_else(rng, module):
    block, op = choose(rng, [(block, op) for block in module.blocks.values()
                             for op in block.body
                             if isinstance(op, Work) and op.op == "fill_zero"])
    kinds = block.kinds()
    op.op, op.ins = "copy", [choose(rng, [name for name, kind in kinds.items() if
                                          kind == kinds[op.outs[0]] and name != op.outs[0]])]


@mutation
def begin_with_a_value(rng, module):
    """Good of what is no sum."""
    zeros = [entry for entry in module.ranges.values() if "init = #nn.zeros" in entry.rest]
    sums = {name for program in module.programs() for name in program.lists.get("adds", [])}
    entry = choose(rng, [entry for entry in zeros if entry.name in sums] or zeros)
    entry.rest = entry.rest.replace("init = #nn.zeros", "init = #nn.ones")


@mutation
def give_an_input_other_rows(rng, module):
    """Good where no slice of a step depends on it."""
    entry = choose(rng, [entry for entry in module.ranges.values() if entry.role == "input" and
                         re.search(r"full = tensor<\d+x", entry.rest)])
    entry.rest = re.sub(r"full = tensor<(\d+)x",
                        lambda match: f"full = tensor<{int(match.group(1)) * rng.choice((2, 3))}x",
                        entry.rest)


def a_step(module):
    if module.step is None:
        raise NothingToDo
    return module.step


@mutation
def drop_an_action(rng, module):
    step = a_step(module)
    del step[rng.randrange(len(step))]


@mutation
def repeat_an_action(rng, module):
    step = a_step(module)
    step.insert(rng.randint(0, len(step)), list(rng.choice(step)))


@mutation
def move_an_action(rng, module):
    step = a_step(module)
    step.insert(rng.randrange(len(step)), step.pop(rng.randrange(len(step))))


@mutation
def run_a_program_more_often(rng, module):
    rng.choice(a_step(module))[1] += rng.choice((1, 2))


@mutation
def agree_on_another_number_of_runs(rng, module):
    """Good where a program may run as often as one likes."""
    action = rng.choice(a_step(module))
    action[1] = module.runs[action[0]] = action[1] + rng.choice((1, 2))


@mutation
def agree_on_leaving_a_program_out(rng, module):
    step = a_step(module)
    name, _ = step.pop(rng.randrange(len(step)))
    del module.runs[name]


@mutation
def drop_a_program(rng, module):
    step = a_step(module)
    name, _ = step.pop(rng.randrange(len(step)))
    del module.blocks[name]


#===--- Kernels, of which the plain check is told what is wrong ------------===#

KERNEL = re.compile(r"  exec\.kernel @\S+ over\((\d+), (\d+)\) access \[(.*?)\] outputs (\d+)")


def kernels(module):
    """[(lines, cols, {argument: (access, type)})]; lines are positions."""
    found = []
    for start, line in enumerate(module.rest):
        if match := KERNEL.match(line):
            end = module.rest.index("  }", start)
            arguments = re.findall(r"(%\w+): (\S+?)[,)]", module.rest[start + 1])
            found.append((range(start + 2, end), int(match.group(2)),
                          {name: (access, kind) for (name, kind), access in
                           zip(arguments, match.group(3).split(", "))}))
    return found


def kernel_line(rng, module, pattern, where):
    """A random line of a kernel, as (position, match, cols, arguments)."""
    return choose(rng, [(i, match, cols, arguments) for lines, cols, arguments in kernels(module)
                        for i in lines if (match := re.match(pattern, module.rest[i])) and
                        where(match, cols, arguments)])


@mutation
def store_a_row_s_value_for_every_column(rng, module):
    """A store after an exec.map goes into it."""
    def is_behind_map(i):
        outside = [line for line in module.rest[:i - 1] if not line.startswith("      ")]
        return module.rest[i - 1] == "    }" and outside[-1] == "    exec.map {"
    i = choose(rng, [i for lines, cols, arguments in kernels(module) for i in lines
                     if (match := re.match(r"    exec\.store %\w+, (%\w+)", module.rest[i])) and
                     cols > 1 and arguments[match.group(1)][0] == "row" and is_behind_map(i)])
    module.rest.insert(i - 1, "  " + module.rest.pop(i))
    module.fault = "a race in a kernel"


ELEMENT = r"( +%\w+ = exec\.load )(%\w+)( : \S+ -> f32)"


@mutation
def load_from_outside_of_the_row(rng, module):
    i, match, cols, _ = kernel_line(
        rng, module, ELEMENT, lambda match, cols, arguments:
        match.group(1).startswith("      ") and arguments[match.group(2)][0] == "element")
    load, source, kind = match.groups()
    module.rest[i:i + 1] = [f"      %outside = arith.constant {rng.choice((-1, cols, cols + 7))} : i32",
                            f"{load}{source} at %outside{kind}"]
    module.fault = "a load outside of the row"


@mutation
def forget_a_store(rng, module):
    i, *_ = kernel_line(rng, module, r" +exec\.store ", lambda *_: True)
    del module.rest[i]
    module.fault = "an output that a kernel does not write"


@mutation
def read_an_output_too_early(rng, module):
    def outputs(match, arguments):
        return [name for name, kind in arguments.items()
                if name.startswith("%out") and kind == arguments[match.group(2)]]
    i, match, _, arguments = kernel_line(
        rng, module, ELEMENT, lambda match, cols, arguments: outputs(match, arguments))
    load, _, kind = match.groups()
    module.rest[i] = load + rng.choice(outputs(match, arguments)) + kind
    module.fault = "an output that is read before it is written"
