"""Runs that end with a directory of Hugging Face: what `fsdp-checkpoint export`
makes of the last step, to the byte.

usage: run_hf.py WORKDIR"""
import filecmp
import json
import os
import re
import shutil
import signal
import sys

from support import commands, jobs, processes, runs
from support.commands import expect
from support.waiting import wait_until

RANKS = 2
SETTINGS = {"training__steps": 4, "checkpoint__interval": 2,
            "checkpoint__last_save_model_only": "true",
            "checkpoint__last_save_in_hf": "true"}


def same_files(a, b):
    names = sorted(os.listdir(a))
    expect(names == sorted(os.listdir(b)), f"{a} has {names}, {b} has {os.listdir(b)}")
    same, other, broken = filecmp.cmpfiles(a, b, names, shallow=False)
    expect(not other and not broken, f"{a} and {b} differ in {other + broken}")
    return len(same)


def exports(work, text, artifact):
    """Both types, with staging and without."""
    files = 0
    for dtype, mode in (("float32", "disabled"), ("bfloat16", "async")):
        folder = f"{work}/{dtype}"
        said = artifact.run(text, folder, checkpoint__export_dtype=dtype,
                            checkpoint__async_mode=mode, **SETTINGS)
        place = f"{folder}/checkpoint/step-4-hf"
        expect(re.search(rf"step 4 written for Hugging Face to {place}: [\d,]+ parameters, "
                         rf"[\d,]+ bytes of {dtype} in 1 file\n", said), said)
        expect(runs.steps(folder) == ([2, 4], ["step-4-hf"]), f"{runs.steps(folder)}")
        commands.run("fsdp-checkpoint", "export", f"{folder}/checkpoint",
                     f"{work}/exported-{dtype}", "--dtype", dtype)
        files += same_files(place, f"{work}/exported-{dtype}")
    return files


def again(work, text, artifact):
    """A run that is over makes what lacks, and leaves what is there."""
    folder = f"{work}/float32"
    place = f"{folder}/checkpoint/step-4-hf"
    shutil.rmtree(place)
    os.makedirs(f"{place}.partial/left")
    os.makedirs(f"{folder}/checkpoint/step-2-hf.partial")
    os.makedirs(place)  # empty
    said = artifact.run(text, folder, **SETTINGS)
    expect("all 4 steps are over" in said and "written for Hugging Face" in said, said)
    same_files(place, f"{work}/exported-float32")
    expect(runs.steps(folder)[1] == ["step-4-hf"], f"{runs.steps(folder)}")
    os.makedirs(f"{place}.partial")
    said = artifact.run(text, folder, **{**SETTINGS, "checkpoint__last_save_in_hf": "false"})
    expect(runs.steps(folder)[1] == ["step-4-hf"], f"{runs.steps(folder)}")
    said = artifact.run(text, folder, **SETTINGS)
    expect(f"checkpoint: step 4 is there for Hugging Face already: {place}\n" in said, said)


def with_model(artifact, path, model):
    """The artifact as if it were compiled from another model, or from text."""
    shutil.copytree(artifact.path, path)
    with open(f"{path}/manifest.json") as file:
        manifest = json.load(file)
    expect(manifest.pop("model")["family"] == "llama3", "no model")
    with open(f"{path}/manifest.json", "w") as file:
        json.dump({**manifest, **model}, file)
    return runs.SavingArtifact(path, RANKS, artifact.settings, runs.CONFIG)


def refused(work, text, artifact):
    """Before the first step, in one message."""
    taken, linked = f"{work}/taken", f"{work}/linked"
    os.makedirs(f"{taken}/checkpoint/step-4-hf/mine")
    os.makedirs(f"{linked}/checkpoint")
    os.symlink("nowhere", f"{linked}/checkpoint/step-4-hf")
    unnamed = with_model(artifact, f"{work}/unnamed", {})
    unheard = with_model(artifact, f"{work}/unheard",
                         {"model": {"family": "unheard", "fields": {}}})
    is_taken = (r"'.*step-4-hf' exists already, which checkpoint.last_save_in_hf = true would "
                r"write after the last step; move it away")
    key = r"checkpoint.last_save_in_hf = true: the artifact '.*"
    remedy = r"; leave the key out, or use an artifact"
    over = {"checkpoint__initial_load_path": f"{work}/float32/checkpoint/step-2",
            "checkpoint__initial_load_model_only": "false", "training__steps": 2}
    cases = ((artifact, taken, {}, is_taken), (artifact, linked, {}, is_taken),
             (unnamed, f"{work}/other", {}, key + "unnamed' does not state its model.*" +
              remedy),
             (unheard, f"{work}/other", {}, key + "unheard': .* the family 'unheard'.*" + remedy),
             (artifact, f"{work}/over", over, r"no step is trained, and so none saved: '.*step-2' "
              r"is of step 2 and training.steps = 2; raise that, or use fsdp-checkpoint export"))
    for which, folder, settings, message in cases:
        said = which.fail(text, folder, **{**SETTINGS, **settings})
        lines = [line for line in said.splitlines() if line.startswith("fsdp")]
        expect(re.search(message, said) and len(lines) == 1, said)
        metrics = f"{folder}/metrics.jsonl"
        expect(not os.path.exists(metrics) or '"step"' not in open(metrics).read(),
               f"{folder}: steps were trained")
    return len(cases)


def faults(work, text, artifact):
    """Something else has the place of the step that is there: the run ends as
    checkpoint.on_error says."""
    folder = f"{work}/bfloat16"
    place = f"{folder}/checkpoint/step-4-hf"
    shutil.rmtree(place)
    os.symlink("nowhere", place)
    for policy, fails in (("stop", True), ("continue", False)):
        status, said, errors = commands.finished(
            artifact.command(text, folder, checkpoint__on_error=policy, **SETTINGS))
        expect((status != 0) == fails and
               re.search(r"step-4-hf' exists and is not a Hugging Face directory.*; step 4 itself "
                         r"is saved, and the same command tries again", errors),
               f"{policy}: {status} {said}{errors}")
        expect(runs.steps(folder) == ([2, 4], ["step-4-hf"]), f"{policy}: {runs.steps(folder)}")
    os.remove(place)
    return 2


class Job(jobs.Job):
    """A run whose ranks can be stopped for a while."""

    def __init__(self, command):
        super().__init__(command, "run_hf")

        def has_ranks():
            self.ranks = self.find_ranks()
            return len(self.ranks) == RANKS or self.has_ended()
        wait_until(has_ranks, "ranks")

    def send(self, number, *ranks):
        processes.send(number, *(self.ranks[rank] for rank in ranks))

    def stop_while(self, partial, whole, *ranks):
        """Stops ranks when there is `partial` and `whole` not yet; False: missed."""
        while not self.has_ended() and not os.path.exists(whole):
            if not os.path.exists(partial):
                continue
            self.send(signal.SIGSTOP, *ranks)
            wait_until(lambda: all(processes.is_stopped(self.ranks[rank]) for rank in ranks),
                       "a stop")
            return os.path.exists(partial) and not os.path.exists(whole)
        return False


def caught(command, before, partial, whole, ranks, act, ends=False):
    """(status, output, errors) of a run whose `ranks` are stopped while `partial` is
    written and there is no `whole`, for `act`. If that `ends` the writing, one that was
    past its last look at signals is none: it goes on to `whole`."""
    for _ in range(30):  # the moment may be missed
        before()
        job = Job(command)
        is_caught = job.stop_while(partial, whole, *ranks)
        if is_caught:
            act(job)
        job.send(signal.SIGCONT, *ranks)
        ended = job.end()
        if is_caught and not (ends and os.path.isdir(whole)):
            return ended
    sys.exit(f"{partial} is never seen")


def interrupted(work, text, artifact):
    """A signal after the last step, to the rank that exports or to the other: no
    directory is there, and what fails is said all the same."""
    folder = f"{work}/bfloat16"
    step = f"{folder}/checkpoint/step-4"
    command = artifact.command(text, folder, **SETTINGS)
    goes_on = "step-4 has: the same command resumes"

    def remove():
        for path in (step, f"{step}-hf"):
            shutil.rmtree(path, ignore_errors=True)

    # While the step is saved. Neither rank may be ahead of the signal.
    status, said, errors = caught(command, remove, f"{step}.partial", step, (0, 1),
                                  lambda job: job.send(signal.SIGTERM, 1))
    expect(status == 0 and goes_on in said, f"saving: {status}: {said}{errors}")
    expect(runs.steps(folder) == ([2, 4], []), f"saving: {runs.steps(folder)}")

    def remove_export():
        shutil.rmtree(f"{step}-hf", ignore_errors=True)

    for number in (signal.SIGTERM, signal.SIGUSR1):
        status, said, errors = caught(command, remove_export, f"{step}-hf.partial", f"{step}-hf",
                                      (0,), lambda job: job.send(number, 0), ends=True)
        expect(status == 0 and goes_on in said and f"signal {number:d} " in said,
               f"{number}: {status}: {said}{errors}")
        expect(runs.steps(folder) == ([2, 4], []), f"{number}: {runs.steps(folder)}")

    def take_place(job):
        os.symlink("nowhere", f"{step}-hf")
        job.send(signal.SIGTERM, 1)
    status, said, errors = caught(command, remove_export, f"{step}-hf.partial", f"{step}-hf",
                                  (0,), take_place)
    expect(status != 0 and "cannot write the directory" in errors, f"{status}: {said}{errors}")
    return 4


def main():
    (work,) = sys.argv[1:]
    text = runs.start_in(work)
    # Wide, so that an export takes long enough to be met.
    artifact = runs.compile_small(f"{work}/artifact", RANKS, model__dim=64,
                                     model__ffn_dim=32768)
    files = exports(work, text, artifact)
    again(work, text, artifact)
    print(f"{files} files as exported, {refused(work, text, artifact)} requests refused, "
          f"{faults(work, text, artifact)} faults, {interrupted(work, text, artifact)} signals")


main()
