"""check_dcp.py FOLDER [STEP]: loads with PyTorch what `fsdp-checkpoint convert` wrote
into FOLDER, sharded over 2 ranks in other ways than it was saved, and compares every
bit with what was converted: the directory of a step of fsdp-run, or test/golden/dcp.

Run it in a virtual environment with PyTorch (see README.md)."""
import json
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as multiprocessing
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import torch_dcp
from torch_dcp import RANKS, State


def placements(tensor):
    return [Replicate(), *(Shard(d) for d in range(tensor.dim()))]


def tensors_of_step(folder):
    """The tensors of a step of fsdp-run, put together from their boxes."""
    from safetensors.torch import load_file

    with open(os.path.join(folder, "index.json")) as file:
        index = json.load(file)
    files = {name: load_file(os.path.join(folder, name)) for name in index["files"]}
    result = {}
    for name, entry in index["tensors"].items():
        for chunk in entry["chunks"]:
            box = files[chunk["file"]][chunk.get("name", name)]
            full = result.setdefault(name, torch.empty(entry["shape"], dtype=box.dtype))
            place = tuple(slice(o, o + s) for o, s in zip(chunk["offsets"], box.shape))
            full[place] = box
    return index["state"]["step"], result


def expected(step_folder):
    if step_folder is None:
        return torch_dcp.STEP, torch_dcp.tensors()
    return tensors_of_step(step_folder)


def empty_state(mesh, tensors, placement_index):
    """What torchtitan would load into, zeros in another placement."""
    model, optimizer = {}, {}
    for name, tensor in tensors.items():
        options = placements(tensor)
        placement = options[placement_index % len(options)]
        zeros = distribute_tensor(torch.zeros_like(tensor), mesh, [placement])
        if ".exp_avg" in name:
            optimizer[f"state.{name}"] = zeros
        else:
            model[name] = zeros
        if name.endswith(".exp_avg"):
            optimizer[f"state.{name[:-len('.exp_avg')]}.step"] = torch.tensor(0.0)
    return {**model, "optimizer": State(optimizer),
            "lr_scheduler": State({"last_epoch": 0}),
            "train_state": State({"step": 0, "ntokens_seen": 0})}


def check(rank, folder, step_folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29538", RANK=str(rank),
                      WORLD_SIZE=str(RANKS))
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (RANKS,))
    step, tensors = expected(step_folder)
    for index in range(3):
        loaded = empty_state(mesh, tensors, index)
        dcp.load(loaded, checkpoint_id=folder)
        optimizer = loaded["optimizer"].state
        for name, tensor in tensors.items():
            found = optimizer[f"state.{name}"] if ".exp_avg" in name else loaded[name]
            found = found.full_tensor()
            assert found.dtype == tensor.dtype, name
            same = torch.equal(found.reshape(-1).view(torch.uint8),
                               tensor.reshape(-1).view(torch.uint8))
            assert same, name
        for name, found in optimizer.items():
            assert not name.endswith(".step") or found.item() == step, name
        assert loaded["train_state"].state["step"] == step
        assert loaded["lr_scheduler"].state["last_epoch"] == step
    dist.destroy_process_group()


def main():
    folder, *step = [os.path.abspath(path) for path in sys.argv[1:]]
    step_folder = step[0] if step else None
    multiprocessing.spawn(check, args=(folder, step_folder), nprocs=RANKS)
    tensors = expected(step_folder)[1].values()
    print(f"PyTorch {torch.__version__}: {len(tensors)} tensors of "
          f"{sum(t.nbytes for t in tensors)} bytes equal to the bit, in 3 placements on "
          f"{RANKS} ranks")


if __name__ == "__main__":
    main()
