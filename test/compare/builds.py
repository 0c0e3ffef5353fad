"""Two builds that are compared: runs their tools, and finds how what they say differs."""
import collections
import glob
import hashlib
import itertools
import math
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SMALL_ARENA, SMALL_RANKS = 16 << 20, 4  # what is trained
# What differs from run to run, names of classes, and digests.
NOISE = [(re.compile(pattern, re.M), text) for pattern, text in (
    (r"/tmp/fsdp-compile-\w+", "/tmp/work"),
    (r", \d+\.\d s$", ", ... s"),
    (r"(IR Dump After) .* \(", r"\1 ("),
    (r"rank \d+: ", "rank N: "),  # who fails first
    (r'"(sha256|manifest)": "[0-9a-f]+"', r'"\1": "..."'))]  # of texts that are compared

Said = collections.namedtuple("Said", "status text messages")


class Build:
    def __init__(self, name, folder, include):
        self.name, self.folder = name, os.path.abspath(folder)
        self.include = [f"--runtime-include={os.path.abspath(include)}"] if include else []
        if not os.access(f"{self.folder}/bin/fsdp-compile", os.X_OK):
            sys.exit(f"compare_compilers.py: {self.folder}/bin has no fsdp-compile; "
                     "name a build folder, and build it first")

    def run(self, line, place, compiles=False):
        """What a line says, in the folder `place`."""
        tools = "" if compiles else f"{HERE}/Inputs/compilers:"  # write down what they were given
        path = f"{tools}{self.folder}/bin:/usr/lib/llvm-22/bin:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "T": "scratch", "MADE": "made",
                       "OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        shutil.rmtree(f"{place}/scratch", ignore_errors=True)
        os.makedirs(f"{place}/scratch")
        try:
            done = subprocess.run(["bash", "-c", line], cwd=place, env=environment, timeout=900,
                                  stdin=subprocess.DEVNULL, capture_output=True)
        except subprocess.TimeoutExpired:
            return Said(-1, "", "not ended within 900 s")
        return Said(done.returncode, *(self.clean(text.decode(errors="replace"), place)
                                       for text in (done.stdout, done.stderr)))

    def clean(self, text, place):
        return text.replace(self.folder, "$BUILD").replace(place, "$PLACE")


class Rules:
    def __init__(self, path):
        self.rules, self.used, why = [], collections.Counter(), ""
        with open(path) as file:
            lines = file.read().splitlines()
        for number, line in enumerate(lines, 1):
            if line.startswith("#") or not line.strip():
                why = line if line.strip() else ""
                continue
            match = re.fullmatch(r"([\w*,]+): (.+?) (<?)=>(?: (.*))?", line)
            if not match or not why:
                sys.exit(f"{path}:{number}: " + ("write KINDS: PATTERN => TEXT" if why else
                                                 "a comment above says why this is expected"))
            kinds, pattern, both, text = match.groups()
            self.rules.append((line, kinds.split(","), re.compile(pattern, re.M), bool(both),
                               text or ""))

    @staticmethod
    def without_noise(text):
        for pattern, instead in NOISE:
            text = pattern.sub(instead, text)
        return text

    def is_gone(self, messages):
        """Whether the second build refuses what the first one had, as a rule says."""
        return self.apply("gone", messages) != messages

    def apply(self, kind, text, is_after=False):
        for line, kinds, pattern, both, instead in self.rules:
            wanted = kind in kinds or ("*" in kinds and kind not in ("input", "gone"))
            if wanted and (both or not is_after):
                text, count = pattern.subn(instead, text)
                self.used[line] += bool(count)
        return text


def read(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def first_difference(before, after):
    """(after which pass, a line before, the line after), or nothing."""
    if before == after:
        return None
    left, right, where = before.splitlines(), after.splitlines(), ""
    for a, b in itertools.zip_longest(left, right, fillvalue="(ends)"):
        if a != b:
            start = max(0, len(os.path.commonprefix([a, b])) - 80)
            return where, *("..." * bool(start) + line[start:start + 240] for line in (a, b))
        if "IR Dump After" in a:
            where = " behind " + a.strip("/- ")[len("IR Dump After "):]
    return where, "(ends of lines)", "(differ)"


def ranks_to_train(manifest):
    """How many ranks train the model; 0: it is too large, or none for bytes on CPUs."""
    ranks = math.prod(axis["size"] for axis in manifest["mesh"]["axes"])
    is_small = manifest["arena"]["bytes"] <= SMALL_ARENA and ranks <= SMALL_RANKS
    on_cpu = "nvcc" not in manifest["fingerprint"]["target"]
    inputs = {r["name"] for r in manifest["ranges"] if r["role"] == "input"}
    trains = "train" in manifest["steps"] and "tokens" in inputs
    return ranks if is_small and on_cpu and trains else 0


def bits_of_run(place):
    steps = re.findall(r'"(?:loss|grad_norm)_hex": "[^"]*"', read(f"{place}/scratch/run/metrics.jsonl"))
    dumps = sorted(glob.glob(f"{place}/scratch/dump*"))
    if not steps or not dumps:
        raise RuntimeError(f"fsdp-run wrote {len(steps)} losses and {len(dumps)} dumps")
    return "\n".join(steps + [f"{os.path.basename(path)} " + hashlib.sha256(
        read(path).encode("utf-8", "surrogateescape")).hexdigest() for path in dumps])
