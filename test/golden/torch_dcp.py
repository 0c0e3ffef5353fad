"""Writes dcp/: a checkpoint of torch.distributed.checkpoint, laid out as torchtitan
lays out its own, by 2 ranks over gloo; and dcp.json: what must be read from it.

Run it in a virtual environment with PyTorch (see README.md)."""
import json
import os
import shutil
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as multiprocessing
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "dcp")
RANKS = 2
STEP = 7

# Uneven rows, rows that one rank has none of, columns, one rank's and all
# ranks', both types.
PARAMETERS = {
    "tok_embeddings.weight": ((5, 4), torch.float32, Shard(0)),
    "layers.0.attention.wq.weight": ((6, 3), torch.bfloat16, Shard(0)),
    "layers.0.attention.wo.weight": ((2, 5), torch.float32, Shard(1)),
    "norm.weight": ((1,), torch.float32, Shard(0)),
    "output.weight": ((3, 2), torch.bfloat16, Replicate()),
}
TRAINED = ("tok_embeddings.weight", "layers.0.attention.wq.weight")


def values(shape, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype)


def tensors():
    """Every tensor that is to be found, by our names."""
    result = {}
    for seed, (name, (shape, dtype, _)) in enumerate(PARAMETERS.items()):
        result[name] = values(shape, dtype, seed)
        if name in TRAINED:
            result[name + ".exp_avg"] = values(shape, torch.float32, 100 + seed)
            result[name + ".exp_avg_sq"] = values(shape, torch.float32, 200 + seed).square()
    return result


class State:
    """What torchtitan calls a Stateful: asked for its dictionary when saved."""

    def __init__(self, state):
        self.state = state

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = state


def state_dict(mesh):
    full = tensors()

    def placed(key, name):
        return distribute_tensor(full[key], mesh, [PARAMETERS[name][2]])

    optimizer = {}
    for name in TRAINED:
        for moment in ("exp_avg", "exp_avg_sq"):
            optimizer[f"state.{name}.{moment}"] = placed(f"{name}.{moment}", name)
        optimizer[f"state.{name}.step"] = torch.tensor(float(STEP))
        optimizer[f"param_groups.{name}.lr"] = 8e-4
        optimizer[f"param_groups.{name}.betas"] = (0.9, 0.95)
    return {
        **{name: placed(name, name) for name in PARAMETERS},
        "optimizer": State(optimizer),
        "lr_scheduler": State({"last_epoch": STEP}),
        "train_state": State({"step": STEP, "ntokens_seen": 7168}),
        "dataloader": State({f"dp_rank_{dist.get_rank()}": {"index": 3}}),
    }


def save(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29537", RANK=str(rank),
                      WORLD_SIZE=str(RANKS))
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (RANKS,))
    dcp.save(state_dict(mesh), checkpoint_id="dcp")
    dist.destroy_process_group()


def main():
    os.chdir(HERE)  # the folder's name stands in the checkpoint
    shutil.rmtree(FOLDER, ignore_errors=True)
    multiprocessing.spawn(save, nprocs=RANKS)
    types = {torch.float32: "F32", torch.bfloat16: "BF16"}
    lines = [
        f'  {json.dumps(name)}: ' + json.dumps({
            "dtype": types[tensor.dtype], "shape": list(tensor.shape),
            # bf16 widens to f32 and f32 to a double without loss.
            "values": tensor.double().flatten().tolist()})
        for name, tensor in sorted(tensors().items())
    ]
    with open(os.path.join(HERE, "dcp.json"), "w") as file:
        file.write("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"PyTorch {torch.__version__}, {len(lines)} tensors in {FOLDER}", file=sys.stderr)


if __name__ == "__main__":
    main()
