"""Says how many moves that a checkpoint generates are legal.

usage: evaluate.py FSDP-RUN ARTIFACT CHECKPOINT GAMES.jsonl TOKENIZER COUNT [FSDP-RUN's options]

Of each of the last COUNT games a prefix of 2 to 8 moves is continued greedily; the next
move counts if the engine finds it among the legal ones.
"""
import json
import re
import subprocess
import sys

from engine import Engine
from tokenizers import Tokenizer

TOKENS = 5  # the longest move, byte by byte


def continued(command, prompt):
    """The text after `prompt`, up to the end of a game."""
    done = subprocess.run([*command, "--sample.prompt_ids", ",".join(map(str, prompt))],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return re.search(r"^sample \(.*\):\n(.*?)(?:<\|end\|>|\n|\Z)", done.stdout,
                     re.DOTALL | re.MULTILINE).group(1)


def main():
    run, artifact, checkpoint, games, tokenizer, count, *options = sys.argv[1:]
    tokenizer, engine = Tokenizer.from_file(tokenizer), Engine()
    with open(games) as file:
        texts = [json.loads(line)["text"].split() for line in file][-int(count):]
    command = [run, artifact, "sample", *options, "--checkpoint", checkpoint,
               "--sample.temperature", "0", "--sample.length", str(TOKENS)]
    legal = 0
    for number, moves in enumerate(texts):
        before = moves[:2 + number % 7]
        text = continued(command, tokenizer.encode(" ".join(before)).ids).split()
        is_legal = len(text) > len(before) and text[len(before)] in engine.legal(before)
        legal += is_legal
    print(f"legal moves: {legal} of {len(texts)} ({100 * legal / len(texts):.0f} %)")


main()
