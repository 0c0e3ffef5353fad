"""Directories of every family with something wrong: each is refused with one
error that names the key or the tensor, and nothing crashes.

usage: hf_malformed_families.py GOLDEN WORKDIR CASE..."""
import collections
import json
import os
import re
import shutil
import subprocess
import sys

from support.folders import Folder
from support.tensors import read_header

GOLDEN, WORK, CASES = sys.argv[1], sys.argv[2], sys.argv[3:]
# Of keys that families call differently, those that there are.
WIDTH, LAYERS = ("hidden_size", "n_embd"), ("num_hidden_layers", "n_layer")
HEADS = ("num_attention_heads", "n_head")
ACTIVATION = ("hidden_activation", "hidden_act", "activation_function")
EPS = ("rms_norm_eps", "layer_norm_epsilon")


class Damaged(Folder):
    """A directory of a family, and what it has."""

    def __init__(self, path):
        super().__init__(path)
        with open(self.at("config.json")) as file:
            self.settings = json.load(file)
        header, _ = read_header(self.at("model.safetensors"))
        self.matrices = sorted(name for name, entry in header.items()
                               if len(entry.get("shape", [])) == 2 and ".0." in name)

    def key(self, names):
        return next(name for name in names if name in self.settings)

    def set(self, names, change):
        name = self.key(names)
        self.config(**{name: change(self.settings[name])})
        return rf"config\.{name}\b"

    def rename(self, old, new):
        self.tensors(lambda header, data: header.update({new: header.pop(old)}))

    def entry(self, tensor, **changes):
        self.tensors(lambda header, data: header[tensor].update(changes))

    def rope(self, **changes):
        self.config(rope_parameters={**self.settings["rope_parameters"], **changes}, rope_scaling=None)

    def joined(self):
        """A tensor that has the rows of several, and one of these."""
        return "model.layers.0.self_attn.qkv_proj.weight", "model.layers.0.self_attn.q_proj.weight"


def is_rotary(folder):
    return "rope_parameters" in folder.settings


def has_windows(folder):
    return folder.settings.get("sliding_window") and "layer_types" in folder.settings


def is_tied(folder):
    return folder.settings.get("tie_word_embeddings", folder.settings["model_type"] in ("gpt2", "gemma2"))


def differing_head(folder):
    header, _ = read_header(folder.at("model.safetensors"))
    entry = next(entry for name, entry in header.items() if "embed_tokens" in name or "wte" in name)
    begin, end = entry["data_offsets"]
    folder.add("lm_head.weight", entry["dtype"], entry["shape"], bytes(end - begin))
    return "'lm_head.weight' is not equal to"


def transposed_rows(folder):
    name = folder.matrices[-1]
    header, _ = read_header(folder.at("model.safetensors"))
    folder.entry(name, shape=[header[name]["shape"][0] * header[name]["shape"][1], 1])
    return f"'{re.escape(name)}' is"


def split_beside_joined(folder):
    joined, split = folder.joined()
    header, _ = read_header(folder.at("model.safetensors"))
    rows, columns = header[joined]["shape"]
    folder.add(split, "BF16", [rows // 2, columns], bytes(rows // 2 * columns * 2))
    return re.escape(split)


# What is damaged, of which directories, and how; that gives what is said.
DAMAGES = [
    ("no such model", None, lambda f: f.config(model_type=f.settings["model_type"] + "x")
     or r"at config\.model_type"),
    ("another architecture", None, lambda f: f.config(architectures=["BertForMaskedLM"])
     or r"at config\.architectures"),
    ("width is text", None, lambda f: f.set(WIDTH, str)),
    ("width is 0", None, lambda f: f.set(WIDTH, lambda _: 0)),
    ("layers without end", None, lambda f: f.set(LAYERS, lambda _: 10**9)),
    ("a layer too few in the file", None, lambda f: f.set(LAYERS, lambda n: n + 1)
     and r"is missing|at config\.layer_types"),
    ("a layer too many in the file", None, lambda f: f.set(LAYERS, lambda n: n - 1)
     and r"is no tensor of the model|at config\.layer_types"),
    ("heads are text", None, lambda f: f.set(HEADS, str)),
    ("heads do not divide", None, lambda f: f.set(HEADS, lambda n: 2 * n + 1)
     and "is not divisible by"),
    ("no such activation", None, lambda f: f.set(ACTIVATION, lambda _: "swish9")),
    ("eps is negative", None, lambda f: f.set(EPS, lambda _: -1)),
    ("a quantized model", None, lambda f: f.config(quantization_config={"bits": 4})
     or r"at config\.quantization_config"),
    ("a vocabulary of text", None, lambda f: f.config(vocab_size="many") or r"at config\.vocab_size"),
    ("a tensor too few", None, lambda f: f.rename(f.matrices[0], "transformer.other")
     or f"'{re.escape(f.matrices[0])}' is missing"),
    ("other rows", None, transposed_rows),
    ("integers", None, lambda f: f.entry(f.matrices[0], dtype="I16")
     or f"'{re.escape(f.matrices[0])}' (is|has the unsupported type) I16"),
    ("truncated", None, lambda f: open(f.at("model.safetensors"), "r+b").truncate(99)
     and "damaged safetensors file"),
    ("another lm_head", is_tied, differing_head),
    ("a dynamic rotary table", is_rotary, lambda f: f.rope(rope_type="dynamic", factor=2.0)
     or r"at config\.rope_parameters\.rope_type"),
    ("no such rotary table", is_rotary, lambda f: f.rope(rope_type="spin")
     or r"at config\.rope_parameters\.rope_type"),
    ("theta is 0", is_rotary, lambda f: f.rope(rope_theta=0) or r"rope_theta"),
    ("factors of another length", is_rotary, lambda f: f.rope(
        rope_type="longrope", short_factor=[1.0], long_factor=[1.0], factor=2.0,
        original_max_position_embeddings=8) or r"short_factor"),
    ("a layer too few in layer_types", has_windows, lambda f: f.config(
        layer_types=f.settings["layer_types"][1:]) or r"at config\.layer_types"),
    ("no such kind of layer", has_windows, lambda f: f.config(
        layer_types=["chunked_attention"] * len(f.settings["layer_types"])) or r"at config\.layer_types\[0\]"),
    ("layer_types against no window", has_windows, lambda f: f.config(sliding_window=None)
     or r"at config\.(layer_types|sliding_window)"),
    ("hidden_size beside n_embd", lambda f: "n_embd" in f.settings, lambda f: f.config(hidden_size=24)
     or r"at config\.hidden_size"),
    ("split beside joined", lambda f: f.settings["model_type"] == "phi3", split_beside_joined),
]


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    counts = collections.Counter()
    for case in CASES:
        for name, applies, damage in DAMAGES:
            path = f"{WORK}/{case}/{re.sub(r'[^a-z0-9]+', '-', name)}"
            shutil.copytree(os.path.join(GOLDEN, case), path, ignore=shutil.ignore_patterns("g*"))
            folder = Damaged(path)
            if applies and not applies(folder):
                continue
            expected = damage(folder)
            done = subprocess.run(["fsdp-checkpoint", "inspect", path], capture_output=True, text=True)
            if done.returncode != 1 or done.stdout or not re.search(expected, done.stderr):
                sys.exit(f"{case}, {name}: not '{expected}', but ended with {done.returncode} and said\n"
                         f"{done.stdout}{done.stderr}")
            if not done.stderr.startswith("fsdp-checkpoint: "):
                sys.exit(f"{case}, {name}: not one message:\n{done.stderr}")
            counts[case] += 1
        print(f"{case}: {counts[case]} directories are refused")


main()
