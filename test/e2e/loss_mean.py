"""training.loss_mean = "rank": on ragged labels the loss and the gradients of a
step are the means of those that single ranks find for their parts of the batch.

usage: loss_mean.py WORKDIR"""
import sys

from accumulate import GLOBAL, compare, compiled, inputs_in, write_ragged

from support.commands import expect

PARTS = 2


def step(artifact, text, batch):
    """(lines, gradients) of one step without an optimizer."""
    lines = artifact.train(text, "--load", batch, "--training.steps", "1")
    return lines, artifact.tensors(".grad")


def mean_of_parts(work, text):
    """What single ranks find for the parts, averaged."""
    found = []
    for part in range(PARTS):
        batch = f"{work}/part-{part}.safetensors"
        write_ragged(batch, part, PARTS)
        found.append(step(compiled(
            work, f"part-{part}", 1, 1, optimizer__name="none",
            training__global_batch_size=GLOBAL // PARTS,
            training__local_batch_size=GLOBAL // PARTS), text, batch))
    losses = [lines[0]["loss"] for lines, _ in found]
    expect(abs(losses[0] / losses[1] - 1) > 1e-4,
           f"the parts have the same loss: {losses}")
    gradients = {name: [sum(values) / PARTS for values in
                        zip(*(tensors[name] for _, tensors in found))]
                 for name in found[0][1]}
    return [{"loss": sum(losses) / PARTS}], gradients


def main(work):
    text, batch = inputs_in(work)
    expected = mean_of_parts(work, text)
    base = {"optimizer__name": "none",
            "training__local_batch_size": GLOBAL // PARTS}
    losses = {}
    for name, mean, ranks, own in (
            ("fully_shard", "rank", 2, {}),
            ("replicate", "rank", 2, {"compile__mode": "replicate"}),
            ("tensor", "rank", 4, {"parallelism__tensor_parallel_degree": 2}),
            ("global", "global", 2, {})):
        artifact = compiled(work, name, ranks, 1,
                            training__loss_mean=mean, **base, **own)
        actual = step(artifact, text, batch)
        losses[mean] = actual[0][0]["loss"]
        if mean == "rank":
            worst = compare(name, actual, expected)
            print(f"{name}: worst relative error {worst:.1e}")
    # Else the batch would not tell one from the other.
    apart = abs(losses["rank"] / losses["global"] - 1)
    expect(apart > 1e-4, f"both means are {losses}")
    print("the mean of ranks is trained on")


if __name__ == "__main__":
    main(sys.argv[1])
