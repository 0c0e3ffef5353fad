"""What is trained here, exported and loaded by transformers gives the same
logits. Run by hand, with the tools in PATH; see README.md.

usage: check_export.py WORKDIR [STEPS [hf_families]]

Each directory of hf_weights, or of hf_families, is trained on two ranks, once by a program that
keeps the rotary layout of its files and once by one that rotates neighbours,
saved, and exported in f32. The logits are compared with those of the program
@evaluate on the same parameters.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file, save_file

GOLDEN = pathlib.Path(__file__).parent / (sys.argv[3] if len(sys.argv) > 3 else "hf_weights")
WORK = pathlib.Path(sys.argv[1])
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 20
RANKS, BATCH, SEQ = 2, 2, 16
TEXT = b"In the beginning God created the heaven and the earth. " * 40


def run(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit("$ " + " ".join(map(str, command)) + "\n" + done.stdout)


def vocabulary(case):
    return json.loads((GOLDEN / case / "config.json").read_text())["vocab_size"]


def write_ids(case, path):
    (np.frombuffer(TEXT, np.uint8) % vocabulary(case)).astype("<u2").tofile(path)


def settings(work, text):
    pairs = {"training.local_batch_size": BATCH // RANKS, "training.seq_len": SEQ,
             "training.steps": STEPS, "training.dataset": "ids", "training.dataset_path": text,
             "training.mixed_precision_param": "float32", "optimizer.lr": 1e-2,
             "lr_scheduler.warmup_steps": 2, "validation.enable": "false", "sample.length": 0,
             "metrics.peak_tflops": 1, "job.dump_folder": work / "run"}
    return [word for key, value in pairs.items() for word in (f"--{key}", value)]


def train(case, layout, work):
    """Trains, saves and exports; returns the artifact."""
    folder = GOLDEN / case
    options = settings(work, work / "ids")
    write_ids(case, work / "ids")
    layouts = [] if layout == "learned" else ["--set", f"rope_halves={str(layout == 'halves').lower()}"]
    run("fsdp-trace", folder, *layouts, "--batch", BATCH, "--seq", SEQ, "-o", work / "model.mlir")
    run("fsdp-compile", work / "model.mlir", "--mesh", f"dp_shard={RANKS}",
        "--training.mixed_precision_param", "float32", "-o", work / "artifact")
    run("fsdp-run", work / "artifact", *options, "-n", RANKS, "--checkpoint.enable", "true",
        "--checkpoint.interval", STEPS, "--checkpoint.initial_load_path", folder,
        "--dump", work / "trained.safetensors")
    run("fsdp-checkpoint", "export", work / "run" / "checkpoint", work / "exported")


def our_logits(work, rows):
    """Those of @evaluate, with the parameters that the run has left."""
    for rank in range(RANKS):
        trained = load_file(work / f"trained.rank{rank}.safetensors")
        trained["tokens"] = rows[rank:rank + 1].astype(np.int32)
        trained["targets"] = np.zeros_like(trained["tokens"])
        save_file(trained, work / f"inputs.rank{rank}.safetensors")
    run("fsdp-run", work / "artifact", "-n", RANKS, "--program", "evaluate",
        "--load", work / "inputs.safetensors", "--dump", work / "evaluated.safetensors",
        "--job.dump_folder", work / "run")
    return np.concatenate([load_file(work / f"evaluated.rank{rank}.safetensors")["logits"]
                           for rank in range(RANKS)])


def their_logits(folder, rows):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager")
    with torch.no_grad():
        return model(input_ids=torch.from_numpy(rows)).logits.numpy()


def main():
    for case in sorted(os.listdir(GOLDEN)):
        rows = np.random.default_rng(1).integers(0, vocabulary(case), (BATCH, SEQ))
        for layout in ("learned",) if case.startswith("gpt2") else ("halves", "neighbours"):
            work = WORK / f"{case}.{layout}"
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            train(case, layout, work)
            ours = our_logits(work, rows)
            theirs = their_logits(work / "exported", rows)
            before = their_logits(GOLDEN / case, rows)
            scale = np.abs(theirs).max()
            print(f"{case}, {layout}: logits differ by {np.abs(ours - theirs).max() / scale:.1e} "
                  f"of the largest; training moved them by "
                  f"{np.abs(before - theirs).max() / scale:.1e}")


if __name__ == "__main__":
    main()
