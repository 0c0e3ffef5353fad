"""A Llama against PyTorch's golden values: losses of some steps and the first
step's gradients, through fsdp-compile and fsdp-run. A golden file with the
config.json of a model goes through fsdp-trace.

usage: golden_parity.py GOLDEN.json WORKDIR RANKS MODE LOSS_CHUNKS"""
import json
import math
import os
import sys

from support import cache, commands, runs
from support.commands import words
from support.tensors import full_tensor, read_safetensors, write_rows_of_ranks

LOSS_FIRST, LOSS_LATER, GRADIENT = 1e-6, 1e-5, 1e-5


def settings(golden, ranks, mode, chunks):
    optimizer = golden["optimizer"]
    return words({
        "training.local_batch_size": golden["batch"] // ranks,
        "training.seq_len": golden["seq"],
        "training.steps": len(golden["loss"]),
        # Never sampled: --load fixes the batch.
        "training.dataset_path": sys.argv[1],
        "training.seed": golden["seed"],
        "training.max_norm": optimizer["max_norm"],
        "training.mixed_precision_param": "float32",
        "optimizer.lr": max(golden["lr"]),
        "lr_scheduler.warmup_steps": 2,
        "lr_scheduler.decay_ratio": 0,
        "compile.mode": mode,
        "compile.loss_chunks": chunks,
        "validation.enable": "false",
        "sample.length": 0,
        "metrics.peak_tflops": 1,
    })


def model_arguments(golden, work, ranks):
    """What tells fsdp-compile the model and the mesh."""
    if "config" not in golden:
        return ["--ranks", str(ranks), "--model.flavor", "debugmodel",
                "--model.vocab_size", str(golden["model"]["vocab_size"])]
    with open(f"{work}/config.json", "w") as file:
        json.dump(golden["config"], file)
    said = commands.run("fsdp-trace", f"{work}/config.json", "--batch",
                        str(golden["batch"]), "--seq",
                        str(golden["seq"]), "-o", f"{work}/model.mlir")
    if said:
        sys.exit(f"a config.json that transformers wrote: {said}")
    return [f"{work}/model.mlir", "--mesh", f"dp_shard={ranks}"]


def entries(golden, tensor, key):
    """(position, value) of the stored entries of a tensor."""
    count = math.prod(tensor["shape"])
    values = tensor[key]
    if "indices" in tensor and key == "gradient":
        return list(zip(tensor["indices"], values))
    if count <= len(values):
        return list(enumerate(values))
    stride = golden["index_stride"]
    return [(k * stride % count, value) for k, value in enumerate(values)]


def check_gradients(golden, shards):
    worst = 0.0
    for tensor in golden["tensors"]:
        name = tensor["name"] + ".grad"
        values = full_tensor(shards, name, tensor["shape"])
        norm = math.sqrt(sum(float(v) ** 2 for v in values))
        stored = entries(golden, tensor, "gradient")
        square = sum((values[i] - v) ** 2 for i, v in stored)
        reference = sum(v ** 2 for _, v in stored)
        error = max(math.sqrt(square / reference) if reference else square,
                    abs(norm / tensor["gradient_norm"] - 1))
        worst = max(worst, error)
        if error > GRADIENT:
            sys.exit(f"gradient of {tensor['name']}: relative error {error:.2e}")
    print(f"gradients of {len(golden['tensors'])} tensors: worst relative error {worst:.2e}")


def check_losses(golden, lines):
    if len(lines) != len(golden["loss"]):
        sys.exit(f"{len(lines)} steps instead of {len(golden['loss'])}")
    worst = 0.0
    for line, loss, norm in zip(lines, golden["loss"], golden["grad_norm"]):
        step = line["step"]
        error = abs(line["loss"] / loss - 1)
        worst = max(worst, error)
        if error > (LOSS_FIRST if step == 1 else LOSS_LATER):
            sys.exit(f"step {step}: loss {line['loss']:.9g}, PyTorch {loss:.9g}: "
                     f"relative error {error:.2e}")
        # The norm of a noisy gradient: as sensitive as the gradient itself.
        if step == 1 and abs(line["grad_norm"] / norm - 1) > GRADIENT:
            sys.exit(f"gradient norm {line['grad_norm']:.9g}, PyTorch {norm:.9g}")
    print(f"losses of {len(lines)} steps: worst relative error {worst:.2e}")


def main():
    golden_path, work, ranks, mode, chunks = sys.argv[1:]
    ranks = int(ranks)
    os.makedirs(work, exist_ok=True)
    with open(golden_path) as file:
        golden = json.load(file)
    write_rows_of_ranks(f"{work}/text", golden["rows"], ranks)
    common = settings(golden, ranks, mode, chunks)
    model = model_arguments(golden, work, ranks)

    def train(name, *extra):
        out = f"{work}/{name}"
        options = common + list(extra)
        cache.compile(["fsdp-compile", *model, *options], out)
        commands.run("fsdp-run", out, *options, "-n", str(ranks),
                     "--job.dump_folder", f"{out}.run", "--load",
                     f"{work}/text.safetensors", "--dump", f"{out}.safetensors")
        return out

    out = train("gradients", "--optimizer.name", "none", "--training.steps", "1",
                "--lr_scheduler.warmup_steps", "0")
    shards = [read_safetensors(f"{out}.rank{rank}.safetensors")
              for rank in range(ranks)]
    check_gradients(golden, shards if mode == "fully_shard" else shards[:1])
    out = train("train")
    check_losses(golden, runs.metrics(f"{out}.run"))


main()
