"""Mixed precision of every family: 20 steps on text in bf16 stay near those in f32.

The configurations are those of test/golden/hf_families with sizes at which
rounding averages out: of the golden models, 16 wide on two rows, PyTorch's own
bf16 training is 2e-3 to 1e-2 away from its f32.

usage: families_bf16.py WORKDIR CASE...

With FSDP_ALL_FAMILIES in the environment it tries one case of each family."""
import json
import os
import shutil
import sys

from support import cache, commands, runs

WIDTH, HEADS, SEQUENCE, BATCH, STEPS = 64, 4, 64, 8, 20
FALL, DISTANCE = 0.3, 2e-3
FAMILIES = os.path.join(cache.SOURCE, "test", "golden", "hf_families")
ALL = ["llama_scaled", "gpt2_unscaled", "qwen2_plain", "qwen3_biases", "mistral_window", "gemma2_even",
       "phi3_partial", "olmo2_biases"]
SIZES = {"hidden_size": WIDTH, "n_embd": WIDTH, "num_attention_heads": HEADS, "n_head": HEADS,
         "num_key_value_heads": 2, "head_dim": WIDTH // HEADS, "query_pre_attn_scalar": WIDTH // HEADS,
         "intermediate_size": 2 * WIDTH, "n_inner": 2 * WIDTH, "vocab_size": 256, "sliding_window": 24,
         "max_position_embeddings": 2 * SEQUENCE, "n_positions": 2 * SEQUENCE}


def configured(case, folder):
    """A directory with the mechanisms of a golden one, and without weights."""
    with open(f"{FAMILIES}/{case}/config.json") as file:
        config = json.load(file)
    config.update({key: size for key, size in SIZES.items() if config.get(key) is not None})
    rope = config.get("rope_parameters", {})
    if rope:
        part = {key: rope[key] for key in rope if key == "partial_rotary_factor"}
        config["rope_parameters"] = {"rope_type": "default", "rope_theta": 10000.0, **part}
    os.makedirs(folder)
    with open(f"{folder}/config.json", "w") as file:
        json.dump(config, file)


def losses(folder, dtype):
    settings = {"model.hf_assets_path": folder, "training.local_batch_size": BATCH,
                "training.seq_len": SEQUENCE, "training.steps": STEPS,
                "training.dataset_path": f"{cache.SOURCE}/docs/architecture.md",
                "training.mixed_precision_param": dtype, "optimizer.lr": 1e-3,
                "lr_scheduler.warmup_steps": 0, "lr_scheduler.min_lr_factor": 1,
                "validation.enable": "false", "sample.length": 0, "metrics.peak_tflops": 1,
                "metrics.log_freq": 1}
    artifact = runs.Artifact.compiled(f"{folder}/{dtype}", 1, settings)
    commands.run(*artifact.command(job__dump_folder=f"{folder}/run.{dtype}"))
    return [step["loss"] for step in runs.metrics(f"{folder}/run.{dtype}")]


def main(work, *cases):
    shutil.rmtree(work, ignore_errors=True)
    for case in ALL if os.environ.get("FSDP_ALL_FAMILIES") else cases:
        configured(case, f"{work}/{case}")
        half, single = (losses(f"{work}/{case}", dtype) for dtype in ("bfloat16", "float32"))
        fall = half[0] - half[-1]
        away = max(abs(a / b - 1) for a, b in zip(half, single, strict=True))
        if len(half) != STEPS or fall < FALL or away > DISTANCE:
            sys.exit(f"{case}: {len(half)} steps, the loss falls by {fall:.2f}, {away:.1e} from f32")
        print(f"{case}: {STEPS} steps in bf16, the loss falls by {fall:.2f}, {away:.1e} from f32")


main(*sys.argv[1:])
