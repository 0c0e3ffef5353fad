#!/usr/bin/env python3
"""Draws faults of the sources, plants one after the other, and says which test finds it.

    test/compare/plant_faults.py draw build --seed 1 -o faults
    test/compare/plant_faults.py run faults --folder /var/tmp/faults

`draw` writes 20 patches, 01.patch to 20.patch, each a small fault of a .cpp file: a flipped
comparison, off by one, a dropped statement, a wrong enumerator, … Every room (lib/Memory,
passes/Exec, …) has its turn; the same seed and commit give the same patches; each compiles,
for which it needs a build with compile_commands.json.

`run` plants them in a git worktree of its own, FOLDER/tree at --commit, which it builds once
and keeps: the tree that you work in stays as it is. After each fault it builds, then runs the
default run's tests, those that are fast first, up to the first that fails. Where a file has
been moved since the draw, the fault goes where its lines are now, so that one draw judges the
tests before and after a change. What nothing finds may change no behaviour: read the patch.

A whole run of 20: the build, once; then per fault a build of what it touches and the tests up
to the one that finds it, at most a default run. --quick leaves out tools/run-tests.sh after
the release build's tests; --tests 'COMMAND' and --targets plant with a part of either alone.
Exit status 0: all faults are found.
"""
import argparse
import collections
import difflib
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time

ROOMS = ("lib", "passes", "dialects", "runtime", "tools")
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|R"(\w*)\(.*?\)\1"'
                     r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S | re.M)
# Faults here change nothing that can be seen, or how long something waits.
SKIPPED = re.compile(r"\b(assert|static_assert|LLVM_DEBUG|llvm_unreachable|reserve|emitRemark"
                     r"|chrono|seconds|sleep_for)\b")
OPPOSITE = {"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "&&": "||",
            "||": "&&", "true": "false", "false": "true", "min": "max", "max": "min"}


def swapped(match):
    return OPPOSITE[match.group()]


# Kind, where in a line, and what stands there instead.
KINDS = [
    ("a flipped comparison", re.compile(r"(?<= )(==|!=|<=|>=|<|>)(?= )"), swapped),
    ("a flipped condition", re.compile(r"(?<= )(&&|\|\|)(?= )|\b(true|false)\b(?=[,;)])"), swapped),
    ("a missing negation", re.compile(r"(?<=\()!(?=\w)"), lambda match: ""),
    ("off by one", re.compile(r" [+-] 1\b(?!\.)"), lambda match: ""),
    ("off by one", re.compile(r"(?<=[ (=])[0-9](?=[;,) ])(?! *>)"),
     lambda match: str(int(match.group()) + 1)),
    ("the other extreme", re.compile(r"(?<=std::)(min|max)(?=\()"), swapped),
    ("a dropped statement", re.compile(
        r"(?<=^)(\s+)(?!return|using|delete|co_|break|continue|throw|goto)"
        r"(?:[\w.:>\[\]-]+\([^;]*\)|[\w.>\[\]()*-]+ [-+*|&]?= [^;]*|\+\+[\w.>-]+);$"),
     lambda match: match.group(1) + ";"),
]


def git(tree, *arguments, **options):
    return subprocess.run(["git", "-C", tree, *arguments], check=True, text=True,
                          stdout=subprocess.PIPE, **options).stdout


def sources(tree):
    return [path for path in git(tree, "ls-files", *(f"{room}/*.cpp" for room in ROOMS)).split()
            if os.path.exists(f"{tree}/{path}")]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# ---- Draw -----------------------------------------------------------------------

def enumerators(tree):
    """{enum: its enumerators}, of every enum class of the tree."""
    enums = {}
    for path in git(tree, "ls-files", "*.h", "*.cpp").split():
        text = NO_CODE.sub(" ", read(f"{tree}/{path}"))
        for name, body in re.findall(r"enum class (\w+)[^{;]*\{([^}]*)\}", text):
            enums[name] = re.findall(r"(?:^|,)\s*(\w+)", body)
    return enums


def sites(text, enums):
    """{kind: [(line, column, end, what stands there instead)]} of a source."""
    code = NO_CODE.sub(lambda match: re.sub(r"[^\n]", "\0", match.group()), text)
    found = collections.defaultdict(list)
    begins = True  # a statement
    for number, line in enumerate(code.split("\n")):
        words = line.strip("\0 ")
        if not words:
            continue
        is_start, begins = begins, words[-1] in ";{})"
        if SKIPPED.search(line):
            continue
        for kind, pattern, instead in KINDS:
            if kind == "a dropped statement" and not is_start:
                continue
            for match in pattern.finditer(line):
                found[kind].append((number, match.start(), match.end(), instead(match)))
        for match in re.finditer(r"\b(\w+)::(\w+)\b(?!\s*[(<:])", line):
            others = set(enums.get(match.group(1), ())) - {match.group(2)}
            if match.group(2) in enums.get(match.group(1), ()):
                found["a wrong enumerator"] += [(number, match.start(2), match.end(2), other)
                                                for other in sorted(others)]
    return found


def change(text, site):
    number, start, end, instead = site
    lines = text.split("\n")
    lines[number] = lines[number][:start] + instead + lines[number][end:]
    return "\n".join(lines)


def compiles(commands, tree, path, text):
    """Whether the compiler takes `text` in place of the file; objects are not made."""
    full = os.path.realpath(f"{tree}/{path}")
    command = commands.get(full)
    if not command:
        return False  # in no library of this build
    with tempfile.TemporaryDirectory() as scratch:
        changed = f"{scratch}/{os.path.basename(path)}"
        write(changed, text)
        words = shlex.split(command["command"])
        words[words.index("-o") + 1] = f"{scratch}/object"
        words = [changed if word == full else word for word in words]
        words += ["-iquote", os.path.dirname(full), "-fsyntax-only", "-w"]
        return not subprocess.run(words, cwd=command["directory"], capture_output=True).returncode


def draw(args):
    tree, chance = git(".", "rev-parse", "--show-toplevel").strip(), random.Random(args.seed)
    if os.path.exists(args.output) and os.listdir(args.output):
        sys.exit(f"plant_faults.py: {args.output} is not empty")
    commands = {os.path.realpath(c["file"]): c
                for c in json.loads(read(f"{args.build}/compile_commands.json"))}
    enums, rooms = enumerators(tree), collections.defaultdict(list)
    for path in sources(tree):
        rooms["/".join(path.split("/")[:-1][:2])].append(path)
    rooms = [paths for room, paths in sorted(rooms.items()) if re.search(args.rooms, room)]
    chance.shuffle(rooms)
    os.makedirs(args.output, exist_ok=True)
    made, turn = 0, 0
    while made < args.count:
        path = chance.choice(rooms[turn % len(rooms)])
        turn += 1
        if turn > 100 * args.count:
            sys.exit(f"plant_faults.py: only {made} faults found")
        text = read(f"{tree}/{path}")
        found = sites(text, enums)
        if not found:
            continue
        kind = chance.choice(sorted(found))
        changed = change(text, chance.choice(found[kind]))
        if not compiles(commands, tree, path, changed):
            continue
        made += 1
        diff = "".join(difflib.unified_diff(text.splitlines(True), changed.splitlines(True),
                                            f"a/{path}", f"b/{path}"))
        write(f"{args.output}/{made:02}.patch", f"{kind}\n{diff}")
        print(f"{made:02}: {kind}\n{diff}", flush=True)
    return 0


# ---- Run ------------------------------------------------------------------------

def plant(tree, patch):
    """The file that the fault went to; nothing if its lines are not there or not alone."""
    done = subprocess.run(["git", "-C", tree, "apply", "-"], input=patch, text=True,
                          capture_output=True)
    if not done.returncode:
        return re.search(r"^\+\+\+ b/(.*)", patch, re.M).group(1)
    lines = [line for line in patch.splitlines() if re.match("[ +-]", line)][2:]
    while lines:
        old = "\n".join(line[1:] for line in lines if line[0] != "+")
        new = "\n".join(line[1:] for line in lines if line[0] != "-")
        found = [path for path in sources(tree) if old in read(f"{tree}/{path}")]
        if len(found) == 1 and read(f"{tree}/{found[0]}").count(old) == 1:
            write(f"{tree}/{found[0]}", read(f"{tree}/{found[0]}").replace(old, new))
            return found[0]
        if lines[0][0] != " " and lines[-1][0] != " ":
            return None
        lines = lines[lines[0][0] == " ":len(lines) - (lines[-1][0] == " ")]
    return None


def default_tests(quick):
    lit = "/usr/lib/llvm-22/bin/lit -s --max-failures 1 build/test"
    fast = "dialects/|passes/|pipelines/|emit/"
    steps = [f"{lit} --filter '{fast}' --filter-out cuda", "ctest --test-dir build "
             "--stop-on-failure --output-on-failure -j 4", f"{lit} --filter-out '^({fast})'"]
    return steps if quick else [*steps, "tools/run-tests.sh"]


def found_by(tree, steps, limit):
    """The test that fails, or nothing."""
    for step in steps:
        try:
            done = subprocess.run(["bash", "-c", step], cwd=tree, text=True, timeout=limit,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return f"{step} does not end"
        if done.returncode:
            names = re.findall(r"^  fsdp :: (.*)|^\[  FAILED  \] ([\w./]+)(?: \(|$)"
                               r"|\d+ - (\S+) \(", done.stdout, re.M)
            return ", ".join(dict.fromkeys("".join(name) for name in names)) or step
    return None


def run(args):
    tree = f"{os.path.abspath(args.folder)}/tree"
    if not os.path.exists(tree):
        git(".", "worktree", "add", "--detach", tree, args.commit)
    git(tree, "checkout", "--quiet", "--force", "--detach", git(".", "rev-parse", args.commit).strip())
    build = ["ninja", "-C", f"{tree}/build", *args.targets.split()]
    start = time.monotonic()
    subprocess.run(["cmake", "--preset", "release", "-S", tree, "-B", f"{tree}/build",
                    *args.configure.split()], check=True, stdout=subprocess.DEVNULL, cwd=tree)
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    steps = args.tests or default_tests(args.quick)
    print(f"{tree} built in {time.monotonic() - start:.0f} s", flush=True)
    where = args.only.split(",") if args.only else sorted(
        name[:-6] for name in os.listdir(args.faults) if name.endswith(".patch"))
    verdicts = collections.Counter()
    for name in where:
        kind, patch = read(f"{args.faults}/{name}.patch").split("\n", 1)
        start = time.monotonic()
        try:
            path = plant(tree, patch)
            built = path and subprocess.run(build, capture_output=True, text=True)
            test = built and not built.returncode and found_by(tree, steps, args.limit)
        finally:
            git(tree, "checkout", "--quiet", "--force", ".")
        verdict = ("not planted: its lines are not here" if not path else
                   "not built: " + built.stdout[-500:] if built.returncode else
                   f"found by {test}" if test else "NOT FOUND")
        verdicts[verdict.split(" by ")[0].split(":")[0]] += 1
        print(f"{name}: {kind} in {path}: {verdict} ({time.monotonic() - start:.0f} s)", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    return 0 if set(verdicts) == {"found"} else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    drawing = commands.add_parser("draw", help="write patches")
    drawing.add_argument("build", help="build folder of this tree")
    drawing.add_argument("--seed", type=int, default=1)
    drawing.add_argument("--count", type=int, default=20)
    drawing.add_argument("--rooms", default="", help="only rooms that this expression matches")
    drawing.add_argument("-o", "--output", required=True, help="folder of the patches")
    drawing.set_defaults(action=draw)
    running = commands.add_parser("run", help="plant patches and run tests")
    running.add_argument("faults", help="folder of patches")
    running.add_argument("--folder", required=True, help="of the worktree and its build; kept")
    running.add_argument("--commit", default="HEAD", help="what the faults are planted in")
    running.add_argument("--only", help="names of patches, with commas")
    running.add_argument("--quick", action="store_true", help="the release build's tests alone")
    running.add_argument("--tests", action="append", help="run this in the tree instead (repeated)")
    running.add_argument("--targets", default="", help="of ninja, with spaces (default: all)")
    running.add_argument("--configure", default="-DFSDP_BUILD_TESTS=ON -DFSDP_HOST_CXX=clang++-22",
                         help="settings of cmake (default: as tools/run-tests.sh has them)")
    running.add_argument("--limit", type=int, default=3600, help="seconds of one step")
    running.set_defaults(action=run)
    args = parser.parse_args()
    return args.action(args)


if __name__ == "__main__":
    sys.exit(main())
