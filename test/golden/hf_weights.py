"""Small directories of transformers with random weights, and what it computes
with them: hf_weights/CASE/ as save_pretrained writes it, and beside the weights
golden.json (rows, loss, norms) and gradients.safetensors, f32, under
transformers' names.

Weights are kept in the type of the case and computed with in f32.
"""

import json
import pathlib
import shutil

import numpy as np
import torch
import transformers
from safetensors.torch import save_file

from initialiser import draw

SEED, BATCH, SEQ = 7, 2, 16
FOLDER = pathlib.Path(__file__).with_suffix("")

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 24, "vocab_size": 256, "max_position_embeddings": 64}
SCALING = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
           "high_freq_factor": 4.0, "original_max_position_embeddings": 16}

# What each case adds to SIZES, the type it is stored in, the size of a shard.
CASES = {
    # Llama 2: as many key as query heads, no scaling.
    "llama2": ({"rms_norm_eps": 1e-5,
                "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
               torch.float32, "1GB"),
    # Llama 3.1: grouped queries, scaling, heads wider than hidden_size / heads.
    "llama3_shards": ({"num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": 1e-5,
                       "rope_parameters": SCALING}, torch.float32, "8KB"),
    # Llama 3.2: tied.
    "llama3_tied": ({"num_key_value_heads": 1, "head_dim": 8, "rms_norm_eps": 1e-5,
                     "tie_word_embeddings": True, "rope_parameters": SCALING},
                    torch.bfloat16, "1GB"),
    # Tied, in shards, of which the embedding is larger than a shard may be.
    "tied_shards": ({"num_key_value_heads": 2, "rms_norm_eps": 1e-6,
                     "tie_word_embeddings": True,
                     "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}},
                    torch.float32, "10KB"),
    # CodeLlama: another base, stored in f16.
    "code_llama": ({"rms_norm_eps": 1e-5,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0}},
                   torch.float16, "1GB"),
}


def fill(model):
    """Weights of a trained model's size: norms near 1, the others so that no
    gradient vanishes."""
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1 + 0.1 * noise if parameter.dim() == 1 else 0.2 * noise)


def batch():
    uniform, _ = draw(np.arange(BATCH * (SEQ + 1), dtype=np.uint64), 0, SEED, "rows")
    return (uniform * SIZES["vocab_size"]).astype(np.int64).reshape(BATCH, -1)


def make(name, changes, dtype, shard):
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    config = transformers.LlamaConfig(**{**SIZES, **changes}, attn_implementation="eager")
    model = transformers.LlamaForCausalLM(config)
    fill(model)
    model.to(dtype).save_pretrained(folder, max_shard_size=shard)
    (folder / "generation_config.json").unlink()

    loaded = transformers.LlamaForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager")
    rows = batch()
    logits = loaded(input_ids=torch.from_numpy(rows[:, :-1])).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1),
                                             torch.from_numpy(rows[:, 1:]).flatten())
    loss.backward()
    gradients = {key: p.grad.contiguous() for key, p in loaded.named_parameters()}
    save_file(gradients, folder / "gradients.safetensors")
    header = {"about": "Made by hf_weights.py", "torch": torch.__version__,
              "transformers": transformers.__version__, "rows": rows.tolist(),
              "loss": loss.item()}
    (folder / "golden.json").write_text(json.dumps(header) + "\n")
    print(f"{name:14} loss {loss:.7f}")


def main():
    torch.use_deterministic_algorithms(True)
    for name, (changes, dtype, shard) in CASES.items():
        make(name, changes, dtype, shard)


if __name__ == "__main__":
    main()
