#!/usr/bin/env python3
"""Seconds per training step of two builds of this project, in turn.

    test/benchmarks/compare_builds.py BEFORE/build/bin build/bin
    test/benchmarks/compare_builds.py build/bin build/bin --set compile.wide_products=true

For each model and type the builds train in turn, the order changing from round
to round, so that a machine that gets slower hurts both. Printed is how much
faster the second build is, by the median of all steps: a ratio below 1 is a
loss. With --set only the second build has a setting, so it may be the same build.
"""

import argparse
import os
import statistics
import sys
import tempfile

from training_speed import Benchmark, RANKS, describe_machine


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="bin folder of the build to compare with")
    parser.add_argument("after", help="bin folder of the build that is judged")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                        help="a setting that the second build has")
    parser.add_argument("--models", default="S,L")
    parser.add_argument("--types", default="f32,bf16")
    parser.add_argument("--steps", type=int, default=8, help="timed steps a round")
    parser.add_argument("--warmup", type=int, default=3, help="steps before them")
    parser.add_argument("--rounds", type=int, default=4)
    args = parser.parse_args()

    cores = set(sorted(os.sched_getaffinity(0))[:RANKS])
    os.sched_setaffinity(0, cores)
    describe_machine(cores)
    with tempfile.TemporaryDirectory() as scratch:
        builds = []
        for name in ("before", "after"):
            work = os.path.join(scratch, name)
            os.makedirs(work)
            build = Benchmark(args, work)
            build.args = argparse.Namespace(**vars(args), bin=getattr(args, name))
            builds.append(build)
        builds[1].options = [f"--{setting}" for setting in args.set]
        for model in args.models.split(","):
            for dtype in args.types.split(","):
                seconds = [[], []]
                for turn in range(args.rounds):
                    for which in (0, 1) if turn % 2 == 0 else (1, 0):
                        print(f"... {model} {dtype} round {turn + 1} of {args.rounds}",
                              file=sys.stderr)
                        seconds[which] += builds[which].ours(model, dtype)
                before, after = map(statistics.median, seconds)
                print(f"model {model}, {dtype}: before {before:.3f} s "
                      f"({min(seconds[0]):.3f} .. {max(seconds[0]):.3f}), after {after:.3f} s "
                      f"({min(seconds[1]):.3f} .. {max(seconds[1]):.3f}), ratio {before / after:.3f}",
                      flush=True)


if __name__ == "__main__":
    main()
