"""Several documents in a row do not see each other: the loss and every gradient are
those of the documents in rows of their own. Starts that are wrong are found.

usage: documents.py WORKDIR"""
import os
import random
import sys

from support import commands, runs
from support.commands import expect
from support.tensors import distance, whole, write_int32

SEQUENCE, VOCABULARY, IGNORED = 48, 300, -100
# Lengths of the documents of each row.
ROWS = ((20, 1, 27), (48,), (1, 1, 2, 44), (16, 16, 16))
DOCUMENTS = sum(map(len, ROWS))
# Relative, in the norm of a tensor: positions of a document are those in its row, so
# angles of rotations differ, and sums over keys are taken in other blocks, in f32 with a
# unit roundoff of 6e-8.
TOLERANCE = 1e-6
SETTINGS = {
    "model.dim": 32, "model.n_layers": 2, "model.n_heads": 4, "model.n_kv_heads": 2,
    "model.ffn_dim": 48, "model.vocab_size": VOCABULARY, "training.seq_len": SEQUENCE,
    "training.dataset": "tokens", "training.mixed_precision_param": "float32",
    "training.steps": 1, "training.max_norm": 0, "optimizer.lr": 1e-2,
    "lr_scheduler.warmup_steps": 0, "validation.enable": "false", "sample.length": 0,
    "metrics.peak_tflops": 1}
# Ranks, rows of a rank at a time, and what else is set.
MESHES = {
    "one": (1, 4, {}),
    "two": (2, 2, {}),
    "microbatches": (2, 1, {}),
    "tensor": (2, 4, {"parallelism.tensor_parallel_degree": 2}),
    "reference": (2, 2, {"compile.attention": "plain"}),
    "recomputed": (2, 2, {"compile.recompute": "full"}),
}


def documents():
    draw = random.Random(3)
    return [[[draw.randrange(VOCABULARY) for _ in range(length)] for length in row]
            for row in ROWS]


def targets_of(document):
    return document[1:] + [IGNORED]


def packed(change=lambda starts: starts):
    """The batch of rows, whose starts are changed."""
    tokens, targets, starts = [], [], []
    for row in documents():
        begin = 0
        for document in row:
            tokens += document
            targets += targets_of(document)
            starts += [begin] * len(document)
            begin += len(document)
    shape = [len(ROWS), SEQUENCE]
    return {"tokens": (shape, tokens), "targets": (shape, targets),
            "document_starts": (shape, change(starts))}


def separate():
    """Each document in a row of its own, with nothing after it."""
    tokens, targets = [], []
    for row in documents():
        for document in row:
            rest = SEQUENCE - len(document)
            tokens += document + [0] * rest
            targets += targets_of(document) + [IGNORED] * rest
    shape = [DOCUMENTS, SEQUENCE]
    return {"tokens": (shape, tokens), "targets": (shape, targets)}


class Artifact(runs.Artifact):
    def gradients(self, data, batch):
        """The loss of a step, and the first moments of AdamW after it: a tenth of the
        gradients."""
        path, run = f"{self.path}.batch.safetensors", f"{self.path}.run"
        write_int32(path, batch)
        dump = f"{self.path}.safetensors"
        commands.run(*self.command("--load", path, "--dump", dump, training__dataset_path=data,
                                   job__dump_folder=run))
        dumps = self.dumps(dump)
        return runs.metrics(run)[0]["loss"], {
            name: whole(self.manifest, dumps, name + ".exp_avg")
            for name in self.names("parameter")}


def error(actual, expected):
    (loss, gradients), (wanted, wanted_gradients) = actual, expected
    return max(abs(loss / wanted - 1), *(
        distance(gradients[name], values) for name, values in wanted_gradients.items()))


def leaks():
    """Names and wrong starts."""
    rows = len(ROWS)

    def of_row(row, change):
        def changed(starts):
            begin = row * SEQUENCE
            return (starts[:begin] + change(starts[begin:begin + SEQUENCE]) +
                    starts[begin + SEQUENCE:])
        return changed

    yield "no document begins", lambda starts: [0] * len(starts)
    yield "each begins one token early", lambda starts: [max(at - 1, 0) for at in starts]
    yield "each begins one token late", lambda starts: [at + 1 if at else 0 for at in starts]
    yield "the last one begins with the one before", of_row(
        0, lambda starts: [min(at, 20) for at in starts])
    yield "the first token of the second is of the first", of_row(
        3, lambda starts: starts[:16] + [0] + starts[17:])
    yield "one token sees the whole row", of_row(
        3, lambda starts: starts[:40] + [0] + starts[41:])
    yield "rows are exchanged", lambda starts: starts[SEQUENCE:] + starts[:SEQUENCE]
    yield "starts count from the first row", lambda starts: [
        at + i // SEQUENCE * SEQUENCE for i, at in enumerate(starts)]
    yield "lengths are taken for starts", of_row(
        0, lambda starts: [20] * 20 + [1] + [27] * 27)
    yield "a document is seen by one after it alone", of_row(
        2, lambda starts: starts[:2] + [0] + starts[3:])
    expect(rows == 4, "leaks are of these rows")


def main():
    work = sys.argv[1]
    os.makedirs(work, exist_ok=True)
    data = f"{os.path.dirname(os.path.abspath(__file__))}/../golden/tokens/folder"
    loose = Artifact.compiled(f"{work}/separate", 1, {
        **SETTINGS, "training.local_batch_size": DOCUMENTS})
    expected = loose.gradients(data, separate())
    worst = 0
    for name, (ranks, rows, more) in MESHES.items():
        artifact = Artifact.compiled(f"{work}/{name}", ranks, {
            **SETTINGS, "training.local_batch_size": rows, "training.global_batch_size": len(ROWS),
            "training.document_mask": "true", **more})
        found = error(artifact.gradients(data, packed()), expected)
        expect(found <= TOLERANCE, f"{name}: relative error {found:.2e}")
        worst = max(worst, found)
        if name != "two":
            continue
        for leak, change in leaks():
            found = error(artifact.gradients(data, packed(change)), expected)
            expect(found > 1e-4, f"{leak}: relative error {found:.2e}, not found")
    print(f"{len(MESHES)} meshes and modes, {len(list(leaks()))} leaks found,"
          f" worst relative error {worst:.1e}")


main()
