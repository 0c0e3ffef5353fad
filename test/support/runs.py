"""Artifacts: compile them, run them, read what runs leave."""
import json
import os
import shutil
import subprocess
import sys

from support import cache, commands, tensors
from support.commands import words

INPUTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e", "Inputs")
CONFIG = os.path.join(INPUTS, "tiny.toml")
# So small that a step takes a millisecond, and with a rate that does not depend
# on how many steps there are.
SMALL = {"model.n_layers": 1, "model.dim": 32, "model.ffn_dim": 48,
         "training.seq_len": 32, "lr_scheduler.decay_ratio": 0}
SAVED = (".exp_avg", ".exp_avg_sq")


class Artifact:
    """What is compiled with these settings for so many ranks, and its runs."""

    def __init__(self, path, ranks, settings, config=None):
        self.path, self.ranks, self.settings = path, ranks, settings
        self.config = ["--config", config] if config else []
        with open(f"{path}/manifest.json") as file:
            self.manifest = json.load(file)

    @classmethod
    def compiled(cls, path, ranks, settings, config=None):
        """Compiles it, or takes what another test has compiled."""
        cache.compile(["fsdp-compile", *(["--config", config] if config else []),
                       "--ranks", str(ranks), *words(settings)], path)
        return cls(path, ranks, settings, config)

    def command(self, *others, **settings):
        """A run; `settings`, with __ for the dot, come before the artifact's own,
        None leaves one out."""
        merged = {**self.settings, **commands.dotted(settings)}
        return ["fsdp-run", self.path, *self.config, "-n", str(self.ranks),
                *words({key: value for key, value in merged.items() if value is not None}),
                *others]

    def dumps(self, path):
        """What each rank has dumped to `path`."""
        stem, extension = os.path.splitext(path)
        return [tensors.read_safetensors(f"{stem}.rank{rank}{extension}")
                for rank in range(self.ranks)]

    def names(self, role):
        """Ranges of a role; there are some."""
        names = [entry["name"] for entry in self.manifest["ranges"]
                 if entry["role"] == role]
        commands.expect(names, f"{self.path} has no {role}")
        return names


class SavingArtifact(Artifact):
    """One whose runs have checkpoints."""

    def command(self, text, folder, *others, **settings):
        return super().command(*others, **{
            "training.dataset_path": text, "job.dump_folder": folder,
            "checkpoint.enable": "true", **settings})

    def run(self, *arguments, **settings):
        return commands.run(*self.command(*arguments, **settings))

    def fail(self, *arguments, **settings):
        """What a run that has to fail says."""
        return commands.fail(self.command(*arguments, **settings))

    def tensors(self, dump):
        """{name: values} of what a checkpoint has, from dumps of all ranks."""
        dumps = self.dumps(dump)
        names = self.names("parameter") + [
            entry["name"] for entry in self.manifest["ranges"]
            if entry["name"].endswith(SAVED)]
        return {name: tensors.whole(self.manifest, dumps, name) for name in names}


def compile_small(out, ranks, **settings):
    """The smallest model; `settings` have __ for the dot."""
    return SavingArtifact.compiled(
        out, ranks, {**SMALL, **commands.dotted(settings)}, CONFIG)


def verify(folder):
    """Every byte of the newest checkpoint in a folder of a run."""
    commands.run("fsdp-checkpoint", "verify", f"{folder}/checkpoint")


#===------------------------------------------------------------------------===#
# What runs leave
#===------------------------------------------------------------------------===#

def steps(folder):
    """Committed steps of a run, and other directories; none before the first
    save."""
    saved, others = [], []
    if not os.path.isdir(f"{folder}/checkpoint"):
        return saved, others
    for name in os.listdir(f"{folder}/checkpoint"):
        if name.startswith("step-") and name[5:].isdigit():
            saved.append(int(name[5:]))
        elif name != "run.lock":
            others.append(name)
    return sorted(saved), others


def metric_runs(folder):
    """All runs in a folder: [(what the header says, [a step's values, ...])].
    Without the half line in which a killed run may have ended."""
    found = []
    with open(os.path.join(folder, "metrics.jsonl")) as file:
        for line in (json.loads(line) for line in file if line.endswith("\n")):
            if "run" in line:
                found.append((line["run"], []))
            else:
                found[-1][1].append(line)
    return found


def metrics(folder):
    """The steps of the last run in a folder."""
    return metric_runs(folder)[-1][1]


def curve(folder):
    """(step, loss, gradient norm, rate) of all runs in a folder."""
    return [(line["step"], line["loss_hex"], line["grad_norm_hex"], line["lr"])
            for _, lines in metric_runs(folder)
            for line in lines if "step" in line]


def start_in(work):
    """Makes an empty folder, with the text that small models learn."""
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    write_text(f"{work}/text")
    return f"{work}/text"


def write_text(path):
    """The text that small models learn."""
    with open(path, "w") as file:
        subprocess.run([sys.executable, os.path.join(INPUTS, "text.py")],
                       stdout=file, check=True)
