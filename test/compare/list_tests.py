#!/usr/bin/env python3
"""Lists all tests of builds, or says which of a list are lost in another.

    test/compare/list_tests.py build build-sanitize > after.txt
    test/compare/list_tests.py 'build-sanitize=dialects/|passes/'    lit tests that match alone
    test/compare/list_tests.py --compare before.txt after.txt

A line is the build, the kind (lit, gtest or ctest), where the test is (its folder or
program) and its name:

    build lit passes fsdp-plan.mlir
    build gtest fsdp-unit-runtime AtomicFile.LinksAreFollowed
    build ctest - Collectives.ranks-3-shared-0

What ctest knows and the build has not is not listed. A shard of a program of GoogleTest
is no test: its tests are. With --compare, a test that
is in no build any more is lost, unless one of the same kind and name is new elsewhere: it
has moved. So has one that renamed_tests.txt gives another name. Tests in fewer builds than
before are listed too. Exit status 1: some are lost.
"""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys

RENAMED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "renamed_tests.txt")


def output(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, **options)
    if done.returncode:
        sys.exit(f"list_tests.py: {' '.join(command)}: exit status {done.returncode}; "
                 "are all programs of the build there?")
    return done.stdout


def lit_tests(build, expression):
    lit = shutil.which("lit") or "/usr/lib/llvm-22/bin/lit"
    for line in output([lit, "--show-tests", "--filter", expression, f"{build}/test"]).splitlines():
        match = re.fullmatch(r"\s+\S+ :: (.*)", line)
        if match:
            folder, name = os.path.split(match.group(1))
            yield "lit", folder or "-", name


def gtests(command, build):
    """Tests of a program, which may be started by another; none if it is no GoogleTest's."""
    program = command[-1] if os.path.isfile(command[-1]) else command[0]
    with open(program, "rb") as file:
        is_gtest = b"gtest_list_tests" in file.read()
    if not is_gtest or "mpirun" in command[0]:
        return
    suite = ""
    for line in output([*command, "--gtest_list_tests"], cwd=build).splitlines():
        test = line.split("#")[0].rstrip()
        if test.startswith("  "):
            yield "gtest", os.path.basename(program), suite + test.strip()
        else:
            suite = test


def ctest_tests(build):
    listed = json.loads(output(["ctest", "--test-dir", build, "--show-only=json-v1"],
                               stderr=subprocess.DEVNULL))
    seen = set()
    for test in listed["tests"]:
        if "command" not in test:
            print(f"list_tests.py: {build}: {test['name']} is not built", file=sys.stderr)
            continue
        command = tuple(test["command"])
        shards = re.sub(r"\.\d+-of-\d+$", "", test["name"])
        units = [] if command in seen else list(gtests(command, build))
        seen.add(command)
        yield from units
        if shards == test["name"]:
            yield "ctest", "-", test["name"]


def list_builds(builds):
    for argument in builds:
        build, _, expression = argument.partition("=")
        if not os.path.exists(f"{build}/CTestTestfile.cmake"):
            sys.exit(f"list_tests.py: {build} is no build folder with tests")
        found = [*lit_tests(build, expression), *ctest_tests(build)]
        for kind, where, name in sorted(found):
            print(os.path.basename(os.path.normpath(build)), kind, where, name)


def read(path):
    """{test: builds that have it}"""
    builds = collections.defaultdict(set)
    with open(path) as file:
        for number, line in enumerate(file, 1):
            fields = line.rstrip("\n").split(" ", 3)
            if len(fields) != 4:
                sys.exit(f"{path}:{number}: write BUILD KIND WHERE NAME")
            builds[tuple(fields[1:])].add(fields[0])
    return builds


def read_renamed(path):
    """{(kind, name before): name after}"""
    renamed = {}
    with open(path) as file:
        for number, line in enumerate(file, 1):
            fields = line.split()
            if not fields or fields[0].startswith("#"):
                continue
            if len(fields) != 3:
                sys.exit(f"{path}:{number}: write KIND NAME-BEFORE NAME-AFTER")
            renamed[fields[0], fields[1]] = fields[2]
    return renamed


def compare(paths, renamed):
    before, after = map(read, paths)
    if not before:
        sys.exit(f"{paths[0]}: no tests")
    gone, new = sorted(set(before) - set(after)), set(after) - set(before)
    lost = 0
    for test in gone:
        names = {test[2], renamed.get(test[::2])}
        same = [other for other in sorted(new) if other[0] == test[0] and other[2] in names]
        if same:
            new.discard(same[0])
            print(f"moved: {' '.join(test)} -> {' '.join(same[0][1:])}")
        else:
            lost += 1
            print("LOST: " + " ".join(test))
    for test in sorted(set(before) & set(after)):
        fewer = before[test] - after[test]
        if fewer:
            print(f"not in {', '.join(sorted(fewer))} any more: {' '.join(test)}")
    print(f"{len(before)} tests before, {len(after)} after: {lost} lost, "
          f"{len(gone) - lost} moved, {len(new)} new")
    return 1 if lost else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="*", help="build folder, or FOLDER=EXPRESSION")
    parser.add_argument("--compare", nargs=2, metavar=("BEFORE", "AFTER"), help="two such lists")
    parser.add_argument("--renamed", metavar="FILE", default=RENAMED,
                        help="lines KIND NAME-BEFORE NAME-AFTER (default: the file beside this one)")
    args = parser.parse_args()
    if bool(args.builds) == bool(args.compare):
        parser.error("name build folders, or two lists with --compare")
    if args.compare:
        return compare(args.compare, read_renamed(args.renamed))
    return list_builds(args.builds)


if __name__ == "__main__":
    sys.exit(main())
