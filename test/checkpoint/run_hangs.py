"""A call that a save or the last export makes to the file system never comes back,
as where a file server is gone: it is named with rank, step and file, it ends the
job, and nothing is left that the next run would meet.

usage: run_hangs.py WORKDIR"""
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor

from support import commands, jobs, runs
from support.commands import expect
from support.waiting import wait_until

RANKS = 2
LIMIT = 0.5  # FSDP_FILE_TIMEOUT; the job ends after ten times as long
SAVE, EXPORT = "checkpoint", "export"  # as the message says what waits
EXPORTS = {"training__steps": 4, "checkpoint__last_save_model_only": "true",
           "checkpoint__last_save_in_hf": "true"}
# (what waits, checkpoint.async_mode, call, a part of its file or with $ its end, the
# rank that makes it, what the message says of the file)
PART = r".*/step-4\.partial/rank-0000{}\.safetensors"
CASES = [
    (SAVE, "async", "open", "step-4.partial/rank-00001", 1, PART.format(1)),
    (SAVE, "disabled", "write", "step-4.partial/rank-00000", 0, PART.format(0)),
    (SAVE, "disabled", "fsync", "step-4.partial/rank-00001", 1, PART.format(1)),
    (SAVE, "async", "fsync", "step-4.partial/rank-00000", 0, PART.format(0)),
    (SAVE, "async", "rename", "step-4.partial$", 0, r".*/step-4\.partial"),
    (EXPORT, "async", "open", "step-4-hf.partial/", 0, r".*/step-4-hf\.partial/\S+"),
    (EXPORT, "disabled", "rename", "step-4-hf.partial$", 0, r".*/step-4-hf\.partial"),
]


def shim(work):
    """The library that makes calls hang."""
    library = f"{work}/hang.so"
    commands.run("cc", "-shared", "-fPIC", "-o", library,
                 os.path.join(os.path.dirname(__file__), "hang.c"), "-ldl")
    return library


def hangs(work, text, artifact, library, number):
    what, mode, call, part, rank, said = CASES[number]
    folder = f"{work}/{number}"
    hung, again, others = {"training__steps": 100000}, {"training__steps": 5}, []
    if what == EXPORT:
        hung, again, others = EXPORTS, EXPORTS, ["step-4-hf"]
    command = artifact.command(text, folder, **hung, checkpoint__interval=4,
                               checkpoint__async_mode=mode,
                               metrics__log_freq=1000000)
    job = jobs.Job(command, folder, {
        "LD_PRELOAD": library, "HANG_CALL": call, "HANG_FILE": part,
        "HANG_RANK": str(rank), "FSDP_FILE_TIMEOUT": str(LIMIT)})

    def has_ranks():
        job.ranks = job.find_ranks()
        return len(job.ranks) == RANKS or job.has_ended()
    wait_until(has_ranks, "ranks")
    status, _, errors = job.end()
    waits = rf"rank {rank}: the {what} of step 4 waits for the file system: {call} of '{said}'"
    for message in (
            rf"^fsdp-run: warning: {waits} has not come back within {LIMIT:g} s "
            rf"\(FSDP_FILE_TIMEOUT sets the limit\); the job ends if it has not within "
            rf"{10 * LIMIT:g} s$",
            rf"^fsdp-run: {waits} has not come back within {10 * LIMIT:g} s; the whole "
            r"job was ended"):
        expect(re.search(message, errors, re.M), f"{mode} {call}: {message}:\n{errors}")
    # A disk that is slow for others of the machine may be named too.
    messages = re.findall("^(?!fsdp-run: warning: ).+", errors, re.M)
    expect(status == 3 and len(messages) == 1, f"{mode} {call}: {status}\n{errors}")
    expect("run.lock" not in os.listdir(folder) + os.listdir(f"{folder}/checkpoint"),
           f"{mode} {call}: a lock stays")
    # When the server is there again the same command goes on.
    artifact.run(text, folder, **again)
    expect(runs.steps(folder)[1] == others, f"{mode} {call}: left {runs.steps(folder)}")


def slow_export(work, text, artifact, library):
    """An export that takes longer than a collective may: the other rank waits, and
    is no alarm."""
    folder = f"{work}/slow"
    environment = dict(os.environ, LD_PRELOAD=library, HANG_CALL="rename",
                       HANG_FILE="step-4-hf.partial$", HANG_RANK="0", HANG_SECONDS="3",
                       FSDP_FILE_TIMEOUT="1", FSDP_TIMEOUT="1")
    status, said, errors = commands.finished(artifact.command(text, folder, **EXPORTS),
                                             env=environment)
    expect(status == 0 and "the export of step 4 waits" in errors and
           "step 4 written for Hugging Face" in said,
           f"slow export: {status}\n{said}{errors}")


def main():
    (work,) = sys.argv[1:]
    text = runs.start_in(work)
    artifact = runs.compile_small(f"{work}/artifact", RANKS)
    library = shim(work)
    with ThreadPoolExecutor(len(CASES) + 1) as pool:  # they only wait
        slow = pool.submit(slow_export, work, text, artifact, library)
        list(pool.map(lambda number: hangs(work, text, artifact, library, number),
                      range(len(CASES))))
        slow.result()
    print(f"{len(CASES)} calls that hang, all named; a slow export ends well")


main()
