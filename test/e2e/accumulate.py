"""Steps of several microbatches: a small Llama trains on 1, 2 and 4 ranks with
1, 2 and 4 microbatches of the same global batch, from a text and from a batch of
which every row has another number of ignored labels.

usage: accumulate.py WORKDIR"""
import os
import random
import sys

from support import commands, runs
from support.commands import expect, words
from support.tensors import distance, read_safetensors, whole, write_rows

GLOBAL, SEQUENCE, VOCABULARY = 16, 16, 257
# Relative, in the norm of a tensor: sums over rows are f32 and taken in another
# order, with a unit roundoff of 6e-8. Losses are means of such sums.
TOLERANCE = 1e-6
SETTINGS = {
    "model.dim": 32, "model.n_layers": 2, "model.n_heads": 4,
    "model.n_kv_heads": 2, "model.ffn_dim": 48, "model.vocab_size": VOCABULARY,
    "training.seq_len": SEQUENCE, "training.global_batch_size": GLOBAL,
    "training.dataset": "bytes", # a vocabulary of 257 is not theirs
    "training.mixed_precision_param": "float32", "training.steps": 4,
    # The first step of AdamW divides a gradient by its size. This eps keeps what
    # is rounding alone from becoming a step of the whole learning rate.
    "optimizer.eps": 1e-3, "optimizer.lr": 1e-2,
    "training.max_norm": 0, "lr_scheduler.warmup_steps": 0,
    "validation.enable": "false", "sample.length": 0, "metrics.peak_tflops": 1}
STEPS = 4


class Artifact(runs.Artifact):
    """What is compiled for so many ranks and microbatches."""

    def train(self, text, *options):
        """The lines of its steps."""
        run, dump = f"{self.path}.run", f"{self.path}.safetensors"
        said = commands.run(*self.command(
            "--dump", dump, *options, training__dataset_path=text, job__dump_folder=run))
        peaks = [program["arena_bytes"] for program in self.manifest["programs"]]
        expect(max(peaks) == self.manifest["arena"]["bytes"] and
               f"memory: {max(peaks):,} bytes of arena" in said,
               f"{self.path}: peaks {peaks}, but:\n{said}")
        self.left = self.dumps(dump)
        return runs.metrics(run)

    def tensors(self, *endings):
        """Full tensors, by name, of the parameters, or of what belongs to
        them."""
        return {name + ending: whole(self.manifest, self.left, name + ending)
                for name in self.names("parameter") for ending in endings or ("",)}


def compiled(work, name, ranks, microbatches, **own):
    return Artifact.compiled(f"{work}/{name}", ranks, {
        **SETTINGS, "training.local_batch_size": GLOBAL // ranks // microbatches,
        **commands.dotted(own)})


def inputs_in(work):
    """A text and a ragged batch in a new folder."""
    os.makedirs(work, exist_ok=True)
    text, batch = f"{work}/text", f"{work}/batch.safetensors"
    with open(text, "w") as file:
        file.writelines(f"{i}\n" for i in range(4000))
    write_ragged(batch)
    return text, batch


def write_ragged(path, part=0, parts=1):
    """Rows of which some have no label at all, or an equal part of them."""
    generator = random.Random(5)
    rows = [[generator.randrange(VOCABULARY) for _ in range(SEQUENCE + 1)]
            for _ in range(GLOBAL)]
    ignored = [generator.randrange(SEQUENCE + 1) for _ in rows]
    ignored[0], ignored[1] = SEQUENCE, 0
    count = GLOBAL // parts
    rows, ignored = (values[part * count:(part + 1) * count]
                     for values in (rows, ignored))
    write_rows(path, rows, [[-100 if i < skip else t for i, t in enumerate(row[1:])]
                            for row, skip in zip(rows, ignored)])


def compare(what, actual, expected):
    """Losses of all steps, and tensors."""
    (losses, tensors), (wanted_losses, wanted) = actual, expected
    worst = max(abs(a["loss"] / e["loss"] - 1)
                for a, e in zip(losses, wanted_losses, strict=True))
    for name, values in wanted.items():
        worst = max(worst, distance(tensors[name], values))
    expect(worst <= TOLERANCE, f"{what}: relative error {worst:.2e}")
    return worst


def check_agreement(work, text):
    ragged = f"{work}/batch.safetensors"
    write_ragged(ragged)
    expected = None
    for ranks in (1, 2, 4):
        for microbatches in (1, 2, 4):
            name = f"{ranks}-ranks-{microbatches}"
            artifact = compiled(work, name, ranks, microbatches)
            sampled = artifact.train(text), artifact.tensors()
            # Without clipping the first moment after one step is a tenth of the
            # gradient.
            loaded = (artifact.train(text, "--load", ragged, "--training.steps", "1"),
                      artifact.tensors(".exp_avg"))
            expected = expected or (sampled, loaded)
            worst = [compare(f"{name}, {what}", a, e) for what, a, e in zip(
                ("text", "ragged batch"), (sampled, loaded), expected)]
            steps = artifact.manifest["steps"]["train"]
            want = ([("train", 1)] if microbatches == 1 else
                    [("count", 1), ("accumulate", microbatches), ("update", 1)])
            expect([(a["program"], a["times"]) for a in steps] == want,
                   f"{name}: the step is {steps}")
            print(f"{name}: worst relative error {worst[0]:.1e} in {STEPS} steps,"
                  f" {worst[1]:.1e} with ragged labels")


def check_gradients(work, text):
    """Without an optimizer the gradients of a step stay in their ranges, and a
    step begins with none of the one before."""
    ragged = f"{work}/batch.safetensors"
    found = []
    for microbatches in (1, 4):
        artifact = compiled(work, f"gradients-{microbatches}", 2, microbatches,
                            optimizer__name="none")
        losses = artifact.train(text, "--load", ragged, "--training.steps", "2")
        expect(losses[0]["loss_hex"] == losses[1]["loss_hex"],
               "a step begins with what the one before has left")
        found.append((losses, artifact.tensors(".grad")))
    worst = compare("gradients", found[1], found[0])
    print(f"gradients: worst relative error {worst:.1e}")


# Mode, buckets and overlap, gathers; the first of a form of reduction is the
# reference of the others.
RUNS = {"every": [("hybrid_shard", "block", "repeat"),
                  ("fully_shard", "block", "repeat"),
                  ("replicate", "block", "repeat"),
                  ("fully_shard", "none", "repeat"),
                  ("fully_shard", "block", "keep"),
                  ("hybrid_shard", "none", "keep")],
        "once": [("hybrid_shard", "block", "repeat"),
                 ("replicate", "block", "repeat"),
                 ("fully_shard", "block", "keep")]}
RUNS["once, in products"] = RUNS["once"]


def check_bits(work, text):
    """Modes, plans and gathers give the same bits for one number of
    microbatches and one form of sums; the forms agree."""
    forms = []
    for form, runs in RUNS.items():
        expected = None
        reduce, _, products = form.partition(", ")
        for mode, plan, gathers in runs:
            name = f"{form}-{mode}-{plan}-{gathers}"
            artifact = compiled(
                work, name, 4, 2, compile__mode=mode,
                parallelism__data_parallel_replicate_degree=2,
                compile__bucket=plan, compile__overlap=plan,
                compile__fuse="chains" if plan == "block" else "none",
                compile__accumulate_gathers=gathers,
                compile__accumulate_reduce=reduce,
                compile__accumulate_products="add" if products else "round",
                # More to tell apart: gradients are clipped.
                training__max_norm=0.1)
            keeps = artifact.manifest["steps"]["train"][0]["program"] == "gather"
            expect(keeps == (gathers == "keep"), f"{name}: the step")
            lines = artifact.train(text)
            bits = ([(line["loss_hex"], line["grad_norm_hex"]) for line in lines],
                    artifact.tensors("", ".exp_avg_sq"))
            if not expected:
                expected = bits
                forms.append((lines, artifact.tensors()))
            expect(bits == expected, f"{name}: other bits")
        source = commands.run("fsdp-compile", *words({
            **SETTINGS, "training.local_batch_size": 2, "compile.accumulate_reduce": reduce,
            "compile.accumulate_products": "add" if products else "round"}),
            "--ranks", "4", "--emit=cpp")
        expect(("gemmAdd(" in source) == bool(products), f"{form}: what adds")
    worst = max(compare(form, other, forms[0])
                for form, other in zip([*RUNS][1:], forms[1:], strict=True))
    print(f"modes, plans and gathers: the same bits; other forms of sums: worst "
          f"relative error {worst:.1e}")


def check_own_dump(work, text):
    """A dump has the batch of the whole step and can be trained from."""
    ragged = f"{work}/batch.safetensors"
    path = f"{work}/1-ranks-4"
    batch = read_safetensors(ragged)
    for load in (ragged, f"{path}.safetensors"):
        commands.run("fsdp-run", path, *words({**SETTINGS,
                      "training.local_batch_size": GLOBAL // 4}), "-n", "1",
                     "--training.dataset_path", text, "--load", load,
                     "--job.dump_folder", f"{path}.run",
                     "--training.steps", "1", "--dump", f"{path}.safetensors")
        dump = read_safetensors(f"{path}.rank0.safetensors")
        expect(all(dump[name] == batch[name] for name in batch),
               "a dump has another batch than the step")


def check_one_program(work):
    """One program of a step, by hand."""
    said = commands.run("fsdp-run", f"{work}/1-ranks-4", "--program",
                        "accumulate")
    expect("zeros for 'tokens', 'targets', 'label_count'" in said, said)
    said = commands.run("fsdp-run", f"{work}/1-ranks-4", "--program", "update")
    expect("loss: f32: 0" in said and "grad_norm: f32: 0" in said, said)


def main(work):
    os.makedirs(work, exist_ok=True)
    text = f"{work}/text"
    with open(text, "w") as file:
        file.write(" ".join(map(str, range(2000))))
    check_agreement(work, text)
    check_gradients(work, text)
    check_bits(work, text)
    check_own_dump(work, text)
    check_one_program(work)
    print("microbatches add up")


if __name__ == "__main__":
    main(*sys.argv[1:])
