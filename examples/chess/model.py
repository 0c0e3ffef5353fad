"""Writes the directory of a small Llama for these games: config.json, and a byte-level BPE
tokenizer trained on them. Weights come from a seed checkpoint (chess.sh).

usage: model.py GAMES.jsonl DIR
"""
import json
import pathlib
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 1024
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCABULARY,
          "hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4,
          "num_key_value_heads": 2, "intermediate_size": 320, "max_position_embeddings": 256,
          "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
          "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False,
          "bos_token_id": None, "eos_token_id": 0, "torch_dtype": "float32"}


def main():
    games, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    with open(games) as file:
        texts = [json.loads(line)["text"] for line in file]
    tokenizer = Tokenizer(models.BPE())
    # Every move begins with a space, the first one of a game too.
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=["<|end|>"], show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"eos_token": "<|end|>", "tokenizer_class": "PreTrainedTokenizerFast"}, indent=1) + "\n")
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=1) + "\n")


main()
