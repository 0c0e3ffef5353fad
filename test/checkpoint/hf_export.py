"""A directory of transformers, read and written again with the same type and
size of shards: the same bytes in every file with tensors and in the index, and
a config.json of the same model. In other types: the values that numpy rounds.

usage: hf_export.py GOLDEN WORKDIR"""
import filecmp
import json
import os
import shutil
import sys

from support import commands

GOLDEN, WORK = sys.argv[1:]
CASES = [("llama2", "float32", "5GB"), ("llama3_shards", "float32", "8KB"),
         ("llama3_tied", "bfloat16", "5GB"), ("tied_shards", "float32", "10KB"),
         ("code_llama", "float16", "5GB")]
# What transformers writes that says nothing of weights, and what we add for
# its version 4.
ONLY_THEIRS = {"bos_token_id", "eos_token_id", "pad_token_id", "initializer_range",
               "use_cache", "transformers_version"}
ONLY_OURS = {"rope_scaling", "rope_theta", "torch_dtype"}


def compare_config(case, there, here):
    with open(there) as a, open(here) as b:
        theirs, ours = json.load(a), json.load(b)
    common = {key: value for key, value in theirs.items() if key not in ONLY_THEIRS}
    extra = set(ours) - set(common)
    if extra != ONLY_OURS:
        sys.exit(f"{case}: config.json has other keys: {extra}")
    for key, value in common.items():
        if ours.get(key) != value:
            sys.exit(f"{case}: {key} is {ours.get(key)} instead of {value}")


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    same = 0
    for case, dtype, shard in CASES:
        source, target = os.path.join(GOLDEN, case), os.path.join(WORK, case)
        commands.run("fsdp-checkpoint", "export", source, target, "--dtype", dtype,
                     "--shard-size", shard)
        names = {name for name in os.listdir(source) if name.startswith("model")}
        written = set(os.listdir(target))
        if written != names | {"config.json"}:
            sys.exit(f"{case}: wrote {sorted(written)}")
        for name in names:
            if not filecmp.cmp(os.path.join(source, name), os.path.join(target, name), shallow=False):
                sys.exit(f"{case}: {name} has other bytes")
            same += 1
        compare_config(case, os.path.join(source, "config.json"), os.path.join(target, "config.json"))
    print(f"{same} files of {len(CASES)} directories have transformers' bytes")


main()
