"""Processes of a job: who they are, what they hold, signals to them."""
import contextlib
import os
import signal
import subprocess

# What a launcher calls a rank's number.
RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "RANK", "SLURM_PROCID")


def process_fields(pid):
    """Fields of a process from its state on, or nothing if it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()
    except OSError:
        return []


def is_alive(pid):
    """Whether a process runs; one that waits to be reaped does not."""
    fields = process_fields(pid)
    return bool(fields) and fields[0] not in "ZX"


def is_stopped(pid):
    """Whether a process stands still, or is gone."""
    return process_fields(pid)[:1] in (["T"], ["Z"], [])


def everybody():
    """All processes of the machine."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children(pid):
    """Processes that `pid` started."""
    return [one for one in everybody() if process_fields(one)[1:2] == [str(pid)]]


def command_of(pid):
    """The words of a process's command line; none if it is gone."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode(errors="replace").split("\0")
    except OSError:
        return [""]


def variables(pid):
    """The environment of a process; none if it is gone or not ours."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = file.read().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def rank_of(pid):
    """The rank that a process is by its variables, or none."""
    own = variables(pid)
    return next((int(own[name]) for name in RANK_VARIABLES if name in own), None)


def by_rank(pids):
    """{rank: process} of those that are ranks."""
    found = {rank_of(pid): pid for pid in pids}
    found.pop(None, None)
    return dict(sorted(found.items()))


def ranks_of_session(leader):
    """Ranks in the session that a process began, in the order in which they began. The
    leader may have ended."""
    def is_one(other):
        with contextlib.suppress(ProcessLookupError):
            return ("fsdp-rank-" in command_of(other)[0] and os.getsid(other) == leader
                    and is_alive(other))
        return False

    def began(pid):
        fields = process_fields(pid)
        return int(fields[19]) if fields else 0, pid
    return sorted(filter(is_one, everybody()), key=began)


def send(number, *pids):
    """A signal to processes that may have ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def listeners(*pids):
    """Addresses at which processes listen, as /proc/net/tcp has them."""
    listens = "0A"
    sockets = {}
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/net/{table}") as file:
            for fields in map(str.split, file):
                if fields[3] == listens:
                    sockets[f"socket:[{fields[9]}]"] = fields[1]
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for number in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    found.add(sockets.get(os.readlink(f"/proc/{pid}/fd/{number}")))
    return found - {None}


@contextlib.contextmanager
def running(command, **streams):
    """A process group of its own, of which nothing goes on after the block."""
    process = subprocess.Popen(command, start_new_session=True, text=True,
                               **streams)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
