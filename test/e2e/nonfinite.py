"""Steps that are not finite: the first value that is not is named with its
operation, call, rank and place. Values are planted by parameters and tokens that
make one element of one operation overflow.

usage: nonfinite.py WORKDIR
       nonfinite.py ARTIFACT TEXT FILE   writes a text and parameters for others"""
import array
import json
import os
import random
import re
import shutil
import sys

from support import commands, runs
from support.commands import expect
from support.tensors import write_safetensors

# A byte that the text has seldom, and what only its embedding has.
RARE, PLACE, COLUMN = 200, 7, 5
DIM, HIDDEN, LAYERS, SEQUENCE, VOCABULARY = 16, 24, 2, 16, 256
SETTINGS = {
    "model.dim": DIM, "model.n_layers": LAYERS, "model.n_heads": 2,
    "model.n_kv_heads": 1, "model.ffn_dim": HIDDEN,
    "model.vocab_size": VOCABULARY, "training.seq_len": SEQUENCE,
    "training.steps": 3, "lr_scheduler.warmup_steps": 0, "compile.threads": 1,
    "validation.enable": "false", "sample.length": 0, "metrics.peak_tflops": 1}


def shapes_of(artifact):
    """The full tensors of an artifact."""
    with open(f"{artifact}/manifest.json") as file:
        return {entry["name"]: entry["full"] for entry in json.load(file)["ranges"]}


def in_f32(shapes, tensors):
    """{name: values} as what a file has."""
    return {name: ("F32", shapes[name], array.array("f", values).tobytes())
            for name, values in tensors.items()}


def write_text(path):
    """Few steps have the rare byte, and most have not."""
    generator = random.Random(6)
    with open(path, "wb") as file:
        file.write(bytes(RARE if generator.randrange(150) == 0 else
                         generator.randrange(100) for _ in range(20000)))


class Artifact(runs.Artifact):
    def run(self, *options):
        """(status, what is said) of a training."""
        self.dump = f"{self.path}-dump"
        shutil.rmtree(f"{self.path}.run", ignore_errors=True)
        status, said, errors = commands.finished(self.command(
            "--dump", self.dump, *options, training__dataset_path=self.text,
            job__dump_folder=f"{self.path}.run"))
        return status, said + errors

    def left(self):
        """Losses and all bytes that a run leaves."""
        lines = [(line["step"], line["loss_hex"], line["grad_norm_hex"])
                 for line in runs.metrics(f"{self.path}.run")]
        return lines, [open(f"{self.dump}.rank{rank}", "rb").read()
                       for rank in range(self.ranks)]

    def file(self, name, parameters, places=None):
        """Files to load: full parameters and, where `places` has the rows and
        columns of rare tokens by rank, a batch that has them there alone."""
        generator = random.Random(5)
        values = in_f32(shapes_of(self.path), parameters)
        rows = self.rows
        for rank in range(self.ranks):
            tokens = [[generator.randrange(100) for _ in range(SEQUENCE + 1)]
                      for _ in range(rows)]
            for row, column in (places or {}).get(rank, []):
                tokens[row][column] = RARE
            batch = {name: ("I32", [rows, SEQUENCE], array.array(
                "i", [t for row in tokens for t in row[first:first + SEQUENCE]]
                ).tobytes()) for first, name in enumerate(("tokens", "targets"))}
            write_safetensors(
                f"{self.path}-{name}.rank{rank}",
                {**values, **(batch if places else {})})
        return f"{self.path}-{name}"


def compiled(work, name, ranks, rows, **own):
    """`rows` are those of a rank's batch."""
    artifact = Artifact.compiled(f"{work}/{name}", ranks, {
        **SETTINGS, **commands.dotted(own)})
    artifact.rows, artifact.text = rows, f"{work}/text"
    return artifact


def filled(rows, columns, value):
    """A matrix of value(row, column)."""
    return [value(row, column) for row in range(rows) for column in range(columns)]


def tensors_of_rare_token(shapes):
    """In the first block's feed forward, silu(w1 x) * (w3 x) overflows in one
    column, where the token is the rare one: only its embedding has anything in
    the place that is multiplied, and attention adds nothing."""
    generator = random.Random(3)

    def embedding(token, place):
        if place == PLACE:
            return 1.0 if token == RARE else 0.0
        return generator.uniform(-1, 1)

    def large(row, column):
        return 1e25 if (row, column) == (COLUMN, PLACE) else 0.0

    values = {"tok_embeddings.weight": embedding,
              "layers.0.attention.wo.weight": lambda *_: 0.0,
              "layers.0.feed_forward.w1.weight": large,
              "layers.0.feed_forward.w3.weight": large}
    return {name: filled(*shapes[name], value) for name, value in values.items()}


def tensors_of_backward():
    """The last block's hidden values are tiny and are multiplied by huge
    weights: forward all stays finite, backward the huge ones come first."""
    generator = random.Random(4)
    return {"layers.1.feed_forward.w3.weight":
            filled(HIDDEN, DIM, lambda *_: generator.choice((-1e-36, 1e-36))),
            "layers.1.feed_forward.w2.weight":
            filled(DIM, HIDDEN, lambda *_: generator.choice((-3e38, 3e38))),
            "norm.weight": [1e7] * DIM}


def expect_first(said, pattern):
    """The text of the first value."""
    found = re.search(r"the first value that is not finite: (.*)", said)
    expect(found and re.match(pattern, found.group(1)),
           f"not '{pattern}':\n{said}")


def check(artifact):
    """What is finite is found so, and looking at it changes nothing."""
    status, said = artifact.run()
    expect(status == 0, said)
    expected = artifact.left()
    status, said = artifact.run("--check-values")
    expect(status == 0 and "values: every value of every step" in said, said)
    expect(artifact.left() == expected, f"{artifact.path}: other bits")


def plain(work):
    """The rare token in two places of the second rank."""
    artifact = compiled(work, "plain", 2, rows=3, training__local_batch_size=3,
                        training__mixed_precision_param="bfloat16",
                        compile__bucket="block", compile__overlap="block")
    check(artifact)
    rare = tensors_of_rare_token(shapes_of(artifact.path))
    file = artifact.file("rare", rare, {1: [(1, 4), (2, 0)]})
    name = (r"fwd layers\.0\.feed_forward mul \(call \d+ of program train\), "
            r"bf16 3x16x24: ")
    where = name + r"2 of 1,152 elements on rank 1, the first at \[1, 4, 5\]: inf"
    for options in [], ["--check-values"]:
        status, said = artifact.run("--load", file, *options)
        expect(status != 0 and "step 1: the " in said, said)
        expect_first(said, where)
    # Both ranks have some in the same call: the first one speaks.
    file = artifact.file("both", rare, {0: [(2, 15)], 1: [(1, 4)]})
    expect_first(artifact.run("--load", file)[1],
                 name + r"1 of 1,152 elements on rank 0, the first at \[2, 15, 5\]: inf")
    return artifact, rare


def skipped(artifact, rare):
    """A skipped step is run again once, which changes nothing."""
    file = artifact.file("skip", rare)
    settings = ["--load", file, "--training.on_nonfinite=skip",
                "--training.max_skipped_steps=50", "--training.steps=8"]
    status, said = artifact.run(*settings)
    expect(status == 0, said)
    warnings = [line for line in said.splitlines() if "it was skipped" in line]
    named = [line for line in warnings if "feed_forward mul" in line]
    expect(2 <= len(warnings) < 8 and named == warnings[:1], said)
    expected = artifact.left()
    os.rename(f"{artifact.path}/values.json", f"{artifact.path}/kept")
    status, said = artifact.run(*settings)
    expect(status == 0 and said.count("it was skipped") == len(warnings) and
           "so far): all parameters are finite, the step's own values are not "
           f"(the artifact has no {artifact.path}/values.json" in said, said)
    expect(artifact.left() == expected, "the step run again leaves a trace")
    status, said = artifact.run("--check-values")
    expect(status != 0 and "values.json, by which values are named; compile it "
           "again" in said, said)
    os.rename(f"{artifact.path}/kept", f"{artifact.path}/values.json")


def damaged(artifact):
    """A table that is not the artifact's is an error, and no stray read."""
    path = f"{artifact.path}/values.json"
    with open(path) as file:
        good = json.load(file)

    def refused(text, change):
        table = json.loads(json.dumps(good))
        change(table)
        with open(path, "w") as file:
            json.dump(table, file)
        status, said = artifact.run("--check-values")
        expect(status != 0 and text in said, f"not '{text}':\n{said}")

    def replaced(place, number):
        return lambda table: table["programs"][0]["values"][-1].__setitem__(
            place, number)

    refused("is of another artifact", lambda t: t.update(manifest="0"))
    refused("call 0 is not one of", replaced(0, 0))
    refused("there is no name", replaced(1, len(good["names"])))
    refused("there is no type", replaced(2, len(good["types"])))
    refused("ends outside of the arena",
            replaced(3, artifact.manifest["arena"]["bytes"]))
    refused("expected an integer", replaced(3, -1))
    refused(f"has {good['programs'][0]['calls']} calls, but",
            lambda t: t["programs"][0].update(calls=1000000))


def accumulated(work):
    """Microbatches, of which the second one of the first rank has it."""
    artifact = compiled(work, "accumulated", 2, rows=6,
                        training__local_batch_size=2,
                        training__global_batch_size=12,
                        training__mixed_precision_param="float32",
                        compile__accumulate_gathers="keep",
                        compile__accumulate_reduce="once",
                        compile__loss_chunks=4)
    check(artifact)
    file = artifact.file("rare", tensors_of_rare_token(shapes_of(artifact.path)),
                         {0: [(3, 2)]})
    expect_first(artifact.run("--load", file)[1],
                 r"fwd layers\.0\.feed_forward mul \(call \d+ of program accumulate on "
                 r"microbatch 1\), f32 2x16x24: 1 of 768 elements on rank 0, the first "
                 r"at \[1, 2, 5\]: inf")
    return artifact


def backward(work):
    """One rank, and its parameters."""
    artifact = compiled(work, "backward", 1, rows=2,
                        training__local_batch_size=2,
                        training__mixed_precision_param="bfloat16")
    file = artifact.file("huge", tensors_of_backward(), {0: [(0, 0)]})
    expect_first(artifact.run("--load", file)[1],
                 r"bwd layers\.1\.feed_forward\.w2 dx \(call \d+ of program train\), "
                 r"bf16 2x16x24: \d+ of 768 elements on rank 0, the first at "
                 r"\[\d+, \d+, \d+\]: -?inf")
    file = artifact.file("bad", {"norm.weight": [1.0] * 9 + [float("nan")] * 7})
    for options in [], ["--check-values"]:
        said = artifact.run("--load", file, *options)[1]
        expect("the parameter 'norm.weight' is not finite: element 9 of rank "
               "0's shard" in said, said)


def main(work):
    os.makedirs(work, exist_ok=True)
    write_text(f"{work}/text")
    artifact, rare = plain(work)
    skipped(artifact, rare)
    damaged(artifact)
    skipped(accumulated(work), rare)
    backward(work)
    check(compiled(work, "tensor", 4, rows=1, training__local_batch_size=1,
                   training__mixed_precision_param="float32",
                   parallelism__tensor_parallel_degree=2))
    print("the first values that are not finite are named")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(sys.argv[1])
    else:  # ARTIFACT TEXT FILE: what others train with
        write_text(sys.argv[2])
        shapes = shapes_of(sys.argv[1])
        write_safetensors(sys.argv[3],
                          in_f32(shapes, tensors_of_rare_token(shapes)))
