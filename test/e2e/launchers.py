"""Two ranks under another launcher than fsdp-run train, and however a rank or
the launcher is disturbed the job ends everywhere: a killed and a stopped rank
end it, and a signal to the launcher saves its last step.

usage: launchers.py LAUNCHER ARTIFACT TEXT WORKDIR [PROGRAM ARGUMENTS...]

LAUNCHER is mpirun, torchrun or srun. PROGRAM is put in front of it: a stand-in
for GPUs."""
import os
import re
import shutil
import signal
import subprocess
import sys

import artifacts
from artifacts import children, expect, is_alive, wait_until

# How two ranks are started, the signal to the launcher at which they save, and
# whether the launcher's status is then 0.
LAUNCHERS = {
    "mpirun": ([*artifacts.MPIRUN, "2"], signal.SIGUSR1, True),
    "srun": (["srun", "--mpi=pmix", "--kill-on-bad-exit=1", "-n", "2"],
             signal.SIGUSR1, True),
    "torchrun": (["torchrun", "--standalone", "--no-python",
                  "--nproc-per-node", "2"],
                 signal.SIGTERM, False),
}
LONG = {"training.steps": 1000000, "metrics.log_freq": 1000000}
SAVING = {"checkpoint.enable": "true", "checkpoint.interval": 7,
          "checkpoint.async_mode": "async"}
COLLECTIVE = r"(in|ended) \w+ \"[^\"]+\" \(number \d+ of 'train'\)"


def variables(pid):
    with open(f"/proc/{pid}/environ", "rb") as file:
        return dict(entry.decode().split("=", 1)
                    for entry in file.read().split(b"\0") if b"=" in entry)


def rank_of(pid):
    own = variables(pid)
    return next(int(own[name]) for name in
                ("OMPI_COMM_WORLD_RANK", "RANK", "SLURM_PROCID") if name in own)


def processes_of(folder):
    """The ranks that write to `folder`, by rank."""
    found = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace").split("\0")
            if "fsdp-rank-" in words[0] and folder in words:
                found[rank_of(entry)] = int(entry)
        except (OSError, StopIteration):  # it has just ended or begun
            pass
    return found


class Job:
    """A run in `folder`; `options` are the launcher's."""

    all = []

    def __init__(self, place, folder, settings, options=(), **environment):
        launcher, artifact, text, front = place
        command, *_ = LAUNCHERS[launcher]
        all_settings = {"training.dataset_path": text,
                        "validation.enable": "false", "sample.length": 0,
                        "lr_scheduler.warmup_steps": 0, **settings}
        self.folder, self.metrics = folder, f"{folder}/metrics.jsonl"
        self.process = subprocess.Popen(
            [*front, *command, *options, "fsdp-run", artifact,
             "--job.dump_folder", folder,
             *(f"--{key}={value}" for key, value in all_settings.items())],
            env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True)
        self.front = front
        Job.all.append(self)

    def kill(self):
        """Ranks too, which a launcher may have put into groups of their own."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        for pid in processes_of(self.folder).values():
            os.kill(pid, signal.SIGKILL)

    def wait_for_steps(self):
        """Until some are done; gives the ranks' processes."""
        self.wait_until(lambda: os.path.exists(self.metrics) and
                        os.path.getsize(self.metrics) > 3000, "steps")
        return processes_of(self.folder)

    def wait_until(self, condition, what):
        wait_until(lambda: condition() or self.process.poll() is not None,
                   f"{self.folder}: {what}")
        if self.process.poll() is not None:
            sys.exit("".join(self.process.communicate()))

    def signal_launcher(self, number):
        """To the launcher, not to what is in front of it."""
        pid = self.process.pid
        if self.front:
            (pid,) = children(pid)
        os.kill(pid, number)

    def end(self):
        """(status, output, errors), when all ranks have ended."""
        ranks = processes_of(self.folder)
        try:
            said, errors = self.process.communicate(timeout=artifacts.SECONDS)
        except subprocess.TimeoutExpired:
            sys.exit(f"{self.folder}: hangs")
        for rank, pid in ranks.items():
            wait_until(lambda: not is_alive(pid),
                       f"{self.folder}: end of rank {rank}")
        return self.process.returncode, said, errors


def own_messages(errors):
    return [line for line in errors.splitlines() if line.startswith("fsdp: ")]


def trains(place, work):
    status, said, errors = Job(place, f"{work}/trains",
                               {"training.steps": 5}).end()
    expect(status == 0 and "trained 5 steps" in said and
           not own_messages(errors), f"trains: {status}\n{said}\n{errors}")


def killed(place, work):
    job = Job(place, f"{work}/killed", LONG)
    os.kill(job.wait_for_steps()[1], signal.SIGKILL)
    status, _, errors = job.end()
    # The launcher may end the others before they could say anything.
    expect(status != 0 and len(own_messages(errors)) <= 1,
           f"killed: {status}\n{errors}")


def stopped(place, work):
    job = Job(place, f"{work}/stopped", LONG, FSDP_HEARTBEAT="3")
    ranks = job.wait_for_steps()
    expect(not artifacts.listeners(*ranks.values()),
           f"ranks listen at {artifacts.listeners(*ranks.values())}")
    job.wait_until(lambda: os.path.getsize(job.metrics) > 30000, "more steps")
    os.kill(ranks[1], signal.SIGSTOP)
    status, _, errors = job.end()
    said = own_messages(errors)
    expect(status != 0 and len(said) == 1 and re.search(
        r"no sign of life from rank 1 .* for 3 s: it is stopped "
        r"\(FSDP_HEARTBEAT sets the limit\).*; last collectives[^:]*: "
        rf"(rank 1|ranks 0, 1): {COLLECTIVE}", said[0]),
        f"stopped: {status}\n{errors}")


def saved_steps(folder):
    if not os.path.exists(f"{folder}/checkpoint"):
        return []
    return sorted(int(name[5:]) for name in os.listdir(f"{folder}/checkpoint")
                  if re.fullmatch(r"step-\d+", name))


def saved(place, work):
    folder = f"{work}/saved"
    _, number, ends_well = LAUNCHERS[place[0]]
    job = Job(place, folder, {**LONG, **SAVING})
    job.wait_for_steps()
    job.signal_launcher(number)
    status, said, errors = job.end()
    expect((status == 0) == ends_well and not own_messages(errors) and
           "the same command goes on from there" in said,
           f"saved: {status}\n{said}\n{errors}")
    steps = saved_steps(folder)
    status, said, errors = Job(place, folder, {
        "training.steps": steps[-1] + 2, "checkpoint.enable": "true"}).end()
    expect(status == 0 and "trained 2 steps" in said,
           f"goes on: {status}\n{said}\n{errors}")


def restarted(place, work):
    """torchrun alone starts ranks again, which go on from what was saved."""
    job = Job(place, f"{work}/restarted", {**LONG, **SAVING},
              options=["--max-restarts", "1"])
    job.wait_until(lambda: saved_steps(job.folder), "a checkpoint")
    ranks = processes_of(job.folder)
    os.kill(ranks[1], signal.SIGKILL)
    step = saved_steps(job.folder)[-1]
    def has_others():
        others = processes_of(job.folder)
        return len(others) == 2 and not set(others.values()) & set(ranks.values())
    job.wait_until(has_others, "other ranks")
    job.wait_until(lambda: saved_steps(job.folder)[-1] > step + 7, "their steps")
    job.signal_launcher(signal.SIGTERM)
    _, said, errors = job.end()
    expect("checkpoint: goes on behind step" in said, f"restarted: {said}\n{errors}")


def main():
    launcher, artifact, text, work, *front = sys.argv[1:]
    place = (launcher, artifact, text, front)
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    scenarios = [trains, killed, stopped, saved]
    if launcher == "torchrun":
        scenarios.append(restarted)
    try:
        for scenario in scenarios:
            scenario(place, work)
            print(f"{launcher}: {scenario.__name__}")
    finally:  # a failure leaves no job behind
        for job in Job.all:
            job.kill()


main()
