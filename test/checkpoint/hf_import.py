"""Weights of transformers' directories, loaded by a run: its loss and every
gradient are transformers'. Once by a program that keeps the rotary layout of
the files, on one rank, and once by one that rotates neighbours, on two.

Then a step of rate 0 is saved and exported: the files of the directory again,
to the byte. Weights of another model are refused.

usage: hf_import.py GOLDEN WORKDIR CASE..."""
import filecmp
import json
import os
import shutil
import sys

from support import cache, commands, runs
from support.commands import words
from support.tensors import distance, floats, full_tensor, read_safetensors, write_rows_of_ranks

LOSS, GRADIENT = 1e-5, 1e-4
GOLDEN, WORK, CASES = sys.argv[1], sys.argv[2], sys.argv[3:]
# Our name of a module in a layer and transformers'.
BLOCK = {"attention.wq": "self_attn.q_proj", "attention.wk": "self_attn.k_proj",
         "attention.wv": "self_attn.v_proj", "attention.wo": "self_attn.o_proj",
         "feed_forward.w1": "mlp.gate_proj", "feed_forward.w2": "mlp.down_proj",
         "feed_forward.w3": "mlp.up_proj", "attention_norm": "input_layernorm",
         "ffn_norm": "post_attention_layernorm"}


def names(config):
    """Our name of every parameter and transformers'."""
    pairs = {"tok_embeddings": "model.embed_tokens", "norm": "model.norm"}
    if not config["tie_word_embeddings"]:
        pairs["output"] = "lm_head"
    for layer in range(config["num_hidden_layers"]):
        for ours, theirs in BLOCK.items():
            pairs[f"layers.{layer}.{ours}"] = f"model.layers.{layer}.{theirs}"
    return {f"{ours}.weight": f"{theirs}.weight" for ours, theirs in pairs.items()}


def neighbours(values, head, columns):
    """Rows whose rotary pairs are the halves of heads, with pairs of
    neighbours."""
    rows = [values[i:i + columns] for i in range(0, len(values), columns)]
    result = []
    for first in range(0, len(rows), head):
        for pair in range(head // 2):
            result.extend(rows[first + pair])
            result.extend(rows[first + head // 2 + pair])
    return result


def settings(folder, rows, ranks, optimizer):
    return words({
        "training.local_batch_size": len(rows) // ranks,
        "training.seq_len": len(rows[0]) - 1, "training.steps": 1,
        # Never sampled: --load fixes the batch.
        "training.dataset_path": os.path.join(folder, "golden.json"),
        "training.mixed_precision_param": "float32", "training.max_norm": 0,
        "optimizer.name": optimizer, "optimizer.lr": 0, "lr_scheduler.warmup_steps": 0,
        "validation.enable": "false", "sample.length": 0, "metrics.peak_tflops": 1})


def step(folder, work, rows, ranks, optimizer, *extra):
    """The command of one step from the weights of `folder`."""
    return ["fsdp-run", f"{work}/{optimizer}", *settings(folder, rows, ranks, optimizer), "-n",
            str(ranks), "--job.dump_folder", f"{work}/run.{optimizer}", "--load", f"{work}/rows.safetensors",
            "--checkpoint.enable", "true", "--checkpoint.initial_load_path", folder, *extra]


def run(folder, work, rows, model, ranks):
    """The loss of a step, and what each rank has after it."""
    write_rows_of_ranks(f"{work}/rows", rows, ranks)
    cache.compile(["fsdp-compile", *model, *settings(folder, rows, ranks, "none")],
                  f"{work}/none")
    commands.run(*step(folder, work, rows, ranks, "none", "--dump", f"{work}/dump.safetensors",
                       "--checkpoint.load_only", "true"))
    dumps = [read_safetensors(f"{work}/dump.rank{rank}.safetensors")
             for rank in range(ranks)]
    return runs.metrics(f"{work}/run.none")[0]["loss"], dumps


def compare(case, layout, golden, loss, dumps, expected, config):
    error = abs(loss / golden["loss"] - 1)
    if error > LOSS:
        sys.exit(f"{case}, {layout}: loss {loss:.9g}, transformers {golden['loss']:.9g}: "
                 f"relative error {error:.2e}")
    worst = 0.0
    for ours, theirs in names(config).items():
        shape, raw = expected[theirs]
        values = list(floats(raw))
        is_rotary = layout == "neighbours" and (".wq." in ours or ".wk." in ours)
        if is_rotary:
            values = neighbours(values, config["head_dim"], shape[1])
        actual = full_tensor(dumps, f"{ours}.grad", shape)
        worst = max(worst, distance(actual, values))
        if worst > GRADIENT:
            sys.exit(f"{case}, {layout}: gradient of {ours}: relative error {worst:.2e}")
    print(f"{case}, {layout}: loss {error:.1e}, gradients of {len(names(config))} tensors "
          f"{worst:.1e}")


def export_again(folder, work, rows, model, ranks, config):
    """Saves after a step that changes nothing, and exports."""
    cache.compile(["fsdp-compile", *model, *settings(folder, rows, ranks, "AdamW")],
                  f"{work}/AdamW")
    commands.run(*step(folder, work, rows, ranks, "AdamW"))
    commands.run("fsdp-checkpoint", "export", f"{work}/run.AdamW/checkpoint", f"{work}/exported",
                 "--dtype", config["dtype"])
    if not filecmp.cmp(f"{folder}/model.safetensors", f"{work}/exported/model.safetensors",
                       shallow=False):
        sys.exit(f"{work}: the exported weights are not those that were loaded")
    print("exported again: the same bytes")


def refuse(folder, work, rows):
    """Says why the weights of `folder` are not taken."""
    print(commands.fail(step(folder, work, rows, 1, "none", "--checkpoint.load_only", "true")))


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    for case in CASES:
        folder = os.path.join(GOLDEN, case)
        with open(f"{folder}/golden.json") as a, open(f"{folder}/config.json") as b:
            golden, config = json.load(a), json.load(b)
        expected = read_safetensors(f"{folder}/gradients.safetensors")
        rows = golden["rows"]
        for layout, ranks in (("halves", 1), ("neighbours", 2)):
            work = f"{WORK}/{case}.{layout}"
            os.makedirs(work)
            model = ["--model.hf_assets_path", folder, "--ranks", "1"]
            if layout == "neighbours":
                commands.run("fsdp-trace", folder, "--set", "rope_halves=false", "--batch",
                             str(len(rows)), "--seq", str(len(rows[0]) - 1), "-o",
                             f"{work}/model.mlir")
                model = [f"{work}/model.mlir", "--mesh", f"dp_shard={ranks}"]
            loss, dumps = run(folder, work, rows, model, ranks)
            compare(case, layout, golden, loss, dumps, expected, config)
            if os.path.exists(f"{folder}/model.safetensors"):
                export_again(folder, work, rows, model, ranks, config)
    refuse(os.path.join(GOLDEN, "llama3_shards"), f"{WORK}/llama2.halves", rows)


main()
