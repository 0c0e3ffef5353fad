"""The fine-tune of docs/hugging-face.md, as that page has it: its Python, its run
description and its commands, on a small random model with a tokenizer that
transformers has saved. The held-out loss that the run tells is that of transformers
with the exported directory.

usage: check_fine_tune.py WORKDIR [STEPS [llama | gpt2 | qwen3]]; run by hand, with the tools in PATH, see README.md."""
import os
import re
import subprocess
import sys

import numpy as np
import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import (AutoModelForCausalLM, GPT2Config, LlamaConfig, PreTrainedTokenizerFast,
                          Qwen3Config, set_seed)

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs",
                    "hugging-face.md")
FRACTION, SEQUENCE = 0.02, 128  # of the page's run


def blocks(language):
    """The page's blocks of a language."""
    with open(PAGE) as file:
        found = re.findall(r"^```(\w*)\n(.*?)^```$", file.read(), re.M | re.S)
    return [text for kind, text in found if kind == language]


def configuration(family, **tokens):
    if family == "gpt2":
        return GPT2Config(vocab_size=1024, n_embd=256, n_layer=4, n_head=8, n_positions=256,
                          resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **tokens)
    kind = {"llama": LlamaConfig, "qwen3": Qwen3Config}[family]
    return kind(vocab_size=1024, hidden_size=256, intermediate_size=688, num_hidden_layers=4,
                num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=256, **tokens)


def write_model(family):
    bpe = ByteLevelBPETokenizer()
    bpe.train("bible.txt", vocab_size=1024, special_tokens=["<s>", "</s>"], show_progress=False)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer, bos_token="<s>",
                                        eos_token="</s>")
    set_seed(1)
    model = AutoModelForCausalLM.from_config(configuration(
        family, bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id))
    model.save_pretrained("base")
    tokenizer.save_pretrained("base")


def held_out_loss():
    """(labels, nats per label) of transformers, in the run's windows."""
    ids, mask = np.fromfile("train.ids", "<u2").astype(np.int64), np.fromfile("train.mask", "u1")
    held = round(FRACTION * len(ids))
    ids, mask = ids[-held:], mask[-held:]
    labels = torch.tensor(np.where(mask, ids, -100))
    model = AutoModelForCausalLM.from_pretrained("my-llama")
    total = count = 0
    with torch.no_grad():
        for first in range(0, held - 1, SEQUENCE):
            last = min(first + SEQUENCE, held - 1)
            logits = model(torch.tensor(ids[None, first:last])).logits[0]
            wanted = labels[first + 1:last + 1]
            total += torch.nn.functional.cross_entropy(logits, wanted, reduction="sum").item()
            count += int((wanted >= 0).sum())
    return count, total / count


def main():
    work, steps = sys.argv[1], sys.argv[2:3]
    family = sys.argv[3] if len(sys.argv) > 3 else "llama"
    os.makedirs(work)
    os.chdir(work)
    with open("bible.txt", "w") as file:
        subprocess.run(["bible", "-f", "gen1:1-rev22:21"], stdout=file, check=True)
    write_model(family)
    tokenize, generate = blocks("python")
    (description,) = blocks("toml")
    with open("tune.toml", "w") as file:
        file.write(re.sub(r"\nsteps = \d+", f"\nsteps = {steps[0]}", description) if steps
                   else description)
    exec(tokenize, {})
    (transcript,) = (block for block in blocks("") if block.startswith("$ "))
    commands = "\n".join(line[2:] for line in transcript.splitlines() if line.startswith("$ "))
    # Before the last step on an idle machine too.
    commands = commands.replace(" TERM 120 ", " TERM 15 ")
    done = subprocess.run(["bash", "-ec", commands], stdout=subprocess.PIPE, text=True)
    print(done.stdout)
    told = re.search(r"held-out ids \(([\d,]+) labels predicted\): ([\d.]+) nats", done.stdout)
    if done.returncode or not told or "stopped by signal 15" not in done.stdout:
        sys.exit("the page's commands do not do what it says")
    exec(generate, {})
    count, nats = held_out_loss()
    print(f"transformers: {nats:.5f} nats per token of {count} labels")
    if count != int(told[1].replace(",", "")) or abs(nats - float(told[2])) > 2e-4:
        sys.exit(f"the run says {told[2]} nats of {told[1]} labels")


main()
