"""Rows of whole documents: padded ones and packed ones learn the same, on every mesh and after a
resumption on another; documents in another order in each epoch; what has none is refused.

usage: packing.py GOLDEN WORKDIR"""
import array
import pathlib
import shutil
import sys

from support import runs, token_folders
from support.commands import expect, expect_near, only_line

GOLDEN, WORK = pathlib.Path(sys.argv[1]) / "tokens" / "folder", pathlib.Path(sys.argv[2])
STEPS = 20
APART = {"training__document_mask": "true"}
SETTINGS = {"model__vocab_size": 300, "training__dataset": "tokens", "optimizer__lr": 0.01}
# Of one global batch of 4 rows: ranks, rows of each at a time, degree of tensor parallelism.
MESHES = {"one": (1, 4, 1), "microbatches": (2, 1, 1), "tensor": (2, 4, 2)}
NEAR = 2e-5  # sums of ranks are in another order


def artifact(mesh="one", batch=4, sequence=16, **settings):
    ranks, rows, degree = MESHES[mesh]
    name = "-".join(map(str, [mesh, batch, sequence, *settings]))
    return runs.compile_small(
        str(WORK / name), ranks, **SETTINGS, **settings, training__seq_len=sequence,
        training__local_batch_size=rows * batch // 4, training__global_batch_size=batch,
        parallelism__tensor_parallel_degree=degree)


def train(made, folder, packing, data=GOLDEN, **settings):
    """(losses, what was said)."""
    said = made.run(str(data), str(WORK / folder), **{
        "training__steps": STEPS, "checkpoint__enable": "false", "training__packing": packing,
        "validation__enable": "true", "validation__fraction": 0.1, **settings})
    return [step["loss"] for step in runs.metric_runs(WORK / folder)[-1][1]], said


def held_out_of(said):
    """Labels and loss."""
    words = only_line(said, "held-out ids").replace("(", "").replace(",", "").split()
    return [int(words[2]), float(words[5])]


def lengths_of(folder):
    ids, starts = token_folders.read(folder)
    return [end - begin for begin, end in zip(starts, [*starts[1:], len(ids)])]


def compare_packings():
    """A step over all documents is the same however rows are made of them."""
    ids, _ = token_folders.read(GOLDEN)
    equal = token_folders.write(GOLDEN, WORK / "equal", ids[:80], range(0, 80, 10))
    # Nine places each: one in a row of 20 places, or two.
    everything = {"data": equal, "validation__enable": "false", "validation__fraction": 0}
    padded, said = train(artifact(batch=8, sequence=20, **APART), "padded", "padded", **everything)
    expect("rows: 8 of 20 tokens in an epoch, 55.0 % of them padding" in said, said)
    fitted, said = train(artifact(batch=4, sequence=20, **APART), "fitted", "best_fit", **everything)
    expect("rows: 4 of 20 tokens in an epoch, 10.0 % of them padding" in said, said)
    expect_near(fitted, padded, "best_fit", NEAR)
    expect(padded[-1] < 0.6 * padded[0], f"nothing is learnt: {padded}")
    # Nothing is before padding that would not be without it.
    bare, _ = train(artifact(batch=8, sequence=20), "bare", "padded", **everything)
    expect_near(bare, padded, "padded rows without a mask", NEAR)
    return 3


def counted(lengths, sequence=16):
    places = [length - 1 for length in lengths]
    padded = sum(-(-place // sequence) for place in places)
    return padded, 100 * (1 - sum(places) / (padded * sequence))


def compare_meshes():
    lengths, trained = lengths_of(GOLDEN), []
    while sum(trained) < sum(lengths) - round(0.1 * sum(lengths)):
        trained.append(lengths[len(trained)])
    rows, waste = counted(trained)
    losses = {}
    for packing in ("padded", "best_fit"):
        first, held_out = None, None
        for mesh in MESHES:
            found, said = train(artifact(mesh, **APART), f"{packing}-{mesh}", packing)
            first, held_out = first or found, held_out or held_out_of(said)
            expect_near(found, first, f"{packing} on {mesh}", NEAR)
            expect_near(held_out_of(said), held_out, f"{packing} on {mesh}, held out", 1e-3)
        losses[packing] = first
        if packing == "padded":
            expect(f"rows: {rows:,} of 16 tokens in an epoch, {waste:.1f} % of them padding" in said,
                   said)
        else:
            found = int(only_line(said, "rows:").split()[1].replace(",", ""))
            expect((sum(trained) - len(trained)) // 16 <= found < rows, said)
    expect(losses["padded"] != losses["best_fit"], "both are packed alike")
    return len(losses) * len(MESHES)


def shuffle_documents():
    order = {"training__data_order": "documents"}
    first, _ = train(artifact(), "documents-one", "wrapped", **order)
    for mesh in ("microbatches", "tensor"):
        found, _ = train(artifact(mesh), f"documents-{mesh}", "wrapped", **order)
        expect_near(found, first, f"documents on {mesh}", NEAR)
    plain, _ = train(artifact(), "plain", "wrapped")
    expect(plain != first, "documents come in the order of the folder")
    apart, _ = train(artifact(**APART), "documents-apart", "wrapped", **order)
    expect(apart != first, "no mask")


def resume_elsewhere():
    saving = {"checkpoint__enable": "true", "checkpoint__interval": 8}
    for packing, order in (("best_fit", "auto"), ("wrapped", "documents")):
        settings = {**saving, "training__data_order": order}
        folder = f"saved-{packing}"
        whole, _ = train(artifact("microbatches", **APART), folder, packing, **settings)
        for step in (16, STEPS):
            shutil.rmtree(WORK / folder / "checkpoint" / f"step-{step}")
        rest, _ = train(artifact("one", **APART), folder, packing, **settings)
        expect_near(rest, whole[8:], f"{packing}, resumed", NEAR)
    said = artifact("one", **APART).fail(
        str(GOLDEN), str(WORK / "saved-best_fit"), training__steps=STEPS + 1,
        training__packing="padded", validation__fraction=0.1, **saving)
    expect("training.packing: best_fit in the checkpoint, padded now" in said, said)
    said = artifact("one", **APART).fail(
        str(GOLDEN), str(WORK / "saved-wrapped"), training__steps=STEPS + 1,
        validation__fraction=0.1, **saving)
    expect("training.data_order: documents in the checkpoint, shuffle now" in said, said)


def refuse():
    text = WORK / "text"
    text.write_bytes(b"\1\0\2\0" * 512)
    none = "does not say where they begin"
    damaged = WORK / "damaged"
    shutil.copytree(GOLDEN, damaged)
    starts = array.array("Q", (damaged / "documents.bin").read_bytes())
    starts[5], starts[6] = starts[6], starts[5]
    (damaged / "documents.bin").write_bytes(starts.tobytes())
    disorder = (f"'{damaged}' was changed: document 5, counted from 0, begins at token "
                f"{starts[5]}, and the next one at token {starts[6]}")
    cases = [(artifact(), GOLDEN, {"training__packing": "best_fit"},
              "training.packing = best_fit puts several documents into a row"),
             (artifact(), GOLDEN, {"training__packing": "nearly"}, "padded"),
             (artifact(), GOLDEN,
              {"training__packing": "padded", "training__data_order": "random"},
              "training.data_order = random is an order of windows"),
             (artifact(), GOLDEN,
              {"training__packing": "padded", "training__data_order": "documents"},
              "training.data_order = documents is an order of windows"),
             (artifact(), text, {"training__packing": "padded", "training__dataset": "ids"}, none),
             (artifact(), text, {"training__packing": "padded", "training__dataset": "bytes"}, none),
             (artifact(), text, {"training__data_order": "documents", "training__dataset": "ids"},
              none)]
    llmc = {"training__packing": "best_fit", "training__dataset": "llmc"}
    cases += [(artifact(), WORK / "none", llmc, none),
              (artifact(), damaged, {"training__packing": "padded"}, disorder),
              (artifact(), damaged, {"training__data_order": "documents"}, disorder)]
    for made, data, settings, wanted in cases:
        said = made.fail(str(data), str(WORK / "refused"), training__steps=1,
                         **{"checkpoint__enable": "false", **settings})
        expect(wanted in said and said.count("\n") == 1, f"{settings}: {said}")
        expect(not (WORK / "refused").exists(), f"{settings} leave a folder")
    return len(cases)


def main():
    print(f"{compare_packings()} packings learn the same, {compare_meshes()} meshes")
    shuffle_documents()
    resume_elsewhere()
    print(f"documents shuffled, resumed on another mesh, {refuse()} refused")


main()
