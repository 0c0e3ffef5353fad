"""Others change a folder of checkpoints while a job looks at it or writes to
it: ranks agree, jobs keep apart, and no save waits for what does not come.

usage: run_races.py WORKDIR"""
import os
import shutil
import sys

import runs
from runs import artifacts, expect

RANKS = 2


def two_views(work, *arguments):
    """The output of a job whose rank 0 runs in work/0 and rank 1 in work/1: with
    relative names they see two states of one folder."""
    ranks = []
    for rank in range(RANKS):
        os.makedirs(f"{work}/{rank}", exist_ok=True)
        ranks += [":"] * bool(ranks) + ["-n", "1", "--wdir", f"{work}/{rank}",
                                        *arguments]
    return artifacts.run("mpirun", "--allow-run-as-root", "--oversubscribe",
                         "--bind-to", "none", *ranks)


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
    alone = artifacts.run(*command, f"{work}/all/checkpoint/step-2", "-n",
                          str(RANKS))
    score = [line for line in alone.splitlines() if "bits per byte" in line]
    expect(score and score[0] in said, f"{score}\n{said}")
    command = artifact.command(
        text, f"{work}/begun", training__steps=4,
        checkpoint__initial_load_path="live",
        checkpoint__initial_load_model_only="false")
    command[command.index("-n"):command.index("-n") + 2] = []
    said = two_views(work, *command)
    expect("goes on behind step 2, from live/step-2\n" in said, said)
    artifact.run(text, f"{work}/all", training__steps=4)
    expect(runs.curve(f"{work}/begun") == runs.curve(f"{work}/all")[2:],
           "other losses")


def main():
    (work,) = sys.argv[1:]
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    text = f"{work}/text"
    runs.write_text(text)
    artifact = runs.compile_artifact(f"{work}/artifact", RANKS)
    newest_of_first(work, text, artifact)
    print("all races are fair")


main()
