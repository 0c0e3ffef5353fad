"""Runs that end with a directory of Hugging Face: what `fsdp-checkpoint export`
makes of the last step, to the byte.

usage: run_hf.py WORKDIR"""
import filecmp
import os
import re
import shutil
import signal
import subprocess
import sys

import runs
from runs import artifacts, expect

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
        artifacts.run("fsdp-checkpoint", "export", f"{folder}/checkpoint",
                      f"{work}/exported-{dtype}", "--dtype", dtype)
        files += same_files(place, f"{work}/exported-{dtype}")
    return files


def score(artifact, text, path):
    said = artifacts.run("fsdp-run", artifact.path, "evaluate", "-n", str(RANKS), "--checkpoint",
                         path, f"--training.dataset_path={text}")
    return re.search(r"([\d.]+) bits per byte", said).group(1)


def again(work, text, artifact):
    """A run that is over makes what lacks, and leaves what is there."""
    folder = f"{work}/float32"
    place = f"{folder}/checkpoint/step-4-hf"
    shutil.rmtree(place)
    os.makedirs(f"{place}.partial/left")
    said = artifact.run(text, folder, **SETTINGS)
    expect("all 4 steps are over" in said and "written for Hugging Face" in said, said)
    same_files(place, f"{work}/exported-float32")
    expect(runs.steps(folder)[1] == ["step-4-hf"], f"{runs.steps(folder)}")
    with open(f"{place}/mine", "w"):
        pass
    said = artifact.run(text, folder, **SETTINGS)
    expect("written for Hugging Face" not in said, said)
    os.remove(f"{place}/mine")
    steps = [score(artifact, text, path) for path in (place, f"{folder}/checkpoint/step-4")]
    expect(steps[0] == steps[1], f"other weights: {steps}")


def refused(work, text, artifact):
    """Before the first step, in one message."""
    taken = f"{work}/taken"
    os.makedirs(f"{taken}/checkpoint/step-4-hf")
    graph = artifacts.run("fsdp-compile", "--config", runs.CONFIG,
                          *runs.words(artifact.settings), "--ranks", str(RANKS), "--emit=graph")
    with open(f"{work}/graph.mlir", "w") as file:
        # The attributes of the module, of which nn.model says the model.
        expect("nn.model" in graph, graph[:400])
        file.write(re.sub(r"^module( @\S+)? attributes \{.*\} \{$", r"module\1 {", graph, flags=re.M))
    artifacts.run("fsdp-compile", f"{work}/graph.mlir", "--mesh", f"dp_shard={RANKS}",
                  "-o", f"{work}/unnamed")
    unnamed = runs.Artifact(f"{work}/unnamed", RANKS, artifact.settings)
    cases = ((artifact, taken, r"'.*step-4-hf' is there already, which "
              r"checkpoint.last_save_in_hf = true would write"),
             (unnamed, f"{work}/unnamed-run", r"checkpoint.last_save_in_hf = true, but the "
              r"artifact does not say of which model it is"))
    for which, folder, message in cases:
        said = which.fail(text, folder, **SETTINGS)
        expect(re.search(message, said) and said.count("fsdp") == 1, said)
        metrics = f"{folder}/metrics.jsonl"
        expect(not os.path.exists(metrics) or '"step"' not in open(metrics).read(),
               f"{folder}: steps were trained")
    return len(cases)


def faults(work, text, artifact):
    """No directory can take the place of a link: the step stays, the run ends as
    checkpoint.on_error says."""
    for policy, fails in (("stop", True), ("continue", False)):
        folder = f"{work}/fault-{policy}"
        os.makedirs(f"{folder}/checkpoint")
        os.symlink("nowhere", f"{folder}/checkpoint/step-4-hf")
        done = subprocess.run(
            artifact.command(text, folder, checkpoint__on_error=policy, **SETTINGS),
            capture_output=True, text=True, timeout=300)
        expect((done.returncode != 0) == fails and
               re.search(r"'.*step-4-hf' is a link; .*; step 4 itself is "
                         r"saved, and the same command tries again", done.stderr),
               f"{policy}: {done.returncode} {done.stdout}{done.stderr}")
        expect(runs.steps(folder) == ([2, 4], ["step-4-hf"]), f"{policy}: {runs.steps(folder)}")
    return 2


def interrupted(work, text):
    """A signal while the directory is written: it is whole or not there, and the
    same command makes it."""
    artifact = runs.compile_artifact(f"{work}/large", RANKS, model__dim=512,
                                     model__ffn_dim=2048, model__n_layers=4)
    folder = f"{work}/interrupted"
    place = f"{folder}/checkpoint/step-4-hf"
    process = subprocess.Popen(artifact.command(text, folder, **SETTINGS), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    artifacts.wait_until(lambda: os.path.exists(f"{place}.partial") or os.path.exists(place) or
                         process.poll() is not None, "an export")
    process.send_signal(signal.SIGTERM)
    said, errors = process.communicate(timeout=300)
    # The signal may come too late.
    ends = ("step-4 has: the same command goes on", "written to ")
    expect(process.returncode == 0 and any(end in said for end in ends),
           f"{process.returncode}: {said}{errors}")
    expect(runs.steps(folder)[1] in ([], ["step-4-hf"]), f"{runs.steps(folder)}")
    artifact.run(text, folder, **SETTINGS)
    artifacts.run("fsdp-checkpoint", "export", f"{folder}/checkpoint", f"{work}/exported-large")
    same_files(place, f"{work}/exported-large")


def main():
    (work,) = sys.argv[1:]
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    text = f"{work}/text"
    runs.write_text(text)
    artifact = runs.compile_artifact(f"{work}/artifact", RANKS)
    files = exports(work, text, artifact)
    again(work, text, artifact)
    interrupted(work, text)
    requests = refused(work, text, artifact)
    print(f"{files} files as exported, {requests} requests refused, "
          f"{faults(work, text, artifact)} faults")


main()
