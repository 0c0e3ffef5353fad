"""Tools of the project, run to their end."""
import os
import subprocess
import sys

from support.waiting import SECONDS

# Ranks by MPI, which a program and its arguments follow.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to",
          "none", "-n"]


def expect(condition, what):
    """The test fails unless `condition` holds."""
    if not condition:
        sys.exit(what)


def expect_near(found, wanted, what, near):
    """So does it unless all numbers are equal up to `near` of themselves."""
    expect(len(found) == len(wanted) and
           all(abs(a - b) <= near * b for a, b in zip(found, wanted)),
           f"{what}: {found} instead of {wanted}")


def only_line(said, start):
    """The one line of what was said that begins so."""
    found = [line for line in said.splitlines() if line.startswith(start)]
    expect(len(found) == 1, f"{len(found)} lines begin with '{start}':\n{said}")
    return found[0]


def words(settings):
    """Settings as arguments."""
    return [f"--{key}={value}" for key, value in settings.items()]


def dotted(settings):
    """Settings whose names have __ for the dot."""
    return {key.replace("__", "."): value for key, value in settings.items()}


def run(*command):
    """Runs a tool; on failure prints what it said and stops the test."""
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print("$ " + " ".join(command))
        print(done.stdout)
        sys.exit(f"{command[0]} ended with {done.returncode}")
    return done.stdout


def finished(command, **options):
    """(status, output, errors) of a command that ends, well or not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              timeout=SECONDS, **options)
    except subprocess.TimeoutExpired:
        sys.exit(f"{command}: hangs")
    return done.returncode, done.stdout, done.stderr


def fail(command, **environment):
    """The errors of a command that has to fail."""
    status, said, errors = finished(command, env={**os.environ, **environment})
    expect(status != 0, f"{command}: does not fail\n{said}")
    return errors
