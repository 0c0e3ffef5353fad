"""Models of every family as transformers computes them: the loss, every gradient
and the losses of five steps of AdamW, from the directories of
test/golden/hf_families.

Names, splits and transposes are stated here once more, so that a table that is
wrong in the compiler and in the reader alike is found. On one rank a program that
rotates neighbours, so with other rows than those of files, has the same loss.

usage: hf_families.py GOLDEN WORKDIR RANKS CASE...

With FSDP_ALL_FAMILIES in the environment it tries all cases."""
import json
import math
import os
import shutil
import sys

from support import cache, commands, runs
from support.commands import words
from support.tensors import floats, full_tensor, read_safetensors, write_rows_of_ranks

LOSS, GRADIENT, FLOOR, STEPS = 1e-6, 2e-5, 1e-6, 1e-5
GOLDEN, WORK, RANKS, CASES = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
if os.environ.get("FSDP_ALL_FAMILIES"):
    CASES = sorted(os.listdir(GOLDEN))

ATTENTION = {"self_attn.q_proj": "attention.wq", "self_attn.k_proj": "attention.wk",
             "self_attn.v_proj": "attention.wv", "self_attn.o_proj": "attention.wo"}
MLP = {"mlp.gate_proj": "feed_forward.w1", "mlp.up_proj": "feed_forward.w3",
       "mlp.down_proj": "feed_forward.w2"}
BEFORE = {"input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm"}
HEADS = {"self_attn.q_norm": "attention.q_norm", "self_attn.k_norm": "attention.k_norm"}
# transformers' name of a module in a layer and ours, or ours of which it has the
# rows one after another.
BLOCKS = {
    "llama": {**ATTENTION, **MLP, **BEFORE},
    "qwen2": {**ATTENTION, **MLP, **BEFORE},
    "qwen3": {**ATTENTION, **HEADS, **MLP, **BEFORE},
    "mistral": {**ATTENTION, **MLP, **BEFORE},
    "gemma2": {**ATTENTION, **MLP, "input_layernorm": "attention_norm",
               "post_attention_layernorm": "post_attention_norm",
               "pre_feedforward_layernorm": "ffn_norm",
               "post_feedforward_layernorm": "post_ffn_norm"},
    "olmo2": {**ATTENTION, **HEADS, **MLP, "post_attention_layernorm": "post_attention_norm",
              "post_feedforward_layernorm": "post_ffn_norm"},
    "phi3": {"self_attn.qkv_proj": ("attention.wq", "attention.wk", "attention.wv"),
             "self_attn.o_proj": "attention.wo", "mlp.down_proj": "feed_forward.w2",
             "mlp.gate_up_proj": ("feed_forward.w1", "feed_forward.w3"), **BEFORE},
    "gpt2": {"ln_1": "attention_norm", "ln_2": "ffn_norm", "attn.c_proj": "attention.wo",
             "attn.c_attn": ("attention.wq", "attention.wk", "attention.wv"),
             "mlp.c_fc": "feed_forward.w1", "mlp.c_proj": "feed_forward.w2"},
}
AROUND = {"model.embed_tokens": "tok_embeddings", "model.norm": "norm", "lm_head": "output",
          "transformer.wte": "tok_embeddings", "transformer.wpe": "pos_embeddings",
          "transformer.ln_f": "norm"}
TRANSPOSED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")


def ours(name, family):
    """Our names of the parts of a tensor of files."""
    module, _, kind = name.rpartition(".")
    if module in AROUND:
        return [f"{AROUND[module]}.{kind}"]
    _, _, layer, inner = module.split(".", 3)
    parts = BLOCKS[family][inner]
    return [f"layers.{layer}.{part}.{kind}" for part in ([parts] if isinstance(parts, str) else parts)]


def expected(name, shape, values):
    """The values as ours, [out, in]."""
    if not name.endswith(TRANSPOSED):
        return values
    rows, columns = shape
    return [values[row * columns + column] for column in range(columns) for row in range(rows)]


def part(dumps, name):
    """A whole tensor of all ranks."""
    shape = next(dump[name][0] for dump in dumps)
    return full_tensor(dumps, name, [len(dumps) * shape[0], *shape[1:]])


def settings(folder, golden, ranks, steps):
    rows = golden["rows"]
    return words({
        "training.local_batch_size": len(rows) // ranks, "training.seq_len": len(rows[0]) - 1,
        "training.steps": steps,
        # Never sampled: --load fixes the batch.
        "training.dataset_path": os.path.join(folder, "golden.json"),
        "training.mixed_precision_param": "float32", "training.max_norm": 0,
        "optimizer.name": "none" if steps == 1 else "AdamW", "optimizer.lr": golden["lr"],
        "optimizer.beta1": golden["betas"][0], "optimizer.beta2": golden["betas"][1],
        "optimizer.eps": golden["eps"], "optimizer.weight_decay": golden["decay"],
        "lr_scheduler.warmup_steps": 0, "lr_scheduler.min_lr_factor": 1,
        "validation.enable": "false", "sample.length": 0, "metrics.peak_tflops": 1,
        "metrics.log_freq": 1})


def compiled(folder, work, golden, ranks, steps):
    artifact = f"{work}/{steps}"
    cache.compile(["fsdp-compile", "--model.hf_assets_path", folder, "--ranks", str(ranks),
                   *settings(folder, golden, ranks, steps)], artifact)
    return artifact


def compiled_of_neighbours(folder, work, golden):
    """A program whose rotary pairs are neighbours."""
    rows, artifact = golden["rows"], f"{work}/neighbours"
    commands.run("fsdp-trace", folder, "--set", "rope_halves=false", "--batch", str(len(rows)),
                 "--seq", str(len(rows[0]) - 1), "-o", f"{work}/neighbours.mlir")
    commands.run("fsdp-compile", f"{work}/neighbours.mlir", "--optimizer.name", "none",
                 "--training.mixed_precision_param", "float32", "-o", artifact)
    return artifact


def run(artifact, folder, work, golden, ranks, steps):
    """The losses of `steps` steps."""
    chosen = settings(folder, golden, ranks, steps)
    write_rows_of_ranks(f"{work}/rows", golden["rows"], ranks)
    commands.run("fsdp-run", artifact, *chosen, "-n", str(ranks), "--job.dump_folder",
                 f"{work}/run.{steps}", "--load", f"{work}/rows.safetensors", "--dump",
                 f"{work}/dump.{steps}.safetensors", "--checkpoint.enable", "true",
                 "--checkpoint.initial_load_path", folder, "--checkpoint.load_only", "true")
    return [step["loss"] for step in runs.metrics(f"{work}/run.{steps}")]


def check(case, what, error, bound):
    if not error <= bound:
        sys.exit(f"{case}: {what}: {error:.2e}, more than {bound:.0e}")
    return error


def check_gradients(case, folder, work, family, ranks):
    """The largest distance, as a share of what is allowed."""
    dumps = [read_safetensors(f"{work}/dump.1.rank{rank}.safetensors") for rank in range(ranks)]
    golden = {name: (shape, floats(raw)) for name, (shape, raw)
              in read_safetensors(f"{folder}/gradients.safetensors").items()}
    largest = max(abs(value) for _, values in golden.values() for value in values)
    worst = 0.0
    for name, (shape, values) in golden.items():
        want = expected(name, shape, values)
        have = []
        for piece in ours(name, family):
            have.extend(part(dumps, f"{piece}.grad"))
        have = have[:len(want)]
        allowed = max(GRADIENT * max(abs(value) for value in want), FLOOR * largest)
        error = max(abs(a - b) for a, b in zip(want, have, strict=True)) / allowed
        worst = max(worst, check(case, f"gradient of {name}, as a share of what is allowed", error, 1))
    return worst, len(golden)


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    for case in CASES:
        folder, work = os.path.join(GOLDEN, case), f"{WORK}/{case}"
        os.makedirs(work)
        with open(f"{folder}/golden.json") as a, open(f"{folder}/config.json") as b:
            golden, family = json.load(a), json.load(b)["model_type"]
        loss = run(compiled(folder, work, golden, RANKS, 1), folder, work, golden, RANKS, 1)[0]
        error = check(case, "loss", abs(loss / golden["losses"][0] - 1), LOSS)
        worst, tensors = check_gradients(case, folder, work, family, RANKS)
        if RANKS == 1 and family != "gpt2":
            (other,) = run(compiled_of_neighbours(folder, work, golden), folder, work, golden, 1, 1)
            check(case, "loss of rotated neighbours", abs(other / golden["losses"][0] - 1), LOSS)
        steps = len(golden["losses"])
        losses = run(compiled(folder, work, golden, RANKS, steps), folder, work, golden, RANKS, steps)
        later = max(abs(a / b - 1) for a, b in zip(losses, golden["losses"], strict=True))
        check(case, "losses of AdamW", later, STEPS)
        print(f"{case}: loss {error:.1e}, gradients of {tensors} tensors {GRADIENT * worst:.1e}, "
              f"{len(losses)} steps {later:.1e}")


main()
