"""Others change a folder of checkpoints while a job looks at it or writes to
it: ranks agree, jobs keep apart, and no save waits for what does not come.

usage: run_races.py WORKDIR"""
import contextlib
import fcntl
import glob
import os
import re
import shutil
import sys
import time

from support import commands, jobs, runs
from support.commands import expect
from support.waiting import SECONDS

RANKS = 2


def two_views(work, *arguments):
    """The output of a job whose rank 0 runs in work/0 and rank 1 in work/1: with
    relative names they see two states of one folder."""
    ranks = []
    for rank in range(RANKS):
        os.makedirs(f"{work}/{rank}", exist_ok=True)
        ranks += [":"] * bool(ranks) + ["-n", "1", "--wdir", f"{work}/{rank}",
                                        *arguments]
    return commands.run(*commands.MPIRUN[:-1], *ranks)


def newest_of_first(work, text, artifact):
    """A run saves a step between the looks of two ranks: all take the step that
    the first has found."""
    artifact.run(text, f"{work}/all", training__steps=3, checkpoint__interval=1)
    for rank, seen in ((0, (1, 2)), (1, (1, 2, 3))):
        for step in seen:
            shutil.copytree(f"{work}/all/checkpoint/step-{step}",
                            f"{work}/{rank}/live/step-{step}")
    command = ["fsdp-run", artifact.path, "evaluate",
               f"--training.dataset_path={text}", "--checkpoint"]
    said = two_views(work, *command, "live")
    expect("parameters of live/step-2\n" in said, said)
    alone = commands.run(*command, f"{work}/all/checkpoint/step-2", "-n",
                         str(RANKS))
    score = [line for line in alone.splitlines() if "bits per byte" in line]
    expect(score and score[0] in said, f"{score}\n{said}")
    command = artifact.command(
        text, f"{work}/begun", training__steps=4,
        checkpoint__initial_load_path="live",
        checkpoint__initial_load_model_only="false")
    command[command.index("-n"):command.index("-n") + 2] = []
    said = two_views(work, *command)
    expect("resumes after step 2, from live/step-2\n" in said, said)
    artifact.run(text, f"{work}/all", training__steps=4)
    expect(runs.curve(f"{work}/begun") == runs.curve(f"{work}/all")[2:],
           "other losses")


def start(artifact, text, folder, **settings):
    """A run that saves and has no end."""
    return jobs.Job(artifact.command(text, folder, **{**jobs.LONG, **settings}), folder)


def one_job_in_a_folder(work, text, artifact):
    """A folder of checkpoints inside one job's dump folder is not another's,
    nor is it while a rank of a job that was killed lives."""
    folder = f"{work}/locked"
    job = start(artifact, text, folder, checkpoint__interval=20)
    job.wait_until(lambda: runs.steps(folder)[0], "a checkpoint")
    said = artifact.fail(text, f"{work}/second", training__steps=1,
                         checkpoint__folder=f"{folder}/checkpoint")
    expect("checkpoint' is in use by process" in said and
           said.rstrip().endswith("choose another --checkpoint.folder"), said)
    # A rank that takes long to die, as of a file system that does not answer:
    # this process plays it.
    with open(f"{folder}/checkpoint/run.lock") as rank:
        fcntl.flock(rank, fcntl.LOCK_SH)
        job.process.kill()
        job.end()
        second = jobs.Job(artifact.command(text, folder, training__steps=1), folder)
        waits = second.process.stderr.readline()
        expect(re.search(rf"run.lock' is still held by ranks of a job whose "
                         rf"process {job.process.pid} has ended; waiting", waits),
               f"{job.process.pid} is not waited for: {waits}")
    status, said, errors = second.end()
    expect(status == 0 and "steps are over" in said, errors)
    left = os.listdir(folder) + os.listdir(f"{folder}/checkpoint")
    expect("run.lock" not in left, f"left {left}")


def parts_that_vanish(work, text, artifact):
    """Somebody removes what a rank has written before the first rank reads
    it: the save fails and does not wait for ever."""
    folder = f"{work}/parts"
    job = start(artifact, text, folder, checkpoint__interval=1,
                checkpoint__async_mode="async")
    end = time.monotonic() + SECONDS
    while not job.has_ended() and time.monotonic() < end:
        for part in glob.glob(f"{folder}/checkpoint/*.partial/rank-00001.json"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(part)
    job.process.kill()
    status, _, errors = job.end()
    # Or it was gone when it was read or removed.
    expect(status == 1 and re.search(
        r"step \d+ could not be saved: .*rank-00001.json", errors), errors)


def folders_of_their_own(work, text, artifact):
    """A folder of checkpoints that is the place of something else."""
    for name in (".", "x/..", "summary.json", "metrics.jsonl/below",
                 "run.lock"):
        said = artifact.fail(text, f"{work}/own", training__steps=1,
                             checkpoint__folder=name)
        expect(re.search(rf"checkpoint.folder = '{re.escape(name)}' is (the "
                         r"dump folder itself|in the place of '.*', another "
                         r"file of this run); choose another "
                         r"--checkpoint.folder", said), said)
        expect(not os.path.exists(f"{work}/own"), f"{name} leaves a folder")


def main():
    (work,) = sys.argv[1:]
    text = runs.start_in(work)
    artifact = runs.compile_small(f"{work}/artifact", RANKS)
    newest_of_first(work, text, artifact)
    one_job_in_a_folder(work, text, artifact)
    folders_of_their_own(work, text, artifact)
    parts_that_vanish(work, text, artifact)
    print("all races are fair")


main()
