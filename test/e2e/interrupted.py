"""However a run ends, its steps stay and one message says why.

usage: interrupted.py CONFIG TEXT WORKDIR

Each end is done to a long job of two ranks after its first steps; the next job
in the same folder goes on after it."""
import os
import re
import shutil
import signal
import subprocess
import sys

from support import cache, commands, jobs, runs
from support.commands import MPIRUN
from support.jobs import lines_of
from support.processes import listeners, send
from support.waiting import wait_until


class Job(jobs.Job):
    """A long job in `folder`; it has made some steps when it is returned."""

    def __init__(self, command, folder, environment):
        before = lines_of(f"{folder}/metrics.jsonl")
        super().__init__(command, folder, environment, stdout=subprocess.DEVNULL)
        self.wait_for_steps(lambda: lines_of(self.metrics) > before + 5)
        self.steps = lines_of(self.metrics)


def segments(job):
    """Files in shared memory that belong to a job's MPI."""
    found = set()
    for pid in job.ranks.values():
        with open(f"/proc/{pid}/maps") as file:
            found |= {path for path in re.findall(r"/dev/shm/\S+", file.read())
                      if os.path.exists(path)}
    return found


def one_line(said):
    return [line for line in said.splitlines() if line.strip()]


def kill(*pids, number=signal.SIGKILL):
    for pid in pids:
        os.kill(pid, number)


def stop_and_kill(job):
    """What is stopped ends with its launcher too."""
    kill(*job.ranks.values(), number=signal.SIGSTOP)
    kill(job.process.pid)


def check_errors(run, work):
    """What is wrong on one rank, or with its launcher, is said."""
    dump = f"{work}/dump/state.safetensors"
    os.makedirs(f"{work}/dump/state.rank1.safetensors")
    # Rank 0 then waits for rank 1, to write a sample with it.
    run = run + ["--training.steps", "2", "--job.dump_folder", f"{work}/errors",
                 "--sample.length", "20"]
    by_messages = [*MPIRUN, "2", "env", "FSDP_SHARED_MEMORY=0", *run]
    for command in (run + ["-n", "2"], by_messages):
        said = commands.fail(command + ["--dump", dump], FSDP_TIMEOUT="60")
        if not re.search(r"^fsdp(-run)?: rank 1: cannot write "
                         r"'.*rank1.safetensors'", said, re.M):
            sys.exit(f"the error of rank 1 is lost:\n{said}")
    hidden = ["env"] + [f"--unset=OMPI_COMM_WORLD_{name}" for name in
                        ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")]
    said = commands.fail([*MPIRUN, "2"] + hidden + run)
    if "MPI reports 2 processes, but no variable states" not in said:
        sys.exit(f"ranks without their variables:\n{said}")


def check_ignored(run, folder):
    """Signals that are ignored do not end a job, whoever of it gets them. One
    that was blocked where the job was started does."""
    ignored = [signal.SIGINT, signal.SIGHUP]
    before = {number: signal.signal(number, signal.SIG_IGN)
              for number in ignored}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    job = Job(run + ["-n", "2", "--job.dump_folder", folder], folder, {})
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    for number, handler in before.items():
        signal.signal(number, handler)
    for number in ignored:
        os.killpg(job.process.pid, number)
    # The launcher looks after its ranks many times meanwhile.
    steps = lines_of(job.metrics) + 300
    wait_until(lambda: lines_of(job.metrics) > steps or job.has_ended(),
               "steps after ignored signals")
    if job.has_ended():
        sys.exit(f"a job is ended by signals that it ignores: {job.end()}")
    kill(job.process.pid, number=signal.SIGTERM)
    _, _, said = job.end()
    if not re.search(r"stopped by signal 15", said):
        sys.exit(f"a job that ignores signals says\n{said}")


def ends():
    """(name, what is done to a job, what is said, environment, MPI's own).
    Where nobody is left to say anything, None, and the lock stays."""
    stopped = r"rank {} \(process \d+ on \S+\) has been stopped for 3 s"
    last = r"(in|ended) \w+ \"[^\"]+\" \(number \d+ of 'train'\)"
    silent = r"no sign of life from rank {0} \(process \d+ on \S+\) for 3 s: " \
             r"it is stopped .*; last collectives[^:]*: (rank {0}|ranks 0, 1): " + last
    where = r"; the steps so far are in '.*metrics.jsonl'$"
    short, mpi = {"FSDP_HEARTBEAT": "3"}, {"FSDP_SHARED_MEMORY": "0"}
    yield ("interrupt", lambda j: kill(j.process.pid, number=signal.SIGINT),
           r"fsdp-run: stopped by signal 2 \(Interrupt\)" + where, {}, False)
    yield ("terminate", lambda j: kill(j.process.pid, number=signal.SIGTERM),
           r"fsdp-run: stopped by signal 15 \(Terminated\)" + where, {}, False)
    yield ("hangup", lambda j: kill(j.process.pid, number=signal.SIGHUP),
           r"fsdp-run: stopped by signal 1 \(Hangup\)" + where, {}, False)
    yield ("quit", lambda j: kill(j.process.pid, number=signal.SIGQUIT),
           r"fsdp-run: stopped by signal 3 \(Quit\)" + where, {}, False)
    yield ("rank", lambda j: kill(j.ranks[0]),
           r"fsdp-run: rank 0 was ended by signal 9" + ".*" + where, {}, False)
    yield ("rank-quit", lambda j: kill(j.ranks[1], number=signal.SIGQUIT),
           r"fsdp-run: rank 1 was ended by signal 3" + ".*" + where, {}, False)
    yield "launcher", lambda j: kill(j.process.pid), None, {}, False
    yield ("launcher-of-stopped", stop_and_kill, None, {}, False)
    # The launcher may kill the others first.
    yield ("everybody", lambda j: send(signal.SIGKILL, *j.ranks.values(), j.process.pid),
           None, {}, False)
    yield ("stopped", lambda j: kill(j.ranks[1], number=signal.SIGSTOP),
           "fsdp-run: rank 0: " + silent.format(1), short, False)
    yield ("all-stopped", lambda j: kill(*j.ranks.values(), number=signal.SIGSTOP),
           stopped.format(r"\d"), short, False)
    yield ("own-terminate",
           lambda j: kill(j.process.pid, number=signal.SIGTERM), "", {}, True)
    # By sockets others know what it said in its last heartbeat, perhaps nothing yet.
    yield ("stopped-mpi", lambda j: kill(j.ranks[0], number=signal.SIGSTOP),
           "fsdp: rank 1: " + silent.format(0).replace(last, f"(none so far|{last})"),
           {**short, **mpi}, True)


def main():
    config, text, work = sys.argv[1:]
    # A shell's background jobs ignore Ctrl-C and Ctrl-\, and their children with them.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    shutil.rmtree(work, ignore_errors=True)
    artifact, folder = f"{work}/artifact", f"{work}/run"
    os.makedirs(work)
    cache.compile(["fsdp-compile", "--config", config, "--ranks", "2"], artifact)
    run = ["fsdp-run", artifact, "--config", config, "--training.dataset_path",
           text, "--job.dump_folder", folder, "--training.steps", "10000000",
           "--metrics.log_freq", "1000000"]
    check_errors(run, work)
    check_ignored(run, f"{work}/ignored")
    done = list(ends())
    for number, (name, harm, message, environment, own) in enumerate(done, 1):
        job = Job([*MPIRUN, "2"] + run if own else run + ["-n", "2"], folder,
                  environment)
        everybody = [job.process.pid, *job.ranks.values()]
        if not own and listeners(*everybody):
            sys.exit(f"{name}: somebody from outside could hold the job up at "
                     f"{listeners(*everybody)}")
        if segments(job):
            sys.exit(f"{name}: {segments(job)} would stay after a kill")
        harm(job)
        _, _, said = job.end()
        lines = one_line(said)
        if message and not any(re.search(message, line) for line in lines):
            sys.exit(f"{name}: says\n{said}")
        if len(lines) > (1 if message and not own else 1000):
            sys.exit(f"{name}: more than one line:\n{said}")
        if lines_of(job.metrics) < job.steps:
            sys.exit(f"{name}: steps were lost")
        # Every line but a half one at the end is JSON; the next run mends it.
        left = set(os.listdir(folder)) - {"metrics.jsonl", "run.lock"}
        # mpirun by itself kills ranks that do not end at once: theirs may stay.
        locked = "run.lock" in os.listdir(folder)
        if left or (locked and message is not None and not own):
            sys.exit(f"{name}: left {os.listdir(folder)}")
        found = runs.metric_runs(folder)
        if len(found) != number or len({run["id"] for run, _ in found}) != number:
            sys.exit(f"{name}: {len(found)} runs in the folder, not {number}")
    print(f"{len(done)} ends, all told and nothing lost")


main()
