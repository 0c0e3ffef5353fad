"""However a run that saves is ended, its newest checkpoint is whole, the next
run goes on from it, and nothing else stays.

usage: run_ends.py signals|kills WORKDIR [COUNT]"""
import json
import os
import random
import shutil
import signal
import sys
import time

from support import jobs, runs
from support.commands import expect
from support.files import same_bytes

RANKS = 2


class Job(jobs.Job):
    """A run without an end, after its first steps."""

    def __init__(self, artifact, text, folder, **settings):
        before = jobs.bytes_of(f"{folder}/metrics.jsonl")
        super().__init__(artifact.command(text, folder, **{**jobs.LONG, **settings}), folder)
        self.wait_for_steps(lambda: jobs.bytes_of(self.metrics) != before)

    def place(self, who):
        return {"front": self.process.pid,
                "rank": random.choice(list(self.ranks.values()))}[who]


def check_stopped(job, name):
    """A run that a signal ended has saved its last step."""
    status, said, errors = job.end()
    expect(status == 0 and errors == "", f"{name}: {status}\n{said}\n{errors}")
    expect("the same command resumes from there" in said, f"{name}: {said}")
    saved, others = runs.steps(job.folder)
    expect(not others, f"{name}: leaves {others}")
    expect(runs.curve(job.folder)[-1][0] == saved[-1],
           f"{name}: step {saved[-1]} is not the last one")
    with open(f"{job.folder}/summary.json") as file:
        summary = json.load(file)
    expect(summary["steps"] == saved[-1] and "stopped by signal" in summary["interrupted"],
           f"{name}: {summary}")
    expect(os.path.exists(f"{job.folder}/loss.svg"), f"{name}: no curve")


def check_bits(artifact, text, work, folder):
    """All of those runs together are one that was never interrupted."""
    steps = runs.steps(folder)[0][-1] + 2
    for name, enable in ((folder, "true"), (f"{work}/full", "false")):
        artifact.run(text, name, "--dump", f"{name}.st", training__steps=steps,
                     checkpoint__enable=enable)
    expect(runs.curve(folder) == runs.curve(f"{work}/full"), "other losses")
    for rank in range(RANKS):
        expect(same_bytes(f"{folder}.rank{rank}.st", f"{work}/full.rank{rank}.st"),
               f"rank {rank} differs")


def signals(work, text, artifact):
    folder = f"{work}/run"
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
    # From a shell script with &, Ctrl-C would be ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    count = 0
    for who in ("front", "rank", "group"):
        for number in numbers:
            job = Job(artifact, text, folder, checkpoint__async_mode="async",
                      checkpoint__interval=7)
            if who == "group":
                os.killpg(job.process.pid, number)
            else:
                os.kill(job.place(who), number)
            check_stopped(job, f"{number} to {who}")
            count += 1
    check_bits(artifact, text, work, folder)
    # The second wish counts while the first is waited for: a rank is stopped.
    job = Job(artifact, text, f"{work}/twice", checkpoint__interval=7)
    os.kill(job.ranks[0], signal.SIGSTOP)
    while job.process.poll() is None:  # wishes in half a second are one
        os.kill(job.process.pid, signal.SIGTERM)
        time.sleep(0.6)
    status, _, errors = job.end()
    expect(status == 128 + signal.SIGTERM and "stopped by signal 15" in errors,
           f"twice: {status} {errors}")
    # So does the end of the grace period.
    job = Job(artifact, text, f"{work}/late", checkpoint__interval=7,
              checkpoint__grace_period_seconds=1)
    os.kill(job.ranks[0], signal.SIGSTOP)
    os.kill(job.process.pid, signal.SIGTERM)
    status, _, errors = job.end()
    expect(status == 128 + signal.SIGTERM and "within 1 s" in errors,
           f"late: {status} {errors}")
    # Ranks that hang are named, not the signal that ends them.
    os.environ["FSDP_HEARTBEAT"] = "3"
    job = Job(artifact, text, f"{work}/hangs", checkpoint__interval=7)
    del os.environ["FSDP_HEARTBEAT"]
    for rank in job.ranks.values():  # one alone would be told of by the other
        os.kill(rank, signal.SIGSTOP)
    status, _, errors = job.end()
    expect(status == 1 and "has been stopped for 3 s" in errors and
           "stopped by signal" not in errors, f"hangs: {status} {errors}")
    # The steps are over, and a long text is generated.
    job = Job(artifact, text, f"{work}/sample", training__steps=2,
              sample__length=1000000)
    while not job.process.stdout.readline().startswith("sample: "):
        expect(job.process.poll() is None, "ends without a sample")
    os.kill(job.process.pid, signal.SIGTERM)
    check_stopped(job, "while it samples")
    print(f"{count} signals, all saved; 2 that were not waited for")


def kills(work, text, artifact, count):
    folder = f"{work}/run"
    seed = int(os.environ.get("FSDP_SEED", time.time()))
    print(f"seed {seed}")
    random.seed(seed)
    for number in range(count):
        who = ("rank", "front")[number % 2]
        mode = ("async", "disabled")[number // 2 % 2]
        job = Job(artifact, text, folder, checkpoint__async_mode=mode,
                  checkpoint__interval=2, checkpoint__keep_latest_k=3)
        time.sleep(random.random() * 0.3)
        os.kill(job.place(who), signal.SIGKILL)
        status, said, _ = job.end()
        expect(status != 0, f"kill {number}: status 0\n{said}")
        if not runs.steps(folder)[0]:
            # Killed before the first save: its steps are no part of what
            # follows, and their lines would stay.
            shutil.rmtree(folder)
            continue
        runs.verify(folder)
    # Two steps more may be whole already and only not yet renamed; after those
    # this run saves, and removes what is older.
    artifact.run(text, folder, training__steps=runs.steps(folder)[0][-1] + 4,
                 checkpoint__keep_latest_k=3)
    saved, others = runs.steps(folder)
    expect(not others and len(saved) <= 3, f"left {saved} {others}")
    check_bits(artifact, text, work, folder)
    print(f"{count} kills, nothing lost")


def main():
    what, work, *count = sys.argv[1:]
    text = runs.start_in(work)
    artifact = runs.compile_small(f"{work}/artifact", RANKS)
    if what == "signals":
        signals(work, text, artifact)
    else:
        kills(work, text, artifact, int(count[0]))


main()
