"""A checkpoint of 4 ranks that shard fully, loaded on other meshes: the same
bits; a run that goes on from it: those of the run that was never interrupted.

usage: run_resume.py WORKDIR"""
import json
import shutil
import sys

from support import runs
from support.commands import expect
from support.files import same_bytes

# (replicate, shard, tensor, mode), with 8 sequences of all ranks.
MESHES = {"one": (1, 1, 1, "fully_shard"), "two": (2, 1, 1, "replicate"),
          "three": (1, 3, 1, "fully_shard"), "hybrid": (2, 2, 1, "hybrid_shard"),
          "tensor": (1, 2, 2, "fully_shard")}


def artifact(work, name, replicate, shard, tensor, mode):
    data = replicate * shard
    return runs.compile_small(
        f"{work}/{name}", data * tensor, compile__mode=mode,
        parallelism__data_parallel_replicate_degree=replicate,
        parallelism__tensor_parallel_degree=tensor,
        training__local_batch_size=8 // data)


def check_meshes(work, text, whole):
    """Nothing is trained: what is dumped is what was loaded."""
    for name, mesh in MESHES.items():
        other = artifact(work, name, *mesh)
        uneven = 8 % (mesh[0] * mesh[1]) != 0
        other.run(text, f"{work}/{name}.run", "--dump", f"{work}/{name}.st",
                  checkpoint__folder=f"{work}/half/checkpoint",
                  checkpoint__load_only="true", training__steps=10,
                  **({"checkpoint__exclude_from_loading": "dataloader"}
                     if uneven else {}))
        loaded = other.tensors(f"{work}/{name}.st")
        expect(loaded.keys() == whole.keys(), f"{name}: other tensors")
        for tensor, values in whole.items():
            expect(loaded[tensor] == values, f"{name}: {tensor} differs")


def check_continued(work, text, four):
    for mode in ("async", "disabled"):
        folder = f"{work}/{mode}"
        shutil.copytree(f"{work}/half", folder)
        # Lines after the checkpoint are of steps that come again.
        with open(f"{folder}/metrics.jsonl", "a") as file:
            file.write('{"step": 11, "loss_hex": "0x1p+0"}\n{"step": 12}\n')
        said = four.run(text, folder, "--dump", f"{folder}.st",
                        training__steps=20, checkpoint__async_mode=mode,
                        checkpoint__interval=3)
        expect("metrics: 2 lines after step 10 were removed" in said, said)
        expect("other settings" not in said, said)
        expect(runs.steps(folder) == ([10, 12, 15, 18, 20], []),
               f"{mode}: {runs.steps(folder)}")
        for rank in range(4):
            expect(same_bytes(f"{work}/full.rank{rank}.st", f"{folder}.rank{rank}.st"),
                   f"{mode}: rank {rank} differs")
        expect(runs.curve(folder) == runs.curve(f"{work}/full"),
               f"{mode}: other losses")
        headers = [run for run, _ in runs.metric_runs(folder)]
        expect([run.get("resumed_from", {}).get("step") for run in headers] ==
               [None, 10], "headers")
        with open(f"{folder}/summary.json") as file:
            expect(json.load(file)["steps"] == 20, "summary")
        with open(f"{folder}/loss.svg") as file, \
                open(f"{work}/full/loss.svg") as full:
            expect(file.read() == full.read(), "another picture")


def main():
    (work,) = sys.argv[1:]
    text = runs.start_in(work)
    four = artifact(work, "four", 1, 4, 1, "fully_shard")
    title = {"job__description": "a run"}
    four.run(text, f"{work}/full", "--dump", f"{work}/full.st",
             training__steps=20, checkpoint__enable="false", **title)
    four.settings["job.description"] = "a run"
    said = four.run(text, f"{work}/half", "--dump", f"{work}/half.st",
                    training__steps=10, checkpoint__async_mode="async")
    expect("bytes staging for checkpoints" in said, said)
    check_meshes(work, text, four.tensors(f"{work}/half.st"))
    check_continued(work, text, four)
    said = four.run(text, f"{work}/half", training__steps=10,
                    optimizer__lr="1e-2", lr_scheduler__warmup_steps=3)
    expect("all 10 steps are over" in said, said)
    expect("warning: the run continues with other settings than the checkpoint's: "
           "optimizer.lr = 0.01 instead of 8e-04, lr_scheduler.warmup_steps = 3 "
           "instead of 2\n" in said, said)
    print(f"{len(MESHES)} meshes with the same bits, 2 runs went on")


main()
