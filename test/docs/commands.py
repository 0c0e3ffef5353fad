#!/usr/bin/env python3
"""Runs the commands of a page of the documentation and compares their output.

    commands.py PAGE SOURCE BUILD FOLDER

The commands are the lines of the `sh` blocks and inline code that begins with
a tool (`fsdp-opt x.mlir …`). They run in order, in one shell, in FOLDER, which
has the layout of the repository with the build in `build`. A command must
succeed, or fail if its comment begins with "# fails".

A block without commands after a `sh` block is output: a block of `mlir` is an
excerpt of the file that the last command wrote with -o, a block without a
language is what the commands printed. `…` stands for the rest of a line, or,
alone, for any lines; numbered values (%12) may have other numbers. A block of
`toml` that begins with "# NAME.toml" is that file.
"""
import os
import re
import shutil
import subprocess
import sys

from support import runs

# Commands that do not run as they stand: the first words, what runs instead,
# and why. All of it is checked against the pages, so nothing here is stale.
INSTEAD = {
    "README.md": [
        ("tools/train-example.sh",
         "tools/train-example.sh --training.steps 2 --lr_scheduler.warmup_steps 0 "
         "--validation.enable false --sample.length 4",
         "2,600 steps take minutes"),
        ("tools/run-tests.sh", "tools/run-tests.sh --help", "this test is a part of it"),
        ("fsdp-interpret x.mlir --seed 1",
         "fsdp-trace llama3_debug --seq 4 --set dim=32 -o y.mlir && fsdp-interpret y.mlir --seed 1",
         "formulas take half a minute for a model of this size"),
    ],
    "CONTRIBUTING.md": [
        ("cmake --preset release && ninja -C build",
         "cmake --list-presets | grep -q '\"release\"'", "builds everything"),
        ("tools/run-tests.sh", "tools/run-tests.sh --help", "this test is a part of it"),
        ("ninja -C build ", "ninja -C $BUILD -t query reference check-fsdp",
         "this test is a part of it"),
        ("tools/run-clang-tidy.sh --since HEAD", "tools/run-clang-tidy.sh --help",
         "takes minutes, and clang-tidy may be missing"),
        ("cmake --preset runtime", "cmake --list-presets | grep -q '\"runtime\"'",
         "builds the runtime again"),
    ],
    "docs/tutorial.md": [
        ("bible ", "bible -f gen1:1-rev22:21 > out/bible.txt || cp text out/bible.txt",
         "the package may be missing"),
        ("fsdp-run out/bible --config",
         "fsdp-run out/bible --config examples/bible.toml -n 2 --training.steps 2 "
         "--lr_scheduler.warmup_steps 0 --validation.enable false --sample.length 4 "
         "--dump state.safetensors",
         "2,600 steps take minutes"),
    ],
    "docs/extending.md": [
        ("cmake --preset sanitize", "cmake --list-presets | grep -q '\"sanitize\"'",
         "builds half of the project again"),
        ("ninja -C build", "ninja -C $BUILD -t query reference check-fsdp",
         "this test is a part of it"),
    ],
    "docs/performance.md": [
        ("test/benchmarks/training_speed.py", "test/benchmarks/training_speed.py --help",
         "needs PyTorch and minutes"),
        ("test/benchmarks/compare_builds.py", "test/benchmarks/compare_builds.py --help",
         "measures for minutes"),
        ("test/benchmarks/compile_time.py", "test/benchmarks/compile_time.py --help",
         "measures for a minute"),
        ("FSDP_TRACE=trace",
         "fsdp-compile --config run.toml -o out/artifact && FSDP_TRACE=trace fsdp-run out/artifact "
         "--config run.toml -n 2 --job.dump_folder out/run",
         "the page's command line names no run"),
    ],
}
TOOL = r"(?:fsdp-[a-z]+|ninja|cmake|tools/\S+|test/\S+)"


def read_page(path):
    """The page's pieces in order: (kind, text, line); kind is the language of a
    block or "inline"."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    pieces, block = [], None
    for number, line in enumerate(lines, 1):
        if line.startswith("```"):
            if block is None:
                block = (line[3:], [], number)
            else:
                pieces.append((block[0], "\n".join(block[1]), block[2]))
                block = None
        elif block is not None:
            block[1].append(line)
        else:
            for text in re.findall(r"`([^`]+)`", line):
                if re.match(rf"{TOOL} |FSDP_TRACE=", text):
                    pieces.append(("inline", text.rstrip("… "), number))
    return pieces


def commands_of(text):
    """(command, must fail) of a sh block; `\\` continues a line."""
    commands = []
    for line in text.replace("\\\n", " ").split("\n"):
        if line.strip():
            command, comment = re.fullmatch(r"(.*?)(?:\s+#\s(.*))?", line).groups()
            commands.append((command, (comment or "").startswith("fails")))
    return commands


def pattern_of(lines):
    """A regular expression for lines of an excerpt."""
    seen, pattern = set(), ""

    def value(match):
        name = "v" + match.group(1)
        if name in seen:
            return rf"%(?P={name})\b"
        seen.add(name)
        return rf"%(?P<{name}>\d+)\b"

    for line in lines:
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
            continue
        line = re.escape(line.strip()).replace("…", ".*").replace(r"\ ", " ")
        pattern += r"[ \t]*" + re.sub(r"%(\d+)\b", value, line) + r"[ \t]*\n"
    return pattern


def mismatch(excerpt, output):
    """The first line of the excerpt that is not in the output, or None."""
    lines = excerpt.split("\n")
    text = "\n" + output.rstrip("\n") + "\n"
    for count in range(1, len(lines) + 1):
        if not re.search(r"(?<=\n)" + pattern_of(lines[:count]), text):
            return lines[count - 1]
    return None


class Page:
    def __init__(self, page, folder):
        self.page, self.folder = page, folder
        self.instead = INSTEAD.get(page, [])
        self.used, self.problems, self.count = set(), [], 0
        self.script = ["cd " + folder]
        self.outputs = []  # (excerpt, line, file of the output)

    def add_command(self, command, fails, line):
        verbatim = True
        for prefix, replacement, _ in self.instead:
            if command.startswith(prefix):
                self.used.add(prefix)
                command, verbatim = replacement, False
        log = f"log.{self.count}"
        self.count += 1
        status = "!" if fails else ""
        # A group, not a subshell: `export` is for the commands that follow.
        self.script.append(f"{status} {{ {command}\n}} > {log} 2>&1 || "
                           f"echo {self.count - 1} {line} >> bad")
        return log, command, verbatim

    def read(self, source):
        """Fills the script and the outputs to compare."""
        logs, written = [], None
        for kind, text, line in read_page(os.path.join(source, self.page)):
            if kind in ("sh", "inline"):
                logs, written = [], None
                commands = [(text, False)] if kind == "inline" else commands_of(text)
                for command, fails in commands:
                    log, run, verbatim = self.add_command(command, fails, line)
                    logs.append(log if verbatim else None)
                    target = re.search(r" -o (\S+)", run)
                    written = target.group(1) if target else written
            elif kind == "toml":
                name = re.match(r"# (\S+\.toml)\n", text).group(1)
                with open(os.path.join(self.folder, name), "w",
                          encoding="utf-8") as file:
                    file.write(text)
            elif kind == "mlir" and written:
                self.outputs.append((text, line, [written]))
            elif kind == "" and logs and None not in logs:
                self.outputs.append((text, line, logs))
        for prefix, _, _ in self.instead:
            if prefix not in self.used:
                self.problems.append(f"{prefix} is in INSTEAD and not on the page")

    def run(self, build):
        environment = dict(os.environ, BUILD=build)
        environment.pop("FSDP_BUILD_DIR", None)
        subprocess.run(["bash", "-o", "pipefail", "-c", "\n".join(self.script)],
                       check=True, env=environment)
        bad = os.path.join(self.folder, "bad")
        if os.path.exists(bad):
            with open(bad, encoding="utf-8") as file:
                for number, line in (entry.split() for entry in file):
                    with open(f"{self.folder}/log.{number}", encoding="utf-8") as log:
                        command = self.script[int(number) + 1].split("\n", 1)[0]
                        self.problems.append(f"{self.page}:{line}: {command}\n{log.read()}")

    def compare(self):
        for excerpt, line, files in self.outputs:
            output = ""
            for name in files:
                with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                    output += file.read()
            wrong = mismatch(excerpt, output)
            if wrong is not None:
                self.problems.append(f"{self.page}:{line}: not in the output: {wrong}")


def prepare(folder, source, build):
    """The repository's layout, and the files that pages take for granted."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "out"))
    # Copied, because scripts take the folder above their own for the root.
    for name in ("tools", "examples"):
        shutil.copytree(os.path.join(source, name), os.path.join(folder, name))
    for name in ("test", "docs", "CMakePresets.json", "LICENSE"):
        os.symlink(os.path.join(source, name), os.path.join(folder, name))
    os.mkdir(os.path.join(folder, "build"))
    for name in ("bin", "lib", "test"):
        os.symlink(os.path.join(build, name), os.path.join(folder, "build", name))
    # A page may ask for a build; here everything is built.
    with open(os.path.join(folder, "build", "build.ninja"), "w", encoding="utf-8") as file:
        file.write("build fsdp-compile fsdp-run: phony\n")
    runs.write_text(os.path.join(folder, "text"))
    with open(runs.CONFIG, encoding="utf-8") as tiny:
        config = tiny.read().replace("[training]", '[training]\ndataset_path = "text"')
    with open(os.path.join(folder, "run.toml"), "w", encoding="utf-8") as file:
        file.write(config + "\n[parallelism]\ndata_parallel_shard_degree = 2\n")
    subprocess.run(["fsdp-trace", "llama3_debug", "--batch", "8", "--set", "n_layers=2",
                    "-o", os.path.join(folder, "x.mlir")], check=True)


def main():
    name, source, build, folder = sys.argv[1:]
    prepare(folder, source, build)
    page = Page(name, folder)
    page.read(source)
    page.run(build)
    page.compare()
    for problem in page.problems:
        print(problem)
    print(f"{name}: {page.count} commands, {len(page.outputs)} outputs, "
          f"{len(page.problems)} problems")
    return bool(page.problems)


if __name__ == "__main__":
    sys.exit(main())
