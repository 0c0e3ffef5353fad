"""What the calls of a step read and write, by the exec program that was compiled.

Needs the source tree, as all of prepare does: the text of a program is read by
the tests' reader, which shares nothing with the compiler."""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "test"))

from support import exec_text  # noqa: E402

# The trace calls some operations otherwise.
NAMES = {"gemm_add": "gemm"}


def _gemm(op, kinds):
    """Its name in a trace, with sizes, and its operations."""
    (lhs, element), (out, _) = (exec_text.shape(kinds[name]) for name in (op.ins[0], op.outs[0]))
    turned = ["t" if flag in op.rest else "n" for flag in ("transpose_lhs", "transpose_rhs")]
    batch = 1
    for size in out[:-2]:
        batch *= size
    depth = lhs[-2] if turned[0] == "t" else lhs[-1]
    sizes = [batch, out[-2], out[-1], depth]
    name = f"gemm {''.join(turned)} {element}"
    return f"{name} {'x'.join(map(str, sizes))}", 2 * batch * out[-2] * out[-1] * depth


def _touched(op):
    """Its operands; of an embedding's table only the rows that it copies, and copies of
    parameters once, which are written and not read."""
    if op.op == "embedding":
        return [op.ins[0], *op.outs, *op.outs]
    written = op.outs[:len(op.outs) * 3 // 4] if op.op == "adamw_copy" else op.outs
    return op.ins + written


def _issued(module, block):
    """Its operations and those of what it calls, with the types of their values."""
    kinds = block.kinds()
    for op in block.body:
        if isinstance(op, exec_text.Call):
            yield from _issued(module, module.blocks[op.callee])
        else:
            yield op, kinds


def of_step(path, program):
    """Of every kind of call in a program: how many there are, bytes of what they read
    and write, and operations of matmuls. Then calls and commands to streams that it
    has in all."""
    with open(path) as file:
        module = exec_text.Module(file.read())
    block, = (block for block in module.programs() if block.name == program)
    found, calls, commands = {}, 0, 0
    for op, names in _issued(module, block):
        commands += 1
        if isinstance(op, exec_text.Event):
            continue
        calls += 1
        flops = 0
        name = op.what.strip().lstrip("@") if op.op == "launch" else NAMES.get(op.op, op.op)
        if name == "gemm":
            name, flops = _gemm(op, names)
        entry = found.setdefault(name, {"calls": 0, "bytes": 0, "flops": 0})
        entry["calls"] += 1
        entry["bytes"] += sum(exec_text.bytes_of(names[value]) for value in _touched(op))
        entry["flops"] += flops
    return {"kinds": found, "calls": calls, "commands": commands}
