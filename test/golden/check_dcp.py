"""check_dcp.py FOLDER: loads what `fsdp-checkpoint convert test/golden/dcp --to dcp
FOLDER` wrote with PyTorch, sharded over 2 ranks in other ways than it was saved,
and compares every bit with what torch_dcp.py saved.

Run it in a virtual environment with PyTorch (see README.md)."""
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as multiprocessing
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import torch_dcp
from torch_dcp import RANKS, STEP, State


def placements(tensor):
    return [Replicate(), *(Shard(d) for d in range(tensor.dim()))]


def empty_state(mesh, placement_index):
    """What torchtitan would load into, zeros in another placement."""
    model, optimizer = {}, {}
    for name, tensor in torch_dcp.tensors().items():
        options = placements(tensor)
        placement = options[placement_index % len(options)]
        zeros = distribute_tensor(torch.zeros_like(tensor), mesh, [placement])
        if ".exp_avg" in name:
            optimizer[f"state.{name}"] = zeros
        else:
            model[name] = zeros
    for name in torch_dcp.TRAINED:
        optimizer[f"state.{name}.step"] = torch.tensor(0.0)
    return {**model, "optimizer": State(optimizer),
            "lr_scheduler": State({"last_epoch": 0}),
            "train_state": State({"step": 0, "ntokens_seen": 0})}


def check(rank, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29538", RANK=str(rank),
                      WORLD_SIZE=str(RANKS))
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (RANKS,))
    for index in range(3):
        loaded = empty_state(mesh, index)
        dcp.load(loaded, checkpoint_id=folder)
        optimizer = loaded["optimizer"].state
        for name, tensor in torch_dcp.tensors().items():
            found = optimizer[f"state.{name}"] if ".exp_avg" in name else loaded[name]
            found = found.full_tensor()
            assert found.dtype == tensor.dtype, name
            assert torch.equal(found, tensor), name
        for name in torch_dcp.TRAINED:
            assert optimizer[f"state.{name}.step"].item() == STEP, name
        assert loaded["train_state"].state["step"] == STEP
        assert loaded["lr_scheduler"].state["last_epoch"] == STEP
    dist.destroy_process_group()


def main():
    folder = os.path.abspath(sys.argv[1])
    multiprocessing.spawn(check, args=(folder,), nprocs=RANKS)
    print(f"PyTorch {torch.__version__}: {len(torch_dcp.tensors())} tensors equal to "
          "the bit, in 3 placements on 2 ranks")


if __name__ == "__main__":
    main()
