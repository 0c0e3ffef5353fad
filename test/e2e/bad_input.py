"""Bad input ends in one message that names the thing and the place, a status
that is not 0, and nothing half-written; and soon.

usage: bad_input.py CONFIG TEXT WORKDIR [--show] [CASE...]

Each case runs in a folder of its own, which must be empty afterwards, but for
the measurements of steps."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import threading
import time

from bad_input_cases import all_cases

# Far above what any case takes, for a loaded machine or sanitized tools.
SECONDS = 120


def listing(folder):
    """Every file with its size, and every folder, below `folder`."""
    entries = {}
    for place, folders, files in os.walk(folder):
        for name in folders:
            entries[os.path.join(place, name)] = None
        for name in files:
            path = os.path.join(place, name)
            entries[path] = os.stat(path).st_size
    return entries


def run_case(case, work):
    """What is wrong with the behaviour of one case, and what it printed."""
    folder = f"{work}/cases/{case.name}"
    os.makedirs(f"{folder}/tmp")
    environment = dict(os.environ, TMPDIR=f"{folder}/tmp", **case.environment)
    begin = time.monotonic()
    process = subprocess.Popen(case.command, cwd=folder, env=environment,
                               stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, errors="replace")
    problems = []
    if case.disturb:
        try:
            case.disturb(process, folder)
        except ProcessLookupError as error:
            problems.append(str(error))
        begin = time.monotonic()
    # The launcher takes its ranks with it.
    alarm = threading.Timer(SECONDS, process.terminate)
    alarm.start()
    _, errors = process.communicate()
    alarm.cancel()
    seconds = time.monotonic() - begin
    if process.returncode == 0:
        problems.append("the status is 0")
    if process.returncode < 0:
        problems.append(f"ended by signal {-process.returncode}")
    if not re.search(case.message, errors):
        problems.append(f"does not say {case.message}")
    lines = errors.count("\n")
    if not 1 <= lines <= case.lines:
        problems.append(f"{lines} lines, not 1 to {case.lines}")
    if seconds > SECONDS:
        problems.append(f"took {seconds:.1f} s")
    left = [path for path in listing(folder) if path != f"{folder}/tmp"]
    if sorted(left) != sorted(f"{folder}/{name}" for name in case.kept):
        problems.append(f"left {left}")
    return problems, f"{seconds:.1f} s\n{errors}"


def main():
    config, text, work, *names = sys.argv[1:]
    show = "--show" in names
    names = [name for name in names if name != "--show"]
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(f"{work}/cases")
    cases = all_cases(os.path.abspath(config), os.path.abspath(text),
                      os.path.abspath(work))
    given = listing(f"{work}/given")
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        chosen = [case for case in cases if not names or case.name in names]
        if not chosen:
            sys.exit(f"no case is called {names}")
        outcomes = pool.map(lambda case: run_case(case, work), chosen)
        for case, (problems, said) in zip(chosen, outcomes):
            if problems or show:
                print(f"--- {case.name}: {'; '.join(problems) or 'good'}")
                print("$ " + " ".join(map(os.fsdecode, case.command)) + "\n" + said)
            failures += bool(problems)
    if listing(f"{work}/given") != given:
        sys.exit("the input has changed")
    print(f"{len(chosen)} cases of bad input, {failures} end badly")
    sys.exit(1 if failures else 0)


main()
