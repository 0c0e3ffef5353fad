"""A training that goes on in the background until somebody ends it."""
import atexit
import os
import signal
import subprocess
import sys

from support import processes
from support.waiting import SECONDS, wait_until

# Never ends by itself, and says little.
LONG = {"training.steps": 10000000, "metrics.log_freq": 1000000}


class Job:
    """A run that writes to `folder`; it does not outlive the test."""

    def __init__(self, command, folder, environment=None, **options):
        self.folder, self.metrics = folder, f"{folder}/metrics.jsonl"
        self.ranks = {}
        self.process = subprocess.Popen(
            command, env={**os.environ, **(environment or {})},
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
               "stderr": subprocess.PIPE, "text": True,
               "start_new_session": True, **options})
        atexit.register(self.kill)

    def find_ranks(self):
        """{rank: process}: a launcher's children; subclasses know others."""
        return processes.by_rank(processes.children(self.process.pid))

    def kill(self):
        processes.send(signal.SIGKILL, *self.ranks.values())
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def has_ended(self):
        return self.process.poll() is not None

    def wait_until(self, condition, what):
        """Until `condition` holds; a job that ends before fails the test."""
        wait_until(lambda: condition() or self.has_ended(),
                   f"{self.folder}: {what}")
        if self.has_ended():
            sys.exit("".join(said or "" for said in self.process.communicate()))

    def wait_for_steps(self, has_made):
        """Until `has_made()` says that there are some; then its ranks are known."""
        self.wait_until(has_made, "first steps")
        self.ranks = self.find_ranks()

    def end(self):
        """(status, output, errors), when nobody of it is left."""
        try:
            said, errors = self.process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            sys.exit(f"{self.folder}: hangs")
        for rank, pid in self.ranks.items():
            wait_until(lambda: not processes.is_alive(pid),
                       f"{self.folder}: end of rank {rank}")
        atexit.unregister(self.kill)
        return self.process.returncode, said, errors


def bytes_of(path):
    """The size of a file, 0 if it is not there."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def lines_of(path):
    """The number of whole lines of a file, 0 if it is not there."""
    try:
        with open(path, "rb") as file:
            return file.read().count(b"\n")
    except FileNotFoundError:
        return 0
