"""A rank on a GPU is killed, stopped or stuck while it trains, under a launcher
that looks after nobody: all ranks end soon, with a status that is not 0, and one
message says what is wrong, in which collective ranks wait, and for whom.

usage: watchdog.py DEVICE FOLDER TEXT WORKDIR

DEVICE is fsdp-fake-device; FOLDER has what support.fake_device compiles for two
ranks (two) and for 2 x 2 (four)."""
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from support.fake_device import torchrun
from support.ports import free_port
from support.processes import rank_of, ranks_of_session, send
from support.tensors import write_rows
from support.waiting import comes_true

# Linux's, which Python does not name.
PTRACE_SEIZE, PTRACE_INTERRUPT, WAIT_FOR_THREADS = 0x4206, 0x4207, 0x40000000
# Never ends by itself.
OPTIONS = ["--training.steps", "1000000", "--validation.enable", "false",
           "--sample.length", "0", "--lr_scheduler.warmup_steps", "0"]

PROCESS = r"\(process \d+ on \S+\)"
COLLECTIVE = (r"(all_gather|all_reduce|reduce_scatter) \"[^\"]+\" "
              r"\(number \d+ of 'train'\)")
ROW = 36  # tokens of a sequence
STREAM = "on stream (compute|gather|reduce)"
# What a rank says of its channels.
STATE = rf"((in|ended) {COLLECTIVE}(, {COLLECTIVE})*|none so far)"


def last(first):
    """Of all ranks, beginning with one that others wait for."""
    return (rf"last collectives, at the last heartbeats: ranks? ([\d, -]*\b)?{first}\b[\d, -]*: {STATE}"
            rf"(; ranks? [\d, -]+: {STATE})*")


def waits(rank, missing):
    """Before `rank` has waited for a heartbeat, or afterwards."""
    return rf"(rank {rank} waits for rank {missing} in {COLLECTIVE} {STREAM}; )?{last(missing)}"


def stuck(rank, whose, missing, first):
    """Whichever of the ranks has waited longest, the message leads to `whose` wait,
    for the ranks that keep it there."""
    return (rf"rank {rank}: {COLLECTIVE} {STREAM} has not ended within 5 s "
            rf"\(FSDP_TIMEOUT sets the limit\); (rank {whose} waits in {COLLECTIVE} {STREAM}; )?"
            rf"{missing}; {last(first)}")


LATE = stuck(0, 0, "rank 1 has not arrived", 1)
# Where the other rank stops before its first graph.
DISAGREED = (r"rank 0: the agreement of all ranks on CUDA graphs has not ended within 5 s "
             r"\(FSDP_TIMEOUT sets the limit\); last collectives, .*")


class Job:
    """Ranks with torchrun's variables, each the child of a shell that only waits
    for it."""

    def __init__(self, device, artifacts, text, folder, settings):
        settings = dict(settings)
        self.size = settings.pop("ranks", 2)
        place = artifacts + ("/four" if self.size == 4 else "/two")
        command = ["fsdp-run", f"{place}/cuda", "--training.dataset_path", text,
                   "--job.dump_folder", f"{folder}/out", *OPTIONS]
        if settings.pop("wrong token", None):
            command += ["--load", f"{folder}/batch"]
            for rank in range(2):
                # A token that no vocabulary has, on the second rank.
                write_rows(f"{folder}/batch.rank{rank}", [[1000 * rank, *range(1, ROW + 1)]])
        line = "".join(
            "(" + " ".join(f"{name}={value}" for name, value in own.items())
            + " " + " ".join(command)
            + f"; echo $? > {folder}/part{rank}; mv {folder}/part{rank} {folder}/status{rank}) & "
            for rank, own in enumerate(torchrun(free_port(), self.size, self.size)))
        self.folder = folder
        self.errors = f"{folder}/errors"
        with open(self.errors, "w") as errors:
            self.process = subprocess.Popen(
                [device, "sh", "-c", line + "wait"], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=errors, text=True,
                start_new_session=True,
                env={**os.environ, "FSDP_FAKECUDA_TWINS": f"{place}/host-builds.so",
                     "FSDP_FAKECUDA_HANGS": "1", **settings})

    def wait_for_step(self):
        """Until rank 0 has printed one."""
        for line in self.process.stdout:
            if line.startswith("step:"):
                return

    def status(self, rank):
        try:
            with open(f"{self.folder}/status{rank}") as file:
                return int(file.read())
        except FileNotFoundError:
            return None

    def wait_for(self, ranks):
        """Whether they end."""
        return comes_true(lambda: all(self.status(rank) is not None for rank in ranks))

    def said(self):
        with open(self.errors) as file:
            return [line for line in file.read().splitlines() if line.startswith("fsdp:")]

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.communicate()


def process_of(job, rank):
    """Once a step is done."""
    job.wait_for_step()
    found = [p for p in ranks_of_session(job.process.pid) if rank_of(p) == rank]
    if len(found) != 1:
        raise RuntimeError(f"behind the first step {len(found)} processes are rank {rank}")
    return found[0]


def signalled(rank, number):
    def disturb(job):
        os.kill(process_of(job, rank), number)
    return disturb


def hold(process):
    """Its main thread alone stands still until the process ends, of which this
    thread is told first."""
    libc = ctypes.CDLL(None, use_errno=True)
    for request in (PTRACE_SEIZE, PTRACE_INTERRUPT):
        if libc.ptrace(request, process, None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")
    while os.WIFSTOPPED(os.waitpid(process, WAIT_FOR_THREADS)[1]):
        pass


def held(rank):
    """The host hangs."""
    def disturb(job):
        process = process_of(job, rank)
        threading.Thread(target=hold, args=[process], daemon=True).start()
    return disturb


def nothing(job):
    pass


# (name, settings, what is done to the job, ranks that end by themselves, what
# is said, the statuses of all ranks)
KILLED, LOST = 128 + signal.SIGKILL, 3
CASES = [
    ("a rank is killed", {}, signalled(1, signal.SIGKILL), (0, 1),
     rf"rank 1 {PROCESS} has ended without a word; {waits(0, 1)}", (LOST, KILLED)),
    ("a rank is killed where GPUs write no counters", {"FSDP_FAKECUDA_NO_WRITES": "1"},
     signalled(1, signal.SIGKILL), (0, 1), rf"rank 1 {PROCESS} has ended without a word",
     (LOST, KILLED)),
    ("the first rank is killed", {}, signalled(0, signal.SIGKILL), (0, 1),
     rf"rank 0 {PROCESS} has ended without a word; {waits(1, 0)}", (KILLED, LOST)),
    ("a rank is stopped", {"FSDP_HEARTBEAT": "5"}, signalled(1, signal.SIGSTOP), (0,),
     rf"no sign of life from rank 1 {PROCESS} for 5 s: it is stopped "
     rf"\(FSDP_HEARTBEAT sets the limit\); {waits(0, 1)}", (LOST, LOST)),
    ("the first rank is stopped", {"FSDP_HEARTBEAT": "5"}, signalled(0, signal.SIGSTOP), (1,),
     rf"no sign of life from rank 0 {PROCESS} for 5 s: it is stopped "
     rf"\(FSDP_HEARTBEAT sets the limit\); {waits(1, 0)}", (LOST, LOST)),
    ("a rank hangs in the host", {"FSDP_TIMEOUT": "5"}, held(1), (0, 1),
     f"({LATE}|{DISAGREED})", (LOST, LOST)),
    ("a kernel hangs", {"FSDP_TIMEOUT": "5", "FSDP_FAKECUDA_FAULT": "hang:20@1"},
     nothing, (0, 1), LATE, (LOST, LOST)),
    ("a kernel of one of four ranks hangs",
     {"ranks": 4, "FSDP_TIMEOUT": "5", "FSDP_FAKECUDA_FAULT": "hang:20@2"}, nothing, range(4),
     stuck("[013]", "[013]", "(rank 2 has|ranks 2, 3 have) not arrived", 2), (LOST,) * 4),
    ("NCCL does not connect", {"FSDP_TIMEOUT": "5", "FSDP_FAKECUDA_FAULT": "hang-connect:0@1"},
     nothing, (0, 1), r"rank [01]: the creation of NCCL's communicators has not ended within 5 s "
     r"\(FSDP_TIMEOUT sets the limit\)", (LOST, LOST)),
    ("a collective is left out", {"FSDP_TIMEOUT": "5", "FSDP_FAKECUDA_FAULT": "drop-group:2@1"},
     nothing, (0, 1), stuck("[01]", 0, "rank 1 has left it", 1), (LOST, LOST)),
    ("a kernel of a graph hangs",
     {"FSDP_TIMEOUT": "5", "FSDP_FAKECUDA_FAULT": "hang:65@1"},
     nothing, (0, 1), stuck("[01]", 1, "rank 0 has left it", 0), (LOST, LOST)),
    ("an error of NCCL", {"FSDP_FAKECUDA_FAULT": "async-error:8@1"}, nothing, (0, 1),
     r"rank 1: NCCL reports an error on stream (compute|gather|reduce): remote process "
     r"exited or there was a network error(; .*)?", (LOST, LOST)),
    ("an error of a GPU", {"FSDP_FAKECUDA_FAULT": "wrong-memory-group:2@1"}, nothing, (0, 1),
     r"rank 1: \S.*: .* bytes at 0x[0-9a-f]+ are not in one allocation.*", (1, 1)),
    ("a rank has wrong data", {"wrong token": True}, nothing, (0, 1),
     r"rank 1: program 'train': .*", (1, 1)),
]


def outcome(job, disturb, by_themselves, message, statuses):
    """What is wrong with how the job ends."""
    disturb(job)
    if not job.wait_for(by_themselves):
        return ["hangs"]
    # One that was stopped sees the end of the job when it goes on.
    send(signal.SIGCONT, *ranks_of_session(job.process.pid))
    ranks = range(job.size)
    if not job.wait_for(ranks):
        return ["a rank that goes on hangs"]
    problems = []
    if (given := tuple(map(job.status, ranks))) != statuses:
        problems.append(f"the statuses are {given}, not {statuses}")
    if len(said := job.said()) != 1 or not re.fullmatch("fsdp: " + message, said[0]):
        problems.append(f"says {said}")
    return problems


def main(device, artifacts, text, work):
    shutil.rmtree(work, ignore_errors=True)

    def run(numbered):
        number, (name, settings, *rest) = numbered
        folder = f"{work}/{number}"
        os.makedirs(folder)
        job = Job(device, artifacts, text, folder, settings)
        try:
            return outcome(job, *rest)
        except (OSError, RuntimeError) as error:
            return [f"{error}; says {job.said()}"]
        finally:
            job.end()

    bad = []
    with ThreadPoolExecutor(4) as pool:
        for (name, *_, message, _), problems in zip(CASES, pool.map(run, enumerate(CASES))):
            if problems:
                bad.append(f"{name} does not say once {message}")
                print(f"{name}: {'; '.join(problems)}")
    print(*bad, f"{len(CASES)} disturbed jobs, {len(bad)} end badly", sep="\n")
    sys.exit(len(bad) > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
