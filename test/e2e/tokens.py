"""A token folder, and the same tokens in the formats of Megatron and llm.c, are
trained on: the same losses on every mesh, in microbatches, after a kill and a
resumption on another mesh, and from every format; a sample is text.

usage: tokens.py GOLDEN WORKDIR"""
import array
import json
import os
import pathlib
import shutil
import struct
import sys

from support import commands, runs, token_folders
from support.commands import expect

GOLDEN, WORK = pathlib.Path(sys.argv[1]) / "tokens", pathlib.Path(sys.argv[2])
SEQUENCE, STEPS = 16, 30
NEAR = 1e-6
SETTINGS = {"model__vocab_size": 300, "training__seq_len": SEQUENCE,
            "training__dataset": "tokens", "optimizer__lr": 0.01}
# Of one global batch of 4 rows: ranks, rows of each at a time, degree of tensor parallelism.
MESHES = {"one": (1, 4, 1), "two": (2, 2, 1), "four": (4, 1, 1), "microbatches": (2, 1, 1),
          "tensor": (2, 4, 2), "hybrid": (4, 2, 2)}


def artifact(mesh):
    ranks, rows, degree = MESHES[mesh]
    return runs.compile_small(str(WORK / mesh), ranks, **SETTINGS,
                              training__local_batch_size=rows, training__global_batch_size=4,
                              parallelism__tensor_parallel_degree=degree)


def train(mesh, folder, data=GOLDEN / "folder", *arguments, **settings):
    """(losses, what was said) of a training."""
    said = artifact(mesh).run(
        str(data), str(WORK / folder), *arguments,
        **{"training__steps": STEPS, "checkpoint__enable": "false", **settings})
    return [step["loss"] for step in runs.metric_runs(WORK / folder)[-1][1]], said


def write_others(ids, starts):
    """The folder without its masks, Megatron's files and two of llm.c."""
    plain = WORK / "plain"
    shutil.copytree(GOLDEN / "folder", plain)
    description = json.loads((plain / "tokens.json").read_text())
    for shard in description["shards"]:
        del shard["mask"]
    (plain / "tokens.json").write_text(json.dumps(description))
    lengths = [end - begin for begin, end in zip(starts, [*starts[1:], len(ids)])]
    count = len(starts)
    (WORK / "m.bin").write_bytes(ids.tobytes())
    (WORK / "m.idx").write_bytes(
        b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, count, count + 1) +
        array.array("i", lengths).tobytes() + array.array("q", [2 * at for at in starts]).tobytes() +
        array.array("q", range(count + 1)).tobytes())
    for name, part in (("c_1.bin", ids[:700]), ("c_2.bin", ids[700:])):
        (WORK / name).write_bytes(struct.pack("<3i", 20240520, 1, len(part)) + bytes(1012) +
                                  part.tobytes())
    return plain


def compare_formats(ids, starts):
    """The same ids give the same bits, and the same tokens are held out."""
    plain = write_others(ids, starts)
    validated = {"validation__enable": "true", "validation__fraction": 0.1}
    losses, said = train("two", "plain-run", plain, **validated)
    expect("80 documents, the last ones are held out" in said, said)
    held_out = [line for line in said.splitlines() if line.startswith("held-out ids")]
    expect(len(held_out) == 1, said)
    again, said = train("two", "megatron-run", WORK / "m", training__dataset="megatron", **validated)
    expect(again == losses and held_out[0] in said, "Megatron's files are read differently")
    whole, _ = train("two", "whole-run", plain, validation__fraction=0)
    again, _ = train("two", "llmc-run", WORK / "c_*.bin", training__dataset="llmc",
                     validation__fraction=0)
    expect(again == whole and whole != losses, "files of llm.c are read differently")
    drawn, _ = train("two", "drawn-run", plain, training__data_order="random", validation__fraction=0)
    (WORK / "bare").write_bytes(ids.tobytes())
    again, _ = train("two", "ids-run", WORK / "bare", training__dataset="ids", validation__fraction=0)
    expect(again == drawn and drawn != whole, "bare ids are read differently")
    return 4


def compare_meshes():
    losses = {mesh: train(mesh, f"{mesh}-run")[0] for mesh in MESHES}
    first = losses["one"]
    expect(len(first) == STEPS and first[-1] < 0.6 * first[0], f"nothing is learnt: {first}")
    for mesh, found in losses.items():
        # A rank adds up the losses of its rows first, and products over tensor
        # parallel ranks are summed in another order.
        near = 2e-5 if MESHES[mesh][2] > 1 else NEAR
        expect(all(abs(a - b) <= near * b for a, b in zip(found, first)),
               f"{mesh}: {found} instead of {first}")
    return len(losses)


def counts_of_labels(ids, starts):
    """What a run says of a tenth held out, if the first token of a document is no label."""
    flags = bytearray()
    for number in range(2):
        flags += (GOLDEN / "folder" / f"mask-{number:05}.bin").read_bytes()
    for at in starts:
        flags[at] = 0
    end = min(at for at in starts if at >= len(ids) - round(0.1 * len(ids)))
    return (f"ids: {end:,} to train on, {sum(flags[1:end]):,} of them labels; {len(ids) - end:,}"
            f" held out, {sum(flags[end + 1:]):,} of them labels")


def keep_apart(ids, starts):
    """With documents that do not see each other every mesh learns the same, and other things
    than without."""
    masked = {"training__document_mask": "true", "validation__enable": "true",
              "validation__fraction": 0.1}
    losses, counts = {}, counts_of_labels(ids, starts)
    for mesh in ("one", "two", "microbatches", "tensor"):
        ranks, rows, degree = MESHES[mesh]
        made = runs.compile_small(
            str(WORK / f"apart-{mesh}"), ranks, **SETTINGS, training__local_batch_size=rows,
            training__global_batch_size=4, parallelism__tensor_parallel_degree=degree,
            training__document_mask="true")
        said = made.run(str(GOLDEN / "folder"), str(WORK / f"apart-{mesh}-run"),
                        **{"training__steps": STEPS, "checkpoint__enable": "false", **masked})
        losses[mesh] = [step["loss"] for step in
                        runs.metric_runs(WORK / f"apart-{mesh}-run")[-1][1]]
        held_out = [line for line in said.splitlines() if line.startswith("held-out ids")]
        expect(counts in said and len(held_out) == 1, said)
        expect(all(abs(a - b) <= 2e-5 * b for a, b in zip(losses[mesh], losses["one"])),
               f"{mesh}: {losses[mesh]} instead of {losses['one']}")
    expect(losses["one"] != train("one", "together-run", **{
        key: value for key, value in masked.items() if "mask" not in key})[0], "no mask")
    said = made.fail(str(WORK / "c_*.bin"), str(WORK / "refused"), training__dataset="llmc",
                     checkpoint__enable="false", training__document_mask="true")
    expect("training.document_mask keeps documents apart, and training.dataset = llmc" in said,
           said)
    return len(losses)


def resume_elsewhere():
    """Steps after a resumption on another mesh see what they would have seen."""
    saving = {"checkpoint__enable": "true", "checkpoint__interval": 10}
    whole, _ = train("two", "saved-run", **saving)
    shutil.rmtree(WORK / "saved-run" / "checkpoint" / "step-30")
    shutil.rmtree(WORK / "saved-run" / "checkpoint" / "step-20")
    rest, _ = train("four", "saved-run", **saving)
    expect(all(abs(a - b) <= NEAR * b for a, b in zip(rest, whole[10:])) and len(rest) == 20,
           f"{rest} instead of {whole[10:]}")
    changed = WORK / "changed"
    shutil.copytree(GOLDEN / "folder", changed)
    description = (changed / "tokens.json").read_text()
    (changed / "tokens.json").write_text(description.replace('"eos": 0', '"eos": 1'))
    said = artifact("two").fail(str(changed), str(WORK / "saved-run"), training__steps=40, **saving)
    expect("the ids: as many bytes as in the checkpoint, but others" in said, said)
    said = artifact("two").fail(str(GOLDEN / "folder"), str(WORK / "saved-run"), training__steps=40,
                                training__data_order="random", **saving)
    expect("training.data_order: shuffle in the checkpoint, random now" in said, said)
    return 2


def sample():
    """What is generated is text, after a prompt of ids or the first held-out ones."""
    settings = {"checkpoint__enable": "true", "sample__length": 20, "sample__temperature": 0}
    _, said = train("two", "sample-run", **settings, sample__prompt_ids="81,287,85")
    text = (WORK / "sample-run" / "sample.txt").read_text()
    expect(text.startswith(prompt_text([81, 287, 85])) and len(text) > 20, text)
    expect("sample: 20 tokens, each by a run" in said, said)
    for prompt in ("", "1,", ",1", "1,,2", "300", "-1", "a", "1 2", "9" * 30):
        if prompt:
            said = artifact("two").fail(str(GOLDEN / "folder"), str(WORK / "refused"),
                                        checkpoint__enable="false", training__steps=1,
                                        sample__length=2, sample__prompt_ids=prompt)
            expect("sample.prompt_ids: expected ids from 0 to 299" in said, said)
    for kind in ("bytes", "ids", "megatron", "llmc"):
        said = artifact("two").fail(str(GOLDEN / "folder"), str(WORK / "refused"),
                                    training__dataset=kind)
        expect(f"is a token folder of tools/fsdp-tokenize: set training.dataset = tokens, not {kind}"
               in said, said)
    said = artifact("two").fail(str(GOLDEN / "folder"), str(WORK / "refused"), sample__length=2,
                                sample__prompt="text")
    expect("sample.prompt is for training.dataset = bytes" in said, said)


def prompt_text(ids):
    table = (GOLDEN / "folder" / "table.bin").read_bytes()
    count = struct.unpack_from("<Q", table)[0]
    starts = struct.unpack_from(f"<{count + 1}Q", table, 8)
    texts = table[8 * (count + 2):]
    return b"".join(texts[starts[i]:starts[i + 1]] for i in ids).decode()


def main():
    ids, starts = token_folders.read(GOLDEN / "folder")
    meshes, formats = compare_meshes(), compare_formats(ids, starts)
    apart = keep_apart(ids, starts)
    changes = resume_elsewhere()
    sample()
    print(f"{meshes} meshes, {formats} formats, documents apart on {apart}, resumed on another mesh, {changes} changes refused")


main()
