#!/usr/bin/env python3
"""Parses and verifies every example of the generated reference.

    examples.py REFERENCE SYMBOLS

An op's examples are the `mlir` blocks of its section and the inline code of
the paragraph that begins with "Example:"; an attribute's or type's are the
inline code that begins with `#` or `!`. An example is whole text; the script
adds what stands around it: the declarations in SYMBOLS of the symbols that it
mentions, the program, function or kernel that it belongs to, and one value
for each name that it uses and does not define, with the type that the parser
says the use asks for. `code` (fails: why) must be refused by the op's
verifier. An op without an example fails.
"""
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field

AT_TOP = ("nn.parameter", "nn.buffer", "fsdp.mesh", "exec.range", "exec.program",
          "exec.func", "exec.kernel")
IN_KERNEL = ("exec.load", "exec.store", "exec.column", "exec.reduce", "exec.map",
             "exec.reduce_rows", "exec.yield")


@dataclass
class Example:
    owner: str  # the op, attribute or type
    text: str
    fails: bool
    types: dict = field(default_factory=dict)  # of the undefined values

    def undefined(self):
        """Names that the text uses and does not define."""
        text = re.sub(r'"[^"]*"', "", self.text)
        name = r"%[\w.]+"
        defined = set(re.findall(rf"({name}): ", text))
        for names in re.findall(rf"^\s*((?:{name}(?::\d+)?,? *)+)=", text, re.M):
            defined.update(re.findall(name, names))
        used = dict.fromkeys(re.findall(name, text))
        return [n for n in used if n not in defined]


def read_reference(path):
    """The ops of a reference and all examples."""
    with open(path, encoding="utf-8") as file:
        sections = re.split(r"^### ", file.read(), flags=re.M)[1:]
    ops, examples = [], []
    for section in sections:
        owner = section.split(None, 1)[0].strip("`")
        is_op = "::" in section.split("\n", 1)[0]
        if is_op:
            ops.append(owner)
            for block in re.findall(r"^```mlir\n(.*?)^```", section, re.M | re.S):
                examples.append(Example(owner, block, False))
        inline = r"`((?:[#!]|%|\w+\.)[^`]+)`(?: \((fails): [^)]*\))?"
        paragraphs = (re.findall(r"^Example:(.*?)\n\n", section, re.M | re.S)
                      if is_op else [section])
        for paragraph in paragraphs:
            for text, fails in re.findall(inline, paragraph):
                if is_op or text[0] in "#!":
                    examples.append(Example(owner, text, bool(fails)))
    return ops, examples


def declarations(symbols, example):
    """The paragraphs of `symbols` for what the example mentions."""
    dialect = re.search(r"\b(nn|fsdp|exec)\b", example.text).group(1)
    shared = ("fsdp", "exec" if dialect == "exec" else "nn")
    chosen = []
    for entity in re.split(r"\n(?=[a-z])", symbols):
        head = re.match(r"(nn|fsdp|exec)\.\w+ (@[\w.]+)", entity)
        if not head or head.group(1) not in shared:
            continue
        symbol = re.escape(head.group(2)) + r"(?![\w.]*\w)"
        declared = rf"^(nn|fsdp|exec)\.(mesh|parameter|buffer|range|kernel|func|program) {symbol}"
        if (re.search(symbol, example.text)
                and not re.search(declared, example.text, re.M)):
            chosen.append(entity)
    return "\n".join(chosen)


def kernel_around(example, values):
    """A kernel of 4 x 8 elements whose arguments are the undefined buffers."""
    written = re.findall(r"exec\.(?:store %\w+,|reduce_rows \w+) (%\w+)", example.text)
    buffers = [n for n, t in example.types.items() if t.startswith("memref")]
    buffers.sort(key=lambda name: name in written)
    arguments = [(n, example.types[n]) for n in buffers]
    if not written:
        arguments.append(("%unused", "memref<4x8xf32>"))
    access = ["column" if "<8x" in t else "element" for _, t in arguments]
    reduction = " column_reduction" if "exec.reduce_rows" in example.text else ""
    return (f"exec.kernel @example over(4, 8) access [{', '.join(access)}] outputs 1{reduction} {{\n"
            f"^bb0({', '.join(f'{n}: {t}' for n, t in arguments)}):\n"
            f"{values}{example.text}\n}}")


def wrap(example, symbols, probe=None):
    """The example as a module. `probe` is a name that gets a wrong type after
    its use, so that the parser says the right one."""
    if example.text[0] in "#!":
        body = (f'"docs.attribute"() {{a = {example.text}}} : () -> ()'
                if example.text[0] == "#"
                else f'"docs.value"() : () -> {example.text}')
        return body + "\n"
    top = example.text.startswith(AT_TOP)
    kernel = re.search(r"(?:^|= )([\w.]+)", example.text).group(1) in IN_KERNEL
    values = "".join(f'{n} = "docs.value"() : () -> {t}\n'
                     for n, t in example.types.items()
                     if not (kernel and t.startswith("memref")))
    after = f'{probe} = "docs.value"() : () -> none\n' if probe else ""
    if probe:
        body = f"exec.program @example {{\n{example.text}\n{after}}}"
    elif kernel:
        body = kernel_around(example, values)
    elif top:
        body = example.text
    elif example.owner.startswith("exec."):
        body = f"exec.program @example {{\n{values}{example.text}\n}}"
    else:
        body = f"func.func @example() {{\n{values}{example.text}\nreturn\n}}"
    return f"{declarations(symbols, example)}\n{body}\n"


def run(chunks):
    """The diagnostics of each chunk: (severity, message)."""
    separator = "// -----\n"
    starts, line = [], 1
    for chunk in chunks:
        starts.append(line)
        line += chunk.count("\n") + 1
    done = subprocess.run(["fsdp-opt", "-", "--split-input-file",
                           "--allow-unregistered-dialect"],
                          input=separator.join(chunks), text=True,
                          capture_output=True, check=False)
    results = [[] for _ in chunks]
    pattern = r"^<stdin>:(\d+):\d+: (error|note): (.*)"
    for where, severity, message in re.findall(pattern, done.stderr, re.M):
        index = max(i for i, start in enumerate(starts) if start <= int(where))
        results[index].append((severity, message))
    failed = any(severity == "error" for messages in results for severity, _ in messages)
    if done.returncode != failed:
        sys.exit(f"fsdp-opt ended with {done.returncode}:\n{done.stderr}")
    return results


def infer_types(examples, symbols):
    probes = [(e, name) for e in examples if e.text[0] not in "#!"
              for name in e.undefined()]
    results = run([wrap(e, symbols, name) for e, name in probes])
    for (example, name), messages in zip(probes, results):
        for _, message in messages:
            found = re.search(r"previously used here with type '(.*)'", message)
            if found:
                example.types[name] = found.group(1)


def check(example, messages):
    """What is wrong with an example, or None."""
    errors = [m for severity, m in messages if severity == "error"]
    if not example.fails:
        return errors[0] if errors else None
    if not errors:
        return "is accepted, but it says that it fails"
    if not errors[0].startswith(f"'{example.owner}' op "):
        return f"fails, but not by its verifier: {errors[0]}"
    return None


def main():
    reference, symbols_file = sys.argv[1:]
    with open(symbols_file, encoding="utf-8") as file:
        symbols = file.read()
    ops, examples = read_reference(reference)
    infer_types(examples, symbols)
    results = run([wrap(e, symbols) for e in examples])
    bad = 0
    for op in ops:
        good = [e for e in examples if e.owner == op and not e.fails
                and re.search(rf"\b{re.escape(op)}\b", e.text)]
        if not good:
            print(f"{op}: has no example of itself")
            bad += 1
    for example, messages in zip(examples, results):
        problem = check(example, messages)
        if problem:
            print(f"{example.owner}: {problem}\n{example.text}")
            bad += 1
    print(f"{os.path.basename(reference)}: {len(ops)} ops, "
          f"{len(examples)} examples, {bad} bad")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
