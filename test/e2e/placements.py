"""Parameters at several placements on 2 x 2 ranks: their first values, dumped and
joined, are those of one rank; loaded whole, every rank takes its box again. A
shard_of gives the part of the rank's coordinates.

usage: placements.py WORKDIR"""
import array
import itertools
import math
import sys

from support import cache, commands
from support.tensors import floats, read_safetensors, write_int32, write_safetensors

SHAPES = {"both": [6, 10], "rows": [10, 2], "columns": [3, 7], "whole": [5]}
PLACEMENTS = {"both": '{"tp"}, {| "dp"}', "rows": '{"tp" | "dp"}, {}',
              "columns": '{}, {| "dp", "tp"}', "whole": "{}"}
# Of every dimension: (how many parts, which one a rank at (dp, tp) has) for
# compute axes and then for storage axes.
DP, TP, NONE = (2, lambda dp, tp: dp), (2, lambda dp, tp: tp), (1, lambda *_: 0)
BOTH = (4, lambda dp, tp: 2 * dp + tp)
CUTS = {"both": [(TP, NONE), (NONE, DP)], "rows": [(TP, DP), (NONE, NONE)],
        "columns": [(NONE, NONE), (NONE, BOTH)], "whole": [(NONE, NONE)]}
SEED = "--training.seed"


def parameter(name, placement):
    shape = "x".join(map(str, SHAPES[name]))
    return (f"nn.parameter @{name} : tensor<{shape}xf32> init "
            f"#nn.normal<std = 1.0, cut = 3.0> {placement}\n")


PLACED = 'fsdp.mesh @mesh ["dp" = 2, "tp" = 2]\n' + "".join(
    parameter(name, f"{{fsdp.placement = #fsdp.placement<[{placement}]>}}")
    for name, placement in PLACEMENTS.items()) + """
func.func @part(%x: tensor<7x3xi32> {nn.name = "x", fsdp.placement = #fsdp.placement<[{}, {}]>})
    -> (tensor<2x3xi32> {nn.name = "y"}) attributes {fsdp.local} {
  %y = fsdp.shard_of %x on @mesh["tp", "dp"] dim 0 : tensor<7x3xi32> -> tensor<2x3xi32>
  return %y : tensor<2x3xi32>
}
"""
ALONE = "".join(parameter(name, "") for name in SHAPES) + """
func.func @part(%x: tensor<7x3xi32> {nn.name = "x"}) -> (tensor<7x3xi32> {nn.name = "y"}) {
  return %x : tensor<7x3xi32>
}
"""


def compile_text(work, name, text):
    with open(f"{work}/{name}.mlir", "w") as file:
        file.write(text)
    cache.compile(["fsdp-compile", f"{work}/{name}.mlir", "--programs-only"],
                  f"{work}/{name}")


def run(work, name, ranks, file, seed, out):
    """What every rank holds after the program."""
    commands.run("fsdp-run", f"{work}/{name}", "-n", str(ranks), "--program",
                 "part", "--load", file, SEED, str(seed), "--dump",
                 f"{work}/{out}.st")
    return [read_safetensors(f"{work}/{out}.rank{rank}.st")
            for rank in range(ranks)]


def indices(size, cut, rank):
    """The indices of a dimension that a rank holds, and how many it stores."""
    (computed, compute), (stored, storage) = cut
    part = size // computed
    count = -(-part // stored)
    begin = min(storage(rank // 2, rank % 2) * count, part)
    first = compute(rank // 2, rank % 2) * part
    return range(first + begin, first + min(begin + count, part)), count


def expected(name, rank, whole):
    """The rank's box of the values of the whole tensor, padded with zeros."""
    dims = [indices(size, cut, rank)
            for size, cut in zip(SHAPES[name], CUTS[name])]
    shape = [count for _, count in dims]
    values = array.array("f", [0] * math.prod(shape))
    for box in itertools.product(*(held for held, _ in dims)):
        at = there = 0
        for index, (held, count), size in zip(box, dims, SHAPES[name]):
            at = at * count + index - held.start
            there = there * size + index
        values[at] = whole[there]
    return shape, values.tobytes()


def main(work):
    compile_text(work, "placed", PLACED)
    compile_text(work, "alone", ALONE)
    rows = list(range(1, 22))
    batch = f"{work}/x.st"
    write_int32(batch, {"x": ([7, 3], rows)})
    (alone,) = run(work, "alone", 1, batch, 42, "alone")
    placed = run(work, "placed", 4, batch, 42, "placed")
    # Other first values, which the loaded ones replace.
    state = {name: ("F32", *alone[name]) for name in SHAPES}
    state["x"] = ("I32", [7, 3], array.array("i", rows).tobytes())
    write_safetensors(f"{work}/state.st", state)
    loaded = run(work, "placed", 4, f"{work}/state.st", 7, "loaded")
    boxes = 0
    for rank in range(4):
        for name in SHAPES:
            box = expected(name, rank, floats(alone[name][1]))
            for what, ranges in ("placed", placed), ("loaded", loaded):
                if (list(ranges[rank][name][0]), ranges[rank][name][1]) != box:
                    sys.exit(f"rank {rank}: {name} is not its box when {what}")
                boxes += 1
        place = 2 * (rank % 2) + rank // 2
        part = (rows + [0] * 3)[6 * place:6 * place + 6]
        if placed[rank]["y"][1] != array.array("i", part).tobytes():
            sys.exit(f"rank {rank}: shard_of did not give part {place}")
    print(f"{boxes} boxes and 4 parts are right")


main(sys.argv[1])
