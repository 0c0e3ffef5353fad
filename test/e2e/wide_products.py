"""compile.wide_products: one product for the queries, keys and values of a layer, and
one for both of its gated feed-forward. Modes and plans train to the same bits, and to
the losses without it but for rounding.

usage: wide_products.py WORKDIR"""
import os
import sys

from support import runs
from support.commands import expect

STEPS = 8
# The setting of a mesh, then how runs on it differ. Weights that a rank stores
# whole lie side by side, others are gathered there; parts of 45 rows end where no
# operand of a library may begin, and are copied.
CASES = {
    "two": ((1, 2, 1), {"training__mixed_precision_param": "float32"}, [
        {"compile__mode": "replicate"},
        {},
        {"parallelism__fsdp_reshard_after_forward": "never"},
        {"compile__recompute": "full", "compile__fuse": "none"}]),
    "three": ((1, 3, 1), {"training__mixed_precision_param": "bfloat16", "model__ffn_dim": 45,
                          "training__seq_len": 31, "training__local_batch_size": 1}, [
        {"compile__mode": "replicate"},
        {"compile__compute_copy": "true", "compile__mode": "replicate"},
        {"compile__compute_copy": "true", "compile__recompute": "every-2"},
        {"compile__bucket": "none", "compile__overlap": "none"}]),
    "hybrid": ((2, 2, 1), {"training__mixed_precision_param": "bfloat16",
                           "training__local_batch_size": 2, "training__global_batch_size": 16}, [
        {},
        {"compile__accumulate_gathers": "keep"},
        {"compile__mode": "fully_shard", "compile__recompute": "selective"}]),
    "tensor": ((1, 2, 2), {"training__mixed_precision_param": "float32"}, [
        {},
        {"compile__recompute": "full"}]),
}
# Sums of other orders in f32, and values of the gradient of an input that are rounded
# once instead of two or three times in bf16; over eight steps of a small model.
TOLERANCES = {"float32": 1e-5, "bfloat16": 1e-2}


def trained(path, mesh, **settings):
    replicate, shard, tensor = mesh
    artifact = runs.compile_small(
        path, replicate * shard * tensor,
        parallelism__data_parallel_replicate_degree=replicate,
        parallelism__tensor_parallel_degree=tensor, model__n_layers=2, **settings)
    artifact.run(f"{os.path.dirname(path)}/text", f"{path}.run", "--dump", f"{path}.st",
                 training__steps=STEPS, checkpoint__enable="false")
    return artifact


def check(work, name):
    mesh, setting, variants = CASES[name]
    plain = trained(f"{work}/{name}", mesh, **setting)
    wide = [trained(f"{work}/{name}-wide-{i}", mesh, compile__wide_products="true",
                    **{**setting, **variant}) for i, variant in enumerate(variants)]
    curves = [runs.curve(f"{artifact.path}.run") for artifact in wide]
    states = [artifact.tensors(f"{artifact.path}.st") for artifact in wide]
    for i, variant in enumerate(variants):
        expect(len(curves[i]) == STEPS and curves[i] == curves[0], f"{name}: {variant}: losses")
        for tensor, values in states[0].items():
            expect(states[i][tensor] == values, f"{name}: {variant}: {tensor}")
    losses = [[line["loss"] for line in runs.metrics(f"{artifact.path}.run")]
              for artifact in (plain, wide[0])]
    worst = max(abs(a - b) / abs(a) for a, b in zip(*losses))
    expect(worst < TOLERANCES[setting["training__mixed_precision_param"]],
           f"{name}: losses differ by {worst}")
    expect(plain.tensors(f"{plain.path}.st") != states[0], f"{name}: nothing has changed")


def main(work):
    runs.start_in(work)
    for name in CASES:
        check(work, name)
    print(f"{len(CASES)} meshes train with the same bits under",
          sum(len(variants) for _, _, variants in CASES.values()), "modes and plans")


if __name__ == "__main__":
    main(sys.argv[1])
