"""Directories of Hugging Face with something wrong: each is refused with one
clear error that names the place, and nothing crashes.

usage: hf_malformed.py GOLDEN WORKDIR"""
import os
import re
import shutil
import subprocess
import sys

from support import files
from support.folders import Folder
from support.tensors import read_header

GOLDEN, WORK = sys.argv[1:]
Q = "model.layers.0.self_attn.q_proj.weight"
EMBEDDING = "model.embed_tokens.weight"
INDEX = "model.safetensors.index.json"


def truncate(folder, name):
    files.shorten(folder.at(name), 4)


def duplicate(folder):
    """The third shard has a tensor of the second, too."""
    header, data = read_header(folder.at("model-00002-of-00005.safetensors"))
    begin, end = header[Q]["data_offsets"]
    entry = dict(header[Q])
    def edit(there, bytes_there):
        entry["data_offsets"] = [len(bytes_there), len(bytes_there) + end - begin]
        there[Q] = entry
        return bytes_there + data[begin:end]
    folder.tensors(edit, "model-00003-of-00005.safetensors")


def rename(header, old, new):
    header[new] = header.pop(old)


def retype(header, dtype):
    header[Q]["dtype"] = dtype


def reshape(header):
    header[Q]["shape"] = header[Q]["shape"][::-1] + [1]


# name, the golden directory, the damage, what is said.
CASES = [
    ("no config", "llama2", lambda f: os.remove(f.at("config.json")),
     r"has weights, but no config\.json"),
    ("config is no JSON", "llama2", lambda f: f.text("config.json", "{"),
     r"config\.json: line 1, column 1: this is not JSON"),
    ("config is a list", "llama2", lambda f: f.text("config.json", "[]"),
     r"config\.json: expected object at config"),
    ("config has a key twice", "llama2",
     lambda f: f.text("config.json", '{"model_type": "llama", "model_type": "llama"}'),
     r"config\.json: line 1, column 36: 'model_type' appears twice"),
    ("no hidden_size", "llama2", lambda f: f.without("hidden_size"),
     r"config\.json: missing value at config\.hidden_size"),
    ("hidden_size is text", "llama2", lambda f: f.config(hidden_size="16"),
     r"expected integer at config\.hidden_size"),
    ("hidden_size is 0", "llama2", lambda f: f.config(hidden_size=0),
     r"expected 1 to \d+ at config\.hidden_size, got 0"),
    ("hidden_size is huge", "llama2", lambda f: f.config(hidden_size=1e30),
     r"expected 1 to \d+ at config\.hidden_size, got 1e\+30"),
    ("layers without end", "llama2", lambda f: f.config(num_hidden_layers=2**40),
     r"expected 1 to 10000 at config\.num_hidden_layers"),
    ("heads do not divide", "llama2",
     lambda f: (f.config(num_attention_heads=3, num_key_value_heads=3), f.without("head_dim")),
     r"dim = 16 is not divisible by n_heads = 3"),
    ("another model", "llama2", lambda f: f.config(model_type="mistral"),
     r'expected \["MistralForCausalLM"\] .* at config\.architectures, got \["LlamaForCausalLM"\]'),
    ("no known model", "llama2", lambda f: f.config(model_type="bert"),
     r'at config\.model_type, got "bert"'),
    ("biases", "llama2", lambda f: f.config(attention_bias=True),
     r"expected false \(biases are not supported\) at config\.attention_bias, got true"),
    ("linear scaling", "llama2",
     lambda f: f.config(rope_scaling={"type": "dynamic", "factor": 2.0}),
     r'expected one of "default", "llama3", .* at config\.rope_scaling\.rope_type'),
    ("no weights", "llama2", lambda f: os.remove(f.at("model.safetensors")),
     r"has a config\.json, but neither model\.safetensors nor model\.safetensors\.index\.json"),
    ("a layer too few in the file", "llama2", lambda f: f.config(num_hidden_layers=3),
     r"'model\.layers\.2\.self_attn\.q_proj\.weight' is missing\n(.*\n)*.*"
     r"'model\.layers\.2\.post_attention_layernorm\.weight' is missing"),
    ("a layer too many in the file", "llama2", lambda f: f.config(num_hidden_layers=1),
     r"'model\.layers\.1\.input_layernorm\.weight' is no tensor of the model"),
    ("a tensor of no model", "llama2",
     lambda f: f.tensors(lambda h, d: rename(h, Q, "q.weight")),
     rf"'{Q}' is missing\n +'q\.weight' is no tensor of the model"),
    ("another shape", "llama2", lambda f: f.tensors(lambda h, d: reshape(h)),
     rf"'{Q}' is 16 x 16 x 1 instead of 16 x 16, which config\.json says"),
    ("integers", "llama2", lambda f: f.tensors(lambda h, d: retype(h, "I32")),
     rf"'{Q}' is I32; weights are read from F32, BF16 and F16"),
    ("float8", "llama2", lambda f: f.tensors(lambda h, d: retype(h, "F8_E4M3")),
     rf"model\.safetensors': '{Q}' has the unsupported type F8_E4M3"),
    ("truncated", "llama2", lambda f: truncate(f, "model.safetensors"),
     r"damaged safetensors file '.*model\.safetensors'"),
    ("a truncated shard", "llama3_shards",
     lambda f: truncate(f, "model-00003-of-00005.safetensors"),
     r"damaged safetensors file '.*model-00003-of-00005\.safetensors'"),
    ("the index is no JSON", "llama3_shards", lambda f: f.text(INDEX, "weight_map"),
     r"damaged index '.*index\.json': line 1, column 1: this is not JSON"),
    ("no weight_map", "llama3_shards", lambda f: f.text(INDEX, '{"metadata": {}}'),
     r"damaged index '.*': it has no weight_map"),
    ("weight_map is a list", "llama3_shards", lambda f: f.text(INDEX, '{"weight_map": []}'),
     r"damaged index '.*': it has no weight_map"),
    ("an empty weight_map", "llama3_shards", lambda f: f.text(INDEX, '{"weight_map": {}}'),
     r"damaged index '.*': its weight_map is empty"),
    ("a file that is no string", "llama3_shards", lambda f: f.map(**{Q: 1}),
     rf"damaged index '.*': the file of '{Q}' is no string"),
    ("a file elsewhere", "llama3_shards",
     lambda f: f.map(**{Q: "../llama2/model.safetensors"}),
     rf"the file of '{Q}' is '\.\./llama2/model\.safetensors', not the name of a \.safetensors file"),
    ("an absolute file", "llama3_shards", lambda f: f.map(**{Q: "/etc/passwd"}),
     r"is '/etc/passwd', not the name of a \.safetensors file"),
    ("a missing shard", "llama3_shards",
     lambda f: os.remove(f.at("model-00002-of-00005.safetensors")),
     r"the file 'model-00002-of-00005\.safetensors' of the index is missing"),
    ("a tensor in another shard", "llama3_shards",
     lambda f: f.map(**{Q: "model-00004-of-00005.safetensors"}),
     rf"'{Q}' is in 'model-00002-of-00005\.safetensors', but the index says "
     r"'model-00004-of-00005\.safetensors'"),
    ("a tensor in no shard", "llama3_shards",
     lambda f: f.map(**{"x": "model-00004-of-00005.safetensors"}),
     r"'x' is not in 'model-00004-of-00005\.safetensors', where the index places it"),
    ("a tensor in no index", "llama3_shards",
     lambda f: f.change(INDEX, lambda index: index["weight_map"].pop(Q)),
     rf"'{Q}' is in 'model-00002-of-00005\.safetensors', but not in the index"),
    ("a tensor twice", "llama3_shards", duplicate,
     rf"'{Q}' is in two files, 'model-00003-of-00005\.safetensors' and "
     r"'model-00002-of-00005\.safetensors'"),
    ("not tied, without lm_head", "llama3_tied", lambda f: f.config(tie_word_embeddings=False),
     r"'lm_head\.weight' is missing, and tie_word_embeddings is false"),
    ("tied, with another lm_head", "llama3_tied",
     lambda f: f.add("lm_head.weight", "BF16", [256, 16], bytes(256 * 16 * 2)),
     rf"'lm_head\.weight' is not equal to '{EMBEDDING}', but tie_word_embeddings is true"),
]

# What looks wrong and is none of it.
GOOD = [
    ("tied, with the same lm_head", "llama3_tied",
     lambda f: f.add("lm_head.weight", *f.copy_of(EMBEDDING))),
    ("frequencies", "llama2",
     lambda f: f.add("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", [2], bytes(8))),
    ("a file of somebody else", "llama3_shards",
     lambda f: f.text("consolidated.safetensors", "not ours")),
    ("an unknown key", "llama2", lambda f: f.config(made_by="hand")),
]


def inspect(name, golden, damage):
    path = os.path.join(WORK, re.sub(r"\W+", "-", name))
    shutil.copytree(os.path.join(GOLDEN, golden), path)
    os.remove(os.path.join(path, "gradients.safetensors"))
    damage(Folder(path))
    return subprocess.run(["fsdp-checkpoint", "inspect", path], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    for name, golden, damage, expected in CASES:
        done = inspect(name, golden, damage)
        if done.returncode != 1 or done.stdout or not re.search(expected, done.stderr):
            sys.exit(f"{name}: ended with {done.returncode} and said\n{done.stdout}{done.stderr}")
        if not done.stderr.startswith("fsdp-checkpoint: "):
            sys.exit(f"{name}: not one message:\n{done.stderr}")
    for name, golden, damage in GOOD:
        done = inspect(name, golden, damage)
        if done.returncode or done.stderr:
            sys.exit(f"{name}: ended with {done.returncode} and said\n{done.stderr}")
    print(f"{len(CASES)} directories are refused, {len(GOOD)} are read")


main()
