"""A directory of transformers, read by four ranks with tensor-parallel layers and
saved, read from there by two and saved again, then exported: the bytes of an
export by one process.

usage: hf_ranks.py GOLDEN WORKDIR CASE...

With FSDP_ALL_FAMILIES in the environment it tries all cases."""
import filecmp
import json
import os
import shutil
import sys

from support import cache, commands
from support.commands import words
from support.tensors import write_rows_of_ranks

GOLDEN, WORK, CASES = sys.argv[1], sys.argv[2], sys.argv[3:]
if os.environ.get("FSDP_ALL_FAMILIES"):
    CASES = sorted(os.listdir(GOLDEN))


def read_and_save(source, folder, ranks, tensor, assets):
    """What a job of so many ranks reads of `source`, saved after a step without an
    optimizer."""
    with open(f"{assets}/golden.json") as file:
        row = json.load(file)["rows"][0]
    write_rows_of_ranks(f"{folder}.rows", [row] * ranks, ranks)
    settings = words({
        "model.hf_assets_path": assets, "parallelism.tensor_parallel_degree": tensor,
        "training.local_batch_size": 1, "training.seq_len": len(row) - 1,
        "training.steps": 1, "optimizer.name": "none",
        # Never sampled: --load fixes the batch.
        "training.dataset_path": f"{assets}/golden.json",
        "training.mixed_precision_param": "float32", "validation.enable": "false",
        "sample.length": 0, "metrics.peak_tflops": 1})
    cache.compile(["fsdp-compile", "--ranks", str(ranks), *settings], f"{folder}.artifact")
    commands.run("fsdp-run", f"{folder}.artifact", *settings, "-n", str(ranks),
                 "--job.dump_folder", folder, "--checkpoint.enable", "true",
                 "--checkpoint.initial_load_path", source, "--load", f"{folder}.rows.safetensors")
    return f"{folder}/checkpoint/step-1"


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    for case in CASES:
        folder, work = os.path.join(GOLDEN, case), f"{WORK}/{case}"
        os.makedirs(work)
        four = read_and_save(folder, f"{work}/four", 4, 2, folder)
        two = read_and_save(four, f"{work}/two", 2, 1, folder)
        for source, target in ((folder, "one"), (two, "ranks")):
            commands.run("fsdp-checkpoint", "export", source, f"{work}/{target}", "--dtype", "float32")
        for name in ("model.safetensors", "config.json"):
            if not filecmp.cmp(f"{work}/one/{name}", f"{work}/ranks/{name}", shallow=False):
                sys.exit(f"{case}: {name} has other bytes")
        print(f"{case}: 4 ranks, 2 ranks, exported: the bytes of one process")


main()
