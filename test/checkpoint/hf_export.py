"""A directory of transformers, read and written again with the same type and
size of shards: the same bytes in every file with tensors and in the index, and
a config.json of the same model. In other types: the values that numpy rounds.
With --families the directories are of every family, in bf16.

usage: hf_export.py GOLDEN WORKDIR [--families]"""
import filecmp
import json
import os
import shutil
import sys

from support import commands

GOLDEN, WORK = sys.argv[1:3]
CASES = [("llama2", "float32", "5GB"), ("llama3_shards", "float32", "8KB"),
         ("llama3_tied", "bfloat16", "5GB"), ("tied_shards", "float32", "10KB"),
         ("code_llama", "float16", "5GB")]
# What transformers writes that says nothing of weights, and what we add for
# its version 4.
ONLY_THEIRS = {"bos_token_id", "eos_token_id", "pad_token_id", "initializer_range",
               "use_cache", "transformers_version"}
ONLY_OURS = {"rope_scaling", "rope_theta", "torch_dtype"}
# Of other families: what has one value, or changes no weight and no result.
HARMLESS = {"add_cross_attention", "reorder_and_upcast_attn", "use_bidirectional_attention",
            "summary_activation", "summary_first_dropout", "summary_proj_to_labels",
            "summary_type", "summary_use_proj"}
# Left out or another number where it says nothing: a width that follows from
# others, windows that no layer has, a factor that follows from two lengths.
FOLLOWS = {"n_inner", "max_window_layers", "sliding_window", "rope_parameters"}


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


def families():
    """What transformers wrote for every family, and what is exported of that."""
    for case in sorted(os.listdir(GOLDEN)):
        source, target = os.path.join(GOLDEN, case), os.path.join(WORK, case)
        for there, here in ((source, target), (target, f"{target}-again")):
            commands.run("fsdp-checkpoint", "export", there, here, "--dtype", "bfloat16")
            if not filecmp.cmp(f"{there}/model.safetensors", f"{here}/model.safetensors", shallow=False):
                sys.exit(f"{case}: model.safetensors of {here} has other bytes")
        if not filecmp.cmp(f"{target}/config.json", f"{target}-again/config.json", shallow=False):
            sys.exit(f"{case}: config.json, read and written again, is another")
        with open(f"{source}/config.json") as a, open(f"{target}/config.json") as b:
            theirs, ours = json.load(a), json.load(b)
        lost = set(theirs) - set(ours) - ONLY_THEIRS - HARMLESS
        if lost:
            sys.exit(f"{case}: config.json lacks {sorted(lost)}")
        # Where a file names none, transformers takes one that this vocabulary has not.
        if case.startswith("phi3") and ours.get("pad_token_id", 0) is not None:
            sys.exit(f"{case}: config.json does not say that there is no padding")
        for key in set(theirs) & set(ours) - FOLLOWS:
            # transformers takes no 24.0 for an integer.
            if theirs[key] != ours[key] or (type(theirs[key]) is int and type(ours[key]) is float):
                sys.exit(f"{case}: {key} is {ours[key]} instead of {theirs[key]}")
        print(f"{case}: transformers' bytes")


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    if "--families" in sys.argv:
        return families()
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
