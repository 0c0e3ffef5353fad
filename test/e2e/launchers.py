"""Two ranks under another launcher than fsdp-run train, and however a rank or
the launcher is disturbed the job ends everywhere: a killed and a stopped rank
end it, and a signal to the launcher saves its last step.

usage: launchers.py LAUNCHER ARTIFACT TEXT WORKDIR [PROGRAM ARGUMENTS...]

LAUNCHER is mpirun, torchrun or srun. PROGRAM is put before it: a stand-in
for GPUs."""
import os
import re
import shutil
import signal
import sys

from support import commands, jobs, processes, runs
from support.commands import expect, words

# How two ranks are started, the signal to the launcher at which they save, and
# whether the launcher's status is then 0.
LAUNCHERS = {
    "mpirun": ([*commands.MPIRUN, "2"], signal.SIGUSR1, True),
    "srun": (["srun", "--mpi=pmix", "--kill-on-bad-exit=1", "-n", "2"],
             signal.SIGUSR1, True),
    "torchrun": (["torchrun", "--standalone", "--no-python",
                  "--nproc-per-node", "2"],
                 signal.SIGTERM, False),
}
SAVING = {"checkpoint.enable": "true", "checkpoint.interval": 7,
          "checkpoint.async_mode": "async"}
COLLECTIVE = r"(in|ended) \w+ \"[^\"]+\" \(number \d+ of 'train'\)"


class Job(jobs.Job):
    """A run in `folder`; `options` are the launcher's."""

    def __init__(self, place, folder, settings, options=(), **environment):
        launcher, artifact, text, self.front = place
        command, *_ = LAUNCHERS[launcher]
        super().__init__(
            [*self.front, *command, *options, "fsdp-run", artifact,
             *words({"job.dump_folder": folder, "training.dataset_path": text,
                     "validation.enable": "false", "sample.length": 0,
                     "lr_scheduler.warmup_steps": 0, **settings})],
            folder, environment)

    def find_ranks(self):
        """Whatever is between them and the launcher."""
        folder = f"--job.dump_folder={self.folder}"
        return processes.by_rank(
            pid for pid in processes.everybody() for words_of in [processes.command_of(pid)]
            if "fsdp-rank-" in words_of[0] and folder in words_of)

    def kill(self):
        """Ranks too, which a launcher may have put into groups of their own."""
        if not self.has_ended():
            os.killpg(self.process.pid, signal.SIGKILL)
        self.ranks = self.find_ranks()
        super().kill()

    def train(self):
        """Until some steps are done; gives the ranks' processes."""
        self.wait_for_steps(lambda: jobs.bytes_of(self.metrics) > 3000)
        return self.ranks

    def signal_launcher(self, number):
        """To the launcher, not to what is before it."""
        pid = self.process.pid
        if self.front:
            (pid,) = processes.children(pid)
        os.kill(pid, number)

    def end(self):
        self.ranks = self.find_ranks()
        return super().end()


def own_messages(errors):
    return [line for line in errors.splitlines() if line.startswith("fsdp: ")]


def trains(place, work):
    status, said, errors = Job(place, f"{work}/trains",
                               {"training.steps": 5}).end()
    expect(status == 0 and "trained 5 steps" in said and
           not own_messages(errors), f"trains: {status}\n{said}\n{errors}")


def killed(place, work):
    job = Job(place, f"{work}/killed", jobs.LONG)
    os.kill(job.train()[1], signal.SIGKILL)
    status, _, errors = job.end()
    # The launcher may end the others before they could say anything.
    expect(status != 0 and len(own_messages(errors)) <= 1,
           f"killed: {status}\n{errors}")


def stopped(place, work):
    job = Job(place, f"{work}/stopped", jobs.LONG, FSDP_HEARTBEAT="3")
    ranks = job.train()
    expect(not processes.listeners(*ranks.values()),
           f"ranks listen at {processes.listeners(*ranks.values())}")
    job.wait_until(lambda: jobs.bytes_of(job.metrics) > 30000, "more steps")
    os.kill(ranks[1], signal.SIGSTOP)
    status, _, errors = job.end()
    said = own_messages(errors)
    expect(status != 0 and len(said) == 1 and re.search(
        r"no sign of life from rank 1 .* for 3 s: it is stopped "
        r"\(FSDP_HEARTBEAT sets the limit\).*; last collectives[^:]*: "
        rf"(rank 1|ranks 0, 1): {COLLECTIVE}", said[0]),
        f"stopped: {status}\n{errors}")


def saved(place, work):
    folder = f"{work}/saved"
    _, number, ends_well = LAUNCHERS[place[0]]
    job = Job(place, folder, {**jobs.LONG, **SAVING})
    job.train()
    job.signal_launcher(number)
    status, said, errors = job.end()
    expect((status == 0) == ends_well and not own_messages(errors) and
           "the same command resumes from there" in said,
           f"saved: {status}\n{said}\n{errors}")
    steps, _ = runs.steps(folder)
    status, said, errors = Job(place, folder, {
        "training.steps": steps[-1] + 2, "checkpoint.enable": "true"}).end()
    expect(status == 0 and "trained 2 steps" in said,
           f"goes on: {status}\n{said}\n{errors}")


def restarted(place, work):
    """torchrun alone starts ranks again, which go on from what was saved."""
    job = Job(place, f"{work}/restarted", {**jobs.LONG, **SAVING},
              options=["--max-restarts", "1"])
    job.wait_until(lambda: runs.steps(job.folder)[0], "a checkpoint")
    ranks = job.find_ranks()
    os.kill(ranks[1], signal.SIGKILL)
    step = runs.steps(job.folder)[0][-1]
    def has_others():
        others = job.find_ranks()
        return len(others) == 2 and not set(others.values()) & set(ranks.values())
    job.wait_until(has_others, "other ranks")
    job.wait_until(lambda: runs.steps(job.folder)[0][-1] > step + 7, "their steps")
    job.signal_launcher(signal.SIGTERM)
    _, said, errors = job.end()
    expect("checkpoint: resumes after step" in said, f"restarted: {said}\n{errors}")


def main():
    launcher, artifact, text, work, *front = sys.argv[1:]
    place = (launcher, artifact, text, front)
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    scenarios = [trains, killed, stopped, saved]
    if launcher == "torchrun":
        scenarios.append(restarted)
    for scenario in scenarios:
        scenario(place, work)
        print(f"{launcher}: {scenario.__name__}")


main()
