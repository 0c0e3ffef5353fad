"""Documents, a tokenizer trained on them, and what tools/fsdp-tokenize makes of both.

usage: tokens.py, in an environment with tools/tokenize-requirements.txt

tokens/documents.jsonl has texts, prompts with completions, and conversations;
tokens/tokenizer/ a byte-level BPE of 300 ids with a chat template;
tokens/folder/ the token folder, in shards.
"""
import json
import pathlib
import shutil
import subprocess
import sys

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent / "tokens"
TOOL = pathlib.Path(__file__).parents[2] / "tools" / "fsdp-tokenize"
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
TEMPLATE = ("{% for message in messages %}<|{{ message.role }}|>{{ message.content }}"
            "{% if message.role == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
            "{% if add_generation_prompt %}<|assistant|>{% endif %}")


def documents():
    for i in range(40):
        a, b = i % 5, i % 6
        yield {"text": f"{NAMES[a]} and {NAMES[b]} are {NAMES[a + b]}: " +
                       ", ".join(NAMES[:a + b + 1]) + ".\n" * (i % 3)}
    for i in range(20):
        yield {"prompt": f"{i % 5} + {i % 6} = ", "completion": str(i % 5 + i % 6)}
    for i in range(20):
        a = i % 9
        yield {"messages": [{"role": "user", "content": f"what is after {NAMES[a]}?"},
                            {"role": "assistant", "content": NAMES[a + 1]},
                            {"role": "user", "content": "and then? \U0001f642"},
                            {"role": "assistant", "content": f"{NAMES[a + 2]} – ‘naïve’"}]}


def main():
    shutil.rmtree(HERE, ignore_errors=True)
    (HERE / "tokenizer").mkdir(parents=True)
    path = HERE / "documents.jsonl"
    records = list(documents())
    path.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records))
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=300, show_progress=False,
                                  special_tokens=["<|end|>", "<|user|>", "<|assistant|>"],
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator([each["text"] for each in records if "text" in each], trainer)
    tokenizer.save(str(HERE / "tokenizer" / "tokenizer.json"))
    (HERE / "tokenizer" / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": "<|end|>", "chat_template": TEMPLATE}, indent=1) + "\n")
    subprocess.run([sys.executable, TOOL, "--tokenizer", HERE / "tokenizer",
                    "--shard-tokens", "1500", "-o", HERE / "folder", path], check=True)


main()
