"""A model of transformers with a tokenizer is fine-tuned on ids whose prompts
are masked, interrupted, gone on with on two meshes, exported, and loaded again.

usage: fine_tune.py GOLDEN WORKDIR"""
import array
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys

from support import commands, runs
from support.commands import expect
from support.files import same_bytes
from support.processes import running
from support.waiting import wait_until

RANKS, ROWS, SEQUENCE = 2, 16, 16
BOS, EOS = 1, 2
UNMASKED = {"training__ids_mask_path": None}
SETTINGS = {"training.seq_len": SEQUENCE, "training.mixed_precision_param": "float32",
            "training.dataset": "ids", "lr_scheduler.warmup_steps": 0,
            "lr_scheduler.decay_ratio": 0, "optimizer.lr": 0.01, "metrics.peak_tflops": 1,
            "validation.fraction": 0.1, "checkpoint.enable": "true"}


def write_ids(work):
    """Prompts of five ids, and completions that follow from them: (ids, mask)."""
    random.seed(1)
    ids, mask = array.array("H"), bytearray()
    while len(ids) < 6000:
        prompt = [BOS, *(random.randrange(10, 40) for _ in range(5))]
        completion = [100 + prompt[1], 150 + prompt[1], 200 + prompt[1], EOS]
        ids.extend(prompt + completion)
        mask += bytes(len(prompt)) + bytes([1]) * len(completion)
    with open(f"{work}/ids", "wb") as file:
        ids.tofile(file)
    for name, values in (("mask", mask), ("prompts", bytes(1 - value for value in mask))):
        with open(f"{work}/{name}", "wb") as file:
            file.write(values)
    return ids, mask


class Model(runs.Artifact):
    """The program of a directory on a mesh."""

    def command(self, folder, *others, **settings):
        return super().command(*others, **{
            "job.dump_folder": f"{os.path.dirname(self.path)}/{folder}", **settings})

    def run(self, *arguments, **settings):
        return commands.run(*self.command(*arguments, **settings))

    def fail(self, message, *arguments, **settings):
        status, said, errors = commands.finished(self.command(*arguments, **settings))
        expect(status == 1 and re.search(message, errors) and
               errors.count("fsdp-run:") == 1, f"{settings}: {said}{errors}")

    def score(self, checkpoint, **settings):
        """(labels, nats per label) of the held-out ids."""
        said = self.run("nothing", "evaluate", "--checkpoint", checkpoint, **settings)
        return score_in(said)


def compiled(work, base, ranks):
    return Model.compiled(f"{work}/artifact-{ranks}", ranks, {
        **SETTINGS, "model.hf_assets_path": base,
        "training.local_batch_size": ROWS // ranks,
        "training.dataset_path": f"{work}/ids",
        "training.ids_mask_path": f"{work}/mask",
        "checkpoint.initial_load_path": base})


def score_in(said):
    found = re.search(r"held-out ids \(([\d,]+) labels predicted\): ([\d.]+) nats per token, "
                      r"perplexity ([\d.]+)\n", said)
    expect(found and "gzip" not in said and "sample" not in said, said)
    labels, nats, perplexity = (float(text.replace(",", "")) for text in found.groups())
    expect(abs(math.exp(nats) / perplexity - 1) < 1e-3, said)
    return labels, nats


def refused(work, model, ids):
    """Before the first step, with what to do."""
    base = model.settings["model.hf_assets_path"]
    use_ids = "tokenize the text with it and set training.dataset = tokens"
    text = {"training__dataset": "bytes", "training__dataset_path": f"{work}/text"}
    with open(f"{work}/text", "w") as file:
        file.write("In the beginning. " * 100)
    wide = array.array("H", ids)
    wide[77] = 256
    with open(f"{work}/wide", "wb") as file:
        wide.tofile(file)
    cases = (
        (rf"the model has a tokenizer, '{base}/tokenizer.json': {use_ids}",
         {**text, **UNMASKED}),
        (r"command line: training.ids_mask_path is for training.dataset = ids", text),
        (r"id 256 at position 77 \(byte 154\) is not in its vocabulary, 0 to 255",
         {"training__dataset_path": f"{work}/wide"}),
        (r"sample.length = 9 generates text, and training.dataset = ids has no table", {"sample__length": 9}))
    for message, settings in cases:
        model.fail(message, "refused", **settings)
    expect(not os.path.exists(f"{work}/refused"), "a refused run leaves a folder")
    return len(cases)


def interrupted(work, model):
    """The step after which a signal has ended a run, with its curve."""
    folder = f"{work}/run"
    command = model.command("run", training__steps=10000000, validation__freq=2,
                            checkpoint__interval=1000000)
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_until(lambda: process.poll() is not None or (
            os.path.exists(f"{folder}/metrics.jsonl") and len(runs.curve(folder)) > 4), "steps")
        process.send_signal(signal.SIGTERM)
        said, errors = process.communicate()
    expect(process.returncode == 0 and "loss.svg, summary.json" in said, said + errors)
    (step,), others = runs.steps(folder)
    expect(not others, others)
    with open(f"{folder}/summary.json") as file:
        summary = json.load(file)
    said = commands.run("fsdp-checkpoint", "inspect", f"{folder}/checkpoint")
    expect(f"data ids of u16 '{work}/ids' with a mask, 12000 bytes" in said, said)
    expect(summary["steps"] == step and "signal 15" in summary["interrupted"], f"{summary}")
    with open(f"{folder}/loss.svg") as file:
        drawn = re.findall(r"<title>step (\d+):", file.read())
    validated = [line["validation"]["step"] for line in runs.metrics(folder)
                 if "validation" in line]
    expect(len(validated) > 1 and drawn == [str(i) for i in validated], f"{validated}: {drawn}")
    return step


def resumed(work, model, other, step):
    """On the same mesh to the same bits, and on another one; what else the
    checkpoint remembers of the data is compared."""
    last = {"training__steps": step + 4, "checkpoint__interval": 1000000}
    shutil.copytree(f"{work}/run", f"{work}/other")
    model.fail("training.ids_mask_path: a mask in the checkpoint, none now", "run", **UNMASKED,
               **last)
    model.fail("training.ids_mask_path: another mask than in the checkpoint", "run",
               training__ids_mask_path=f"{work}/prompts", **last)
    said = model.run("run", "--dump", f"{work}/run.st", **last)
    expect(f"{work}/run/checkpoint/step-{step}" in said, said)
    whole = model.run("whole", "--dump", f"{work}/whole.st", **last)
    for rank in range(RANKS):
        expect(same_bytes(f"{work}/run.rank{rank}.st", f"{work}/whole.rank{rank}.st"),
               f"rank {rank} differs")
    curve = runs.curve(f"{work}/whole")
    expect(runs.curve(f"{work}/run") == curve, "other losses")
    expect(score_in(said) == score_in(whole), "other held-out loss")
    other.run("other", **last)
    for there, here in zip(runs.curve(f"{work}/other"), curve, strict=True):
        a, b = float.fromhex(there[1]), float.fromhex(here[1])
        expect(there[0] == here[0] and abs(a / b - 1) < 1e-5, f"{there} {here}")
    return score_in(said)


def masked(work, model, checkpoint, score):
    """What the mask hides and what it shows are all labels together."""
    labels, nats = score
    hidden = model.score(checkpoint, training__ids_mask_path=f"{work}/prompts")
    whole = model.score(checkpoint, **UNMASKED)
    expect(labels + hidden[0] == whole[0] == 599, f"{score} {hidden} {whole}")
    total = labels * nats + hidden[0] * hidden[1]
    expect(abs(total / (whole[0] * whole[1]) - 1) < 1e-3, f"{score} {hidden} {whole}")
    # Completions are learnt, prompts are random.
    expect(nats < hidden[1] - 1, f"{score} {hidden}")


def main():
    golden, work = sys.argv[1:]
    shutil.rmtree(work, ignore_errors=True)
    base = f"{work}/base"
    shutil.copytree(f"{golden}/code_llama", base)
    with open(f"{base}/tokenizer.json", "w") as file:
        file.write("{}")
    ids, _ = write_ids(work)
    model, other = compiled(work, base, RANKS), compiled(work, base, 1)
    count = refused(work, model, ids)
    step = interrupted(work, model)
    score = resumed(work, model, other, step)
    checkpoint = f"{work}/run/checkpoint"
    masked(work, model, checkpoint, score)
    tuned = f"{work}/tuned"
    commands.run("fsdp-checkpoint", "export", checkpoint, tuned, "--assets", base)
    expect(os.path.exists(f"{tuned}/tokenizer.json"), "no tokenizer")
    expect(model.score(tuned) == score, f"exported: {model.score(tuned)}, not {score}")
    print(f"{count} refused; gone on to the same bits; exported with the same loss")


main()
