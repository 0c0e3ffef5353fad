"""Every test is in the list of tools/run-tests.sh, for a build that can run it.

usage: run_tests_list.py LIST TEST-FOLDER BUILD"""
import json
import os
import re
import subprocess
import sys

# Features that the sanitized build does not have.
OPTIMISED_ONLY = re.compile(r"(?:REQUIRES:.*\b(?:cuda|count-allocations)\b|UNSUPPORTED:.*\bsanitize\b)")
SANITIZED_ONLY = re.compile(r"REQUIRES:.*\b(?:sanitize|fuzzers)\b")


def lit_tests(folder):
    """Names and texts of what lit.cfg.py calls tests."""
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in ("Inputs", "unit", "golden")]
        for name in files:
            if name.endswith((".mlir", ".test")):
                path = os.path.join(place, name)
                with open(path, encoding="utf-8") as file:
                    yield "fsdp :: " + os.path.relpath(path, folder), file.read()


def units(build):
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    return [test["name"] for test in json.loads(listed)["tests"]]


def main():
    path, folder, build = sys.argv[1:]
    builds = {"optimised": set(), "sanitized": set()}
    with open(path, encoding="utf-8") as file:
        for line in file:
            name, test = line.rstrip("\n").split(": ", 1)
            builds[name].add(test)
    problems = []
    all_units, all_tests = units(build), list(lit_tests(folder))
    for unit in all_units:
        if not any(unit in tests for tests in builds.values()):
            problems.append(f"{unit} runs in no build")
    for test, text in all_tests:
        able = [tests for name, tests in builds.items() if not (
            OPTIMISED_ONLY if name == "sanitized" else SANITIZED_ONLY).search(text)]
        if not any(test in tests for tests in able):
            problems.append(f"{test} runs in no build that can run it")
    known = {*all_units, *(test for test, _ in all_tests)}
    problems += [f"{test} is none" for tests in builds.values() for test in tests - known]
    for problem in problems:
        print(problem)
    print(f"{len(all_units)} units and {len(all_tests)} lit tests, {len(problems)} problems")
    sys.exit(bool(problems))


main()
