#!/usr/bin/env python3
"""Compares what two builds make of every configuration under test.

    test/compare/compare_compilers.py BEFORE/build build

For a change that must not change behaviour. Every command of test/compare/commands.txt
runs with both builds, on the inputs of one tree. What fsdp-compile compiles is
compared at every stage, by kind:

  graph, plan, schedule, costs, memory   what --emit prints
  passes     the IR after every pass (not of models whose graph is large: their mlir)
  manifest, values                       of the artifact, the bytes of memory in it
  source     the generated C++ or CUDA and the flags that it is compiled with
  cuda       the CUDA C++ of the same model, where it is compiled for CPUs
  losses     bits of losses, gradient norms and of all ranges after a short run, for
             small models on CPUs; this alone compiles what was generated
  text       what fsdp-opt, fsdp-trace and fsdp-interpret print
  messages   errors and warnings, of commands that fail too

A difference is printed with its command and the first line that differs. Those that
are wanted stand in test/compare/expected_differences.txt, one rule a line, each under
a comment that says why:

  # Collectives have no scale any more: it was always 1.
  passes,text: , scale = 1\\.0+e\\+00 =>

"KINDS: PATTERN => TEXT" replaces what the expression matches in the output of the first
build, "<=>" in that of both; * stands for all kinds of output. As "input", a rule changes
the .mlir and .json files that the second build gets (--inputs BEFORE); as "gone", it says how
the second build refuses what is no more.

Exit status 0: something was compared, and every difference is explained. What one build
alone fails at since it does not know an option is listed and counts as no difference.
A build that is not where it was built finds its headers with --before-include. For the
list of commands see record_commands.py.
"""
import argparse
import collections
import concurrent.futures
import glob
import hashlib
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import threading
import time

from builds import Build, Rules, bits_of_run, first_difference, ranks_to_train, read, write

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = ("equal", "explained", "differ")
INPUTS = ("test", "examples")  # folders that commands read
FILE = re.compile(r"(?<![\w/.])(?:\$MADE|test|examples)/[\w./-]+")
COMPILES = re.compile(r"(?:^|&& )fsdp-compile (?!(?:[^&]* )?(?:--help|-h|--version)\b)[^&]*$")
STAGES = ("graph", "plan", "schedule", "costs", "memory", "cuda", "library", "losses")
LARGE_GRAPH = 100_000  # characters; of larger ones the IR is compared at the end alone
UNKNOWN = re.compile("unknown (option|key|pass)|no such option|does not refer to a registered pass")


class Comparison:
    def __init__(self, args):
        self.args, self.rules = args, Rules(args.rules)
        self.builds = (Build("before", args.before, args.before_include),
                       Build("after", args.after, args.after_include))
        self.counts = {word: collections.Counter() for word in WORDS}
        self.one_sided, self.failing, self.seen = [], [], set()
        self.lock = threading.Lock()

    # ---- One command ----------------------------------------------------------

    def compare(self, line, kind, before, after):
        verdict, where = "equal", None
        if before != after:
            before, after = map(self.rules.without_noise, (before, after))
        if before != after:
            where = first_difference(self.rules.apply(kind, before),
                                     self.rules.apply(kind, after, is_after=True))
            verdict = "differ" if where else "explained"
        with self.lock:
            self.counts[verdict][kind] += 1
            if where:
                print(f"differs: {kind}{where[0]}: {line}\n  before: {where[1]}\n  after:  {where[2]}",
                      flush=True)

    def both(self, line, places, compiles=False):
        """What both builds say, or nothing where one alone does not know an option."""
        said = []
        for build, place in zip(self.builds, places):
            options = build.include if compiles else []
            said.append(build.run(" ".join([line, *map(shlex.quote, options)]), place, compiles))
        (left, right), alone = said, None
        if left.status and not right.status and UNKNOWN.search(left.messages):
            alone = "before"
        if right.status and not left.status and UNKNOWN.search(right.messages):
            alone = "after"
        if right.status and self.rules.is_gone(right.messages):
            with self.lock:
                self.counts["explained"]["gone"] += 1
            return None
        if alone:
            with self.lock:
                self.one_sided.append(f"the build {alone} does not know an option: {line}")
        return None if alone else said

    def printed(self, line, places, kind, compiles=False):
        """Compares what a command prints; its output before, if both succeed."""
        said = self.both(line, places, compiles)
        if not said:
            return None
        self.compare(line, "messages", *(f"{s.messages}status {s.status}" for s in said))
        if said[0].status and said[1].status and line in self.lines:
            self.failing.append(line)
        if said[0].text or said[1].text:
            self.compare(line, kind, *(s.text for s in said))
        return None if said[0].status or said[1].status else said[0].text

    def artifact(self, line, places, dumps):
        """Compares the IR after each pass and the artifact; all of it before, by kind."""
        said = self.both(line + " -o $T/out" + " --mlir-print-ir-after-all" * dumps, places)
        if not said:
            return None
        if said[0].status or said[1].status:  # after the IR
            self.compare(line, "messages", *(f"{s.messages[-400:]}status {s.status}" for s in said))
            if said[0].status and said[1].status:
                self.failing.append(line)
            return None
        texts = {"passes" if dumps else "messages": [s.messages for s in said],
                 "text": [s.text for s in said]}
        for kind, name in (("manifest", "manifest.json"), ("values", "values.json"),
                           ("source", "step.so")):
            texts[kind] = [build.clean(read(f"{place}/scratch/out/{name}"), place)
                           for build, place in zip(self.builds, places)]
        for kind, pair in texts.items():
            self.compare(line, kind, *pair)
        return {kind: pair[0] for kind, pair in texts.items()}

    def is_new(self, texts):
        digest = hashlib.sha256("".join(texts).encode(errors="surrogateescape")).digest()
        with self.lock:
            is_new = digest not in self.seen
            self.seen.add(digest)
        return is_new

    def stages(self, line, places):
        """All that fsdp-compile makes of a configuration that it accepts."""
        graph = self.printed(f"{line} --emit=graph", places, "graph")
        is_small = graph is not None and len(graph) <= LARGE_GRAPH
        made = None
        if {"library", "losses"} & set(self.args.stages):
            made = self.artifact(line, places, is_small)
        # Settings of a run alone make the same artifact of the same IR.
        if made and is_small and not self.is_new([made["passes"], made["source"]]):
            return
        printed = set(self.args.stages) - {"graph", "library", "losses"}
        if "--target" in line:
            printed.discard("cuda")
        for stage in sorted(printed | (set() if is_small else {"mlir"})):
            self.printed(f"{line} --emit={stage}", places, stage)
        ranks = ranks_to_train(json.loads(made["manifest"])) if made else 0
        # Of another CPU's workspaces the runtime accepts none.
        if ranks and "losses" in self.args.stages and "--workspaces" not in line:
            if self.is_new([made["source"]]):
                self.train(line, places, ranks)

    def train(self, line, places, ranks):
        if self.printed(f"{line} -o artifact", places, "text", compiles=True) is None:
            return
        run = (f"seq 1 4000 > $T/text && fsdp-run artifact -n {ranks} --training.steps 2 "
               "--training.dataset_path $T/text --lr_scheduler.warmup_steps 0 "
               "--validation.enable false --sample.length 0 --metrics.log_freq 1 "
               "--metrics.peak_tflops 1 --job.dump_folder $T/run --dump $T/dump > $T/log")
        said = [build.run(run, place, compiles=True) for build, place in zip(self.builds, places)]
        if said[0].status or said[1].status:
            self.compare(f"{line} && {run}", "messages", *(s.messages for s in said))
        else:
            self.compare(f"{line} && {run}", "losses", *map(bits_of_run, places))

    def configuration(self, line):
        with tempfile.TemporaryDirectory() as scratch:
            places = [self.place(scratch, build) for build in self.builds]
            command = re.sub(r"(^|&& )not |--?verify-diagnostics(=[a-z]+)?", r"\1", line)
            if command == line and COMPILES.search(line):
                self.stages(line, places)
            else:
                self.printed(command, places, "text")

    def place(self, scratch, build):
        """A folder of one build, with the inputs."""
        place = f"{scratch}/{build.name}"
        os.makedirs(place)
        for name in os.listdir(f"{self.inputs}/{build.name}"):
            os.symlink(f"{self.inputs}/{build.name}/{name}", f"{place}/{name}")
        return place

    def provide(self, folder, lines):
        """What `lines` read, for each build, under `folder`: the second's as rules say."""
        self.inputs, self.lines = folder, set(lines)
        with open(os.path.splitext(self.args.list)[0] + ".json") as file:
            made = {f"made/{name}": text for name, text in json.load(file).items()}
        for name in {name.replace("$MADE", "made") for line in lines for name in FILE.findall(line)}:
            if name not in made and not os.path.exists(f"{self.args.inputs}/{name}"):
                sys.exit(f"compare_compilers.py: there is no {self.args.inputs}/{name}, which a "
                         f"command of {self.args.list} reads: record the list again "
                         "(record_commands.py), or name another tree with --inputs")
        changes_inputs = any("input" in kinds for _, kinds, *_ in self.rules.rules)
        for build in self.builds:
            place = shutil.copytree if build.name == "after" and changes_inputs else os.symlink
            os.makedirs(f"{folder}/{build.name}/made")
            for top in INPUTS:
                place(os.path.abspath(f"{self.args.inputs}/{top}"), f"{folder}/{build.name}/{top}")
            for name, text in made.items():
                write(f"{folder}/{build.name}/{name}", text)
        for path in glob.glob(f"{folder}/after/**/*", recursive=True) if changes_inputs else ():
            if path.endswith((".mlir", ".json")) or os.path.dirname(path).endswith("/made"):
                text = read(path)
                changed = self.rules.apply("input", text)
                if changed != text:
                    write(path, changed)

    # ---- All of them ----------------------------------------------------------

    def all(self, lines):
        start, done = time.monotonic(), 0
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            for future in concurrent.futures.as_completed(
                    [pool.submit(self.configuration, line) for line in lines]):
                future.result()
                done += 1
                if done % 25 == 0 or done == len(lines):
                    print(f"... {done} of {len(lines)} commands, {time.monotonic() - start:.0f} s, "
                          f"{self.counts['differ'].total()} differences", file=sys.stderr, flush=True)
        for text in sorted(self.one_sided):
            print(text)
        for line in sorted(self.failing):
            print(f"fails in both builds, and did not when it was recorded: {line}")
        for line, *_ in self.rules.rules:
            if not self.rules.used[line]:
                print(f"a rule that nothing needs: {line}")
        for kind in sorted(set().union(*self.counts.values())):
            print(f"{kind:10}" + "".join(f"{self.counts[word][kind]:7} {word}" for word in WORDS))
        compared = sum(counts.total() for counts in self.counts.values())
        differ = self.counts["differ"].total()
        print(f"{len(lines)} commands, {compared} outputs compared in "
              f"{time.monotonic() - start:.0f} s: {differ} unexplained differences")
        return 1 if differ or not compared else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="build folder")
    parser.add_argument("after", help="build folder that is judged")
    parser.add_argument("--filter", default="", help="only commands that this expression matches")
    parser.add_argument("--every", type=int, default=1, help="only each N-th of these, for a first look")
    parser.add_argument("--stages", default=",".join(STAGES), help="of configurations (default: all)")
    parser.add_argument("--list", default=f"{HERE}/commands.txt")
    parser.add_argument("--rules", default=f"{HERE}/expected_differences.txt")
    parser.add_argument("--inputs", default=os.path.dirname(os.path.dirname(HERE)),
                        help="tree with the inputs (default: this one)")
    parser.add_argument("--before-include", help="include folder of the tree of the first build")
    parser.add_argument("--after-include", help="and of the second")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    args.stages = args.stages.split(",")
    if set(args.stages) - set(STAGES):
        parser.error(f"stages are {', '.join(STAGES)}")
    lines = [line for line in read(args.list).splitlines() if re.search(args.filter, line)]
    lines = lines[::args.every]
    with tempfile.TemporaryDirectory() as scratch:
        comparison = Comparison(args)
        comparison.provide(scratch, lines)
        return comparison.all(lines)


if __name__ == "__main__":
    sys.exit(main())
