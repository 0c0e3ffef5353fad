"""compile.loss_chunks: a step with its logits in chunks of rows gives the loss of
one with whole logits, and all gradients but the projection's, to the bit; that
one is the same sum in another order.

usage: loss_chunks.py WORKDIR"""
import sys

from support.commands import expect
from support.tensors import distance
from accumulate import GLOBAL, compiled, inputs_in

CHUNKS = 4
# Relative, in the norm of the tensor: sums in f32, which bf16 rounds once. Then
# few elements differ, by one of 8 bits, or none on a CPU with AMX; each chunk
# rounded would give 1e-3.
TOLERANCE = {"float32": 1e-6, "bfloat16": 1e-4}
CASES = {
    "tensor": (4, 1, {"parallelism__tensor_parallel_degree": 2}),
    "bf16": (4, 1, {"parallelism__data_parallel_replicate_degree": 2,
                    "training__mixed_precision_param": "bfloat16",
                    "training__loss_mean": "rank"}),
    "tied": (2, 2, {"model__tied": "true"})}


def step(work, text, batch, name, ranks, microbatches, own):
    """(loss, gradients) of one step without an optimizer."""
    artifact = compiled(work, name, ranks, microbatches,
                        optimizer__name="none",
                        training__local_batch_size=GLOBAL // (
                            microbatches * ranks // own.get(
                                "parallelism__tensor_parallel_degree", 1)),
                        **own)
    lines = artifact.train(text, "--load", batch, "--training.steps", "1")
    return lines[0]["loss_hex"], artifact.tensors(".grad")


def check(work, text, batch, name, ranks, microbatches, own):
    whole = step(work, text, batch, name, ranks, microbatches, own)
    cut = step(work, text, batch, f"{name}-cut", ranks, microbatches,
               {**own, "compile__loss_chunks": CHUNKS})
    expect(cut[0] == whole[0], f"{name}: the loss is {cut[0]}, not {whole[0]}")
    table = "tok_embeddings.weight.grad" if "model__tied" in own else "output.weight.grad"
    for tensor, values in whole[1].items():
        if tensor != table:
            expect(cut[1][tensor] == values, f"{name}: {tensor} has other bits")
    precision = own.get("training__mixed_precision_param", "float32")
    error = distance(cut[1][table], whole[1][table])
    expect(error <= TOLERANCE[precision] and (error > 0 or precision == "bfloat16"),
           f"{name}: {table} has a relative error of {error:.1e}")
    print(f"{name}: {table} differs by {error:.1e}")


def main(work):
    text, batch = inputs_in(work)
    for name, (ranks, microbatches, own) in CASES.items():
        check(work, text, batch, name, ranks, microbatches, own)
    print("chunks keep every bit but the projection's")


if __name__ == "__main__":
    main(sys.argv[1])
