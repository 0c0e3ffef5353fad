#!/usr/bin/env python3
"""Records which commands of the compiler the lit tests run.

    test/compare/record_commands.py build -o test/compare/commands.txt

The tests run with wrappers around fsdp-compile, fsdp-opt, fsdp-trace and
fsdp-interpret. Printed is every command that was run, once, as compare_compilers.py
reads it: files of the repository by their path in it, the output of an earlier
command by that command (`fsdp-trace … > $T/1 && fsdp-compile $T/1 …`), small
texts that a test has made by a path in `$MADE`, a JSON file beside the list. A
command that needs anything else is left out; how many are is printed. A test that
looks at the process of a tool may fail, or wait for ever, since a wrapper is in between:
leave it out with --filter-out.

Part of the tests is recorded with --filter; with --log FOLDER what was recorded
before stays and counts too:

    record_commands.py build --filter passes/ --log /tmp/log -o commands.txt
    record_commands.py build --filter emit/ --log /tmp/log -o commands.txt
"""
import argparse
import collections
import hashlib
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile

TOOLS = ("fsdp-compile", "fsdp-opt", "fsdp-trace", "fsdp-interpret", "split-file")
READERS = ("fsdp-opt", "fsdp-interpret")  # of their input, if they are given no file
SMALL = 3000  # bytes of a text that is written down
SEPARATORS = re.compile(r"([=,{} ])")  # paths stand between them, in options of passes too
# What says only where output goes, or how long it took.
OUTPUT = re.compile(r"--?(o|emit|outputs|timing|v)(=|$)")


def sha(data):
    return hashlib.sha256(data).hexdigest()[:16]


def without_outputs(arguments):
    kept, rest = [], iter(arguments)
    for argument in rest:
        if not OUTPUT.match(argument):
            kept.append(argument)
        elif argument in ("-o", "--outputs"):
            next(rest, None)
    return kept


# ---- In place of a tool -------------------------------------------------------

def read(path):
    with open(path, "rb") as file:
        return file.read()


def keep(log, data):
    """Contents of small texts go to the log; the name of all is their hash."""
    name = sha(data)
    if len(data) <= SMALL:
        with open(f"{log}/{name}", "wb") as file:
            file.write(data)
    return name


def reads_stdin(tool, arguments):
    if "-" in without_outputs(arguments):
        return True
    kind = os.fstat(0).st_mode
    has_file = any(os.path.isfile(a) for a in arguments)
    return tool in READERS and not has_file and (stat.S_ISFIFO(kind) or stat.S_ISREG(kind))


def run_tool(log, tool, program, arguments):
    """Runs the tool and writes down what it was given and what it made."""
    entry = {"tool": tool, "arguments": arguments, "cwd": os.getcwd(), "files": {},
             "folders": []}
    for piece in (p for a in arguments for p in SEPARATORS.split(a)):
        if re.search("[./]", piece) and os.path.isfile(piece):
            entry["files"][piece] = keep(log, read(piece))
        elif "/" in piece and os.path.isdir(piece):
            entry["folders"].append(piece)
    stdin = None
    if reads_stdin(tool, arguments):
        stdin = sys.stdin.buffer.read()
        entry["stdin"] = keep(log, stdin)
    done = subprocess.run([program, *arguments], input=stdin, stdout=subprocess.PIPE)
    entry["status"], entry["stdout"] = done.returncode, sha(done.stdout)
    made = [b for a, b in zip(arguments, arguments[1:]) if a == "-o"]
    if tool == "split-file" and done.returncode == 0:
        made = [os.path.join(folder, name) for folder, _, names in os.walk(arguments[1])
                for name in names]
    entry["made"] = {path: keep(log, read(path)) for path in made if os.path.isfile(path)}
    with open(f"{log}/log.jsonl", "a") as file:
        file.write(json.dumps(entry) + "\n")
    try:
        sys.stdout.buffer.write(done.stdout)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os._exit(1)
    if done.returncode < 0:
        os.kill(os.getpid(), -done.returncode)
    return done.returncode


# ---- The tests ----------------------------------------------------------------

def shadow_build(build, folder, log):
    """A build folder whose tools are the wrappers and all else that of `build`."""
    for part in ("bin", "test"):
        os.makedirs(f"{folder}/{part}")
        for name in os.listdir(f"{build}/{part}"):
            os.symlink(f"{build}/{part}/{name}", f"{folder}/{part}/{name}")
    for name in set(os.listdir(build)) - {"bin", "test"}:
        os.symlink(f"{build}/{name}", f"{folder}/{name}")
    for tool in TOOLS:
        program = f"{build}/bin/{tool}" if tool.startswith("fsdp") else shutil.which(
            tool, path=f"{os.environ['PATH']}:/usr/lib/llvm-22/bin")
        path = f"{folder}/bin/{tool}"
        if os.path.islink(path):
            os.unlink(path)
        with open(path, "w") as file:
            file.write("#!/bin/sh\nexec " + shlex.join(
                [sys.executable, os.path.abspath(__file__), "--as", log, tool, program]) + ' "$@"\n')
        os.chmod(path, 0o755)
    for name in os.listdir(f"{folder}/test"):  # lit writes Output folders into these
        real = os.path.realpath(f"{folder}/test/{name}")
        if os.path.isdir(real):
            os.unlink(f"{folder}/test/{name}")
            os.makedirs(f"{folder}/test/{name}")
            for inner in set(os.listdir(real)) - {"Output"}:
                os.symlink(f"{real}/{inner}", f"{folder}/test/{name}/{inner}")
    site = f"{folder}/test/lit.site.cfg.py"
    text = read(site).decode()
    os.unlink(site)
    with open(site, "w") as file:
        file.write(text.replace(build, folder))
    return re.search('fsdp_source_dir = "(.*)"', text).group(1)


# ---- The list -----------------------------------------------------------------

class Lines:
    """Makes lines of a log."""

    def __init__(self, entries, log, source):
        self.entries, self.log, self.source = entries, log, source
        self.inputs = {}  # small texts that tests have made, by name
        self.left_out = collections.Counter()
        self.producers = {}
        for number, entry in enumerate(entries):
            if entry["status"] == 0:
                for name, path in [(entry["stdout"], None), *((n, p) for p, n in
                                                              entry["made"].items())]:
                    if name != sha(b""):
                        self.producers.setdefault(name, (number, path))

    def file(self, entry, path, name, number, before):
        """How the list calls a file; commands that make it go to `before`."""
        if path and self.inside(entry, path):
            return self.inside(entry, path)
        producer, made = self.producers.get(name, (number, None))
        if producer < number and self.entries[producer]["stdout"] != sha(b""):
            made = None  # printed: the list writes no -o
        if producer < number:
            return self.output_of(producer, made, before)
        if os.path.exists(f"{self.log}/{name}"):
            ending = os.path.splitext(path or "")[1]
            try:
                self.inputs[name + ending] = read(f"{self.log}/{name}").decode()
            except UnicodeDecodeError:
                raise LookupError("a file that is no text") from None
            return f"$MADE/{name}{ending}"
        raise LookupError("a large file that a test has made")

    def output_of(self, number, made, before):
        entry = self.entries[number]
        if entry["tool"] == "split-file":
            text = f"split-file {self.words(number, before, entry['arguments'][:1])} $T/"
            if not any(line.startswith(text) for line in before):
                before.append(f"{text}{len(before) + 1}")
            folder = next(line for line in before if line.startswith(text)).split()[-1]
            return f"{folder}/{os.path.relpath(made, entry['arguments'][1])}"
        emits = [a for a in entry["arguments"] if a.startswith("--emit=")]
        if entry["tool"] == "fsdp-compile" and not emits:
            raise LookupError("a part of an artifact")
        words = self.words(number, before, without_outputs(entry["arguments"]))
        text, target = " ".join([entry["tool"], words, *emits]), f"$T/{len(before) + 1}"
        before.append(f"{text} > {target}")
        return target

    def words(self, number, before, arguments):
        """Arguments for a shell."""
        entry = self.entries[number]
        inputs = [self.argument(entry, argument, number, before) for argument in arguments]
        if "stdin" in entry and ("-" in arguments or entry["tool"] in READERS):
            inputs.append("< " + self.file(entry, None, entry["stdin"], number, before))
        return " ".join(inputs)

    def argument(self, entry, argument, number, before):
        word, literal = "", ""
        for piece in SEPARATORS.split(argument):
            path = self.path(entry, piece, number, before)
            if path is None:
                literal += piece
                continue
            word += (shlex.quote(literal) if literal else "") + path
            literal = ""
        return word + (shlex.quote(literal) if literal or not word else "")

    def path(self, entry, piece, number, before):
        """How the list calls a path; nothing if `piece` is none that it must change."""
        if piece in entry["files"]:
            return self.file(entry, piece, entry["files"][piece], number, before)
        inside = self.inside(entry, piece)
        if piece.startswith("$T/") or (inside and os.path.isabs(piece)):
            return inside or piece
        if piece in entry["folders"] and not inside:
            raise LookupError("a folder that a test has made")
        return f"$T/{os.path.basename(piece)}" if os.path.isabs(piece) else None

    def inside(self, entry, path):
        """The path in the repository, if it is one."""
        full = os.path.realpath(os.path.join(entry["cwd"], path))
        inside = os.path.relpath(full, self.source)
        return None if inside.startswith(("..", "build")) else inside

    def line(self, number):
        entry, before = self.entries[number], []
        arguments = without_outputs(entry["arguments"])
        if entry["status"]:  # a message may be about them
            arguments = ["$T/out" if b == "-o" else a for b, a in
                         zip(["", *entry["arguments"]], entry["arguments"])]
        text = f"{entry['tool']} {self.words(number, before, arguments)}"
        return " && ".join([*before, ("not " if entry["status"] else "") + text])

    def all(self):
        lines = set()
        for number, entry in enumerate(self.entries):
            if entry["tool"] == "split-file":
                continue
            try:
                line = self.line(number).strip()
                line.encode()
                lines.add(line)
            except LookupError as reason:
                self.left_out[str(reason)] += 1
            except UnicodeEncodeError:
                self.left_out["a name that is no text"] += 1
        return sorted(lines)


def main():
    if sys.argv[1:2] == ["--as"]:
        return run_tool(sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="build folder whose tests run")
    parser.add_argument("-o", "--output", required=True, help="the list")
    parser.add_argument("--filter", default="", help="only tests that this expression matches")
    parser.add_argument("--filter-out", default="(?!)", help="and not those that this one matches")
    parser.add_argument("--log", help="folder of what was recorded (default: a new one)")
    parser.add_argument("--no-run", action="store_true", help="only make the list of the log")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    args = parser.parse_args()
    build = os.path.realpath(args.build)
    with tempfile.TemporaryDirectory() as scratch:
        log = os.path.abspath(args.log or f"{scratch}/log")
        os.makedirs(log, exist_ok=True)
        source = shadow_build(build, f"{scratch}/build", log)
        if not args.no_run:
            lit = shutil.which("lit") or "/usr/lib/llvm-22/bin/lit"
            subprocess.run([lit, "-s", "-j", str(args.j), "--filter", args.filter, "--filter-out",
                            args.filter_out, f"{scratch}/build/test"], check=False,
                           env={**os.environ, "FSDP_TEST_NO_CACHE": "1"})  # all compile
        with open(f"{log}/log.jsonl") as file:
            lines = Lines([json.loads(line) for line in file], log, os.path.realpath(source))
        text = lines.all()
        with open(args.output, "w") as file:
            file.write("\n".join(text) + "\n")
        with open(os.path.splitext(args.output)[0] + ".json", "w") as file:
            json.dump(lines.inputs, file, indent=1, sort_keys=True)
            file.write("\n")
    print(f"{len(lines.entries)} commands recorded, {len(text)} different ones written, "
          f"{len(lines.inputs)} texts beside them; left out: "
          + (", ".join(f"{n} with {why}" for why, n in lines.left_out.items()) or "none"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
