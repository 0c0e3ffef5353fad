#!/usr/bin/env python3
"""Runs the before-and-after examples of the passes' reference.

    passes.py REFERENCE

A block of `mlir` with a line "// becomes" (", with OPTION=VALUE,") is run where
what stands before that line is whole: symbols first, then the body of a
function with the values it takes for granted as arguments. Each line after it
must come out, in order, with values named consistently; `…` is anything. A
block that is not whole is a sketch; the ops that it names must exist. Every
pass of the list below has an example that runs.
"""
import os
import re
import subprocess
import sys

MUST_RUN = ("nn-precision", "fsdp-shard", "fsdp-expand", "nn-fuse", "exec-plan-memory")
NAME = r"%[A-Za-z_][\w.]*|%\d+"


def fsdp_opt(text, *options):
    return subprocess.run(["fsdp-opt", "-", "--allow-unregistered-dialect", *options],
                          input=text, capture_output=True, text=True, check=False)


def statements(text):
    """The text's lines; one that is indented deeper than an op's first line
    and begins with none continues it."""
    lines = []
    for line in text.splitlines():
        if lines and re.match(r"\s{4,}(?![%}…]|\w+\.)", line):
            lines[-1] += " " + line.strip()
        elif line.strip():
            lines.append(line)
    return lines


def as_module(before):
    """The example with its symbols at the top and the rest in a function."""
    lines = statements(before)
    first = next((i for i, line in enumerate(lines) if line.startswith("%")), len(lines))
    top, body = "\n".join(lines[:first]), "\n".join(lines[first:])
    if not body:
        return top
    defined = set()
    for names in re.findall(rf"^((?:(?:{NAME}),? ?)+)=", body, re.M):
        defined.update(re.findall(NAME, names))
    free = [n for n in dict.fromkeys(re.findall(NAME, body)) if n not in defined]
    last = re.match(rf"({NAME})", lines[-1]).group(1)

    def ask(line, answer):
        result = fsdp_opt(f"{top}\nfunc.func @example() {{\n{body}\n{line}\nreturn\n}}")
        found = re.search(answer, result.stderr)
        return found.group(1) if found else sys.exit(f"{before}\n{result.stderr}")

    # The parser says which type a use asks for, and which a value has.
    arguments = ", ".join(
        f"{n}: " + ask(f'{n} = "docs.value"() : () -> none',
                       "previously used here with type '(.*)'") for n in free)
    values = f"{top}\nfunc.func @example({arguments}) {{\n{body}\n"
    wrong = fsdp_opt(f'{values}"docs.use"({last}) : (none) -> ()\nreturn\n}}').stderr
    kind = re.search(r"expects different type than prior uses: 'none' vs '(.*)'", wrong)
    if not kind:
        sys.exit(f"{before}\n{wrong}")
    # What nothing uses may be erased.
    values = values.replace(") {", f") -> {kind.group(1)} {{", 1)
    return f"{values}return {last} : {kind.group(1)}\n}}"


def pattern_of(after):
    seen = set()

    def value(match):
        name = "v_" + re.sub(r"\W", "_", match.group(0)[1:])
        if name in seen:
            return rf"(?P={name})(?![\w#])"
        seen.add(name)
        return rf"(?P<{name}>%[\w.#]+)"

    parts = []
    for line in statements(after):
        line = re.sub(r"\s+", " ", line.strip())
        # In TableGen "}]" ends a description.
        line = line.replace("} ]", "}]").replace("{ |", "{|")
        escaped = re.escape(line).replace(r"\ ", " ").replace("…", ".*?")
        escaped = re.sub(r"%[A-Za-z_](?:\w|\\\.)*|%\d+", value, escaped)
        parts.append(escaped)
    return r".*?\n\s*".join([""] + parts)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        sections = re.split(r"^### ", file.read(), flags=re.M)[1:]
    folder, known = os.path.dirname(sys.argv[1]), set()
    for dialect in ("nn", "fsdp", "exec"):
        with open(os.path.join(folder, f"{dialect}.md"), encoding="utf-8") as file:
            known.update(re.findall(r"^### `([\w.]+)`", file.read(), re.M))
    problems, ran = [], set()
    for section in sections:
        name = section.split("`")[1].lstrip("-")
        for block in re.findall(r"^```mlir\n(.*?)^```", section, re.M | re.S):
            for op in re.findall(r"(?:^ *|= |\{ )((?:nn|fsdp|exec)\.\w+)", block, re.M):
                if op not in known:
                    problems.append(f"{name}: no op is called {op}")
            halves = re.split(r"^// becomes(?:, with (.*),)?\n", block, flags=re.M)
            if len(halves) != 3 or "…" in halves[0] or "..." in halves[0]:
                continue
            before, options, after = halves
            option = f"={options}".replace('"', "") if options else ""
            result = fsdp_opt(as_module(before), f"--{name}{option}")
            ran.add(name)
            output = "\n" + "\n".join(re.sub(r"\s+", " ", line) for line in result.stdout.splitlines())
            if result.returncode or not re.search(pattern_of(after), output, re.S):
                problems.append(f"{name}:\n{result.stderr}{result.stdout}")
    problems += [f"{name}: has no example that runs" for name in MUST_RUN if name not in ran]
    print("\n".join(problems))
    print(f"{os.path.basename(sys.argv[1])}: {len(ran)} passes run, {len(problems)} problems")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
