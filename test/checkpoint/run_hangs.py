"""A call that a save makes to the file system never comes back, as where a file
server is gone: it is named with rank, step and file, it ends the job, and nothing
is left that the next run would meet.

usage: run_hangs.py WORKDIR"""
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import runs
from runs import artifacts, expect

RANKS = 2
# (checkpoint.async_mode, call, a part of its file or with $ its end, the rank that
# makes it, what the message says of the file)
PART = r".*/step-4\.partial/rank-0000{}\.safetensors"
CASES = [
    ("async", "open", "step-4.partial/rank-00001", 1, PART.format(1)),
    ("disabled", "write", "step-4.partial/rank-00000", 0, PART.format(0)),
    ("disabled", "fsync", "step-4.partial/rank-00001", 1, PART.format(1)),
    ("async", "fsync", "step-4.partial/rank-00000", 0, PART.format(0)),
    ("async", "rename", "step-4.partial$", 0, r".*/step-4\.partial"),
]


def shim(work):
    """The library that makes calls hang."""
    library = f"{work}/hang.so"
    artifacts.run("cc", "-shared", "-fPIC", "-o", library,
                  os.path.join(runs.HERE, "hang.c"), "-ldl")
    return library


def hangs(work, text, artifact, library, number):
    mode, call, part, rank, said = CASES[number]
    folder = f"{work}/{number}"
    command = artifact.command(text, folder, training__steps=100000,
                               checkpoint__interval=4, checkpoint__async_mode=mode,
                               metrics__log_freq=1000000)
    environment = dict(os.environ, LD_PRELOAD=library, HANG_CALL=call, HANG_FILE=part,
                       HANG_RANK=str(rank), FSDP_FILE_TIMEOUT="0.5")
    with runs.running(command, env=environment, stdout=subprocess.PIPE,
                      stderr=subprocess.PIPE) as process:
        ranks = {}

        def has_ranks():
            ranks.update(dict.fromkeys(artifacts.children(process.pid)))
            return len(ranks) == RANKS or process.poll() is not None
        artifacts.wait_until(has_ranks, "ranks")
        _, errors = process.communicate(timeout=artifacts.SECONDS)
    waits = rf"rank {rank}: the checkpoint of step 4 waits for the file system: {call} of '{said}'"
    for message in (
            rf"^fsdp-run: warning: {waits} has not come back within 0.5 s "
            r"\(FSDP_FILE_TIMEOUT sets the limit\); the job ends if it has not within 5 s$",
            rf"^fsdp-run: {waits} has not come back within 5 s; the whole job was ended"):
        expect(re.search(message, errors, re.M), f"{mode} {call}: {message}:\n{errors}")
    # A disk that is slow for others of the machine may be named too.
    messages = re.findall("^(?!fsdp-run: warning: ).+", errors, re.M)
    expect(process.returncode == 3 and len(messages) == 1,
           f"{mode} {call}: {process.returncode}\n{errors}")
    expect(not any(map(artifacts.is_alive, ranks)), f"{mode} {call}: ranks stay")
    expect("run.lock" not in os.listdir(folder) + os.listdir(f"{folder}/checkpoint"),
           f"{mode} {call}: a lock stays")
    # When the server is there again the same command goes on.
    artifact.run(text, folder, training__steps=5)
    expect(runs.steps(folder)[1] == [], f"{mode} {call}: left {runs.steps(folder)}")


def main():
    (work,) = sys.argv[1:]
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    text = f"{work}/text"
    runs.write_text(text)
    artifact = runs.compile_artifact(f"{work}/artifact", RANKS)
    library = shim(work)
    with ThreadPoolExecutor(len(CASES)) as pool:  # they only wait
        list(pool.map(lambda number: hangs(work, text, artifact, library, number),
                      range(len(CASES))))
    print(f"{len(CASES)} calls that hang, all named")


main()
