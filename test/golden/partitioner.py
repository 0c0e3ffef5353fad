"""What PyTorch's partitioner saves of a Llama block, at budgets of memory.

torchtitan compiles each block by itself and sets
`torch._functorch.config.activation_memory_budget` (`memory_budget` among its
modes of activation checkpointing). This traces a block of Llama 3 8B with one
sequence of 8192 tokens in bf16, as FSDP hands it its gathered weights, lets the
partitioner cut it at each budget, and writes what the backward pass would get:
`partitioner.json` has the sets as `save:OPS` of `compile.recompute`. Nothing is
computed.

Each op that our graph has is a module here, so a saved node names its op. What is
smaller than the op's result is left out: the rsqrt of a norm, which our kernels
recompute, and the sums of attention's rows, which ours saves with its result.
"""

import math
import operator

import golden_file
import torch
import torch.nn.functional as F
from torch import nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch import config, partitioners

aten = torch.ops.aten
TOKENS, DIM, HEADS, KEY_HEADS, FFN = 8192, 4096, 32, 8, 14336
HEAD = DIM // HEADS
BUDGETS = [0.1 * tenth for tenth in range(11)]


class Linear(nn.Linear):
    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs, bias=False)


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(DIM))

    def forward(self, x):
        return F.rms_norm(x, (DIM,), self.weight, 1e-5)


class Rotary(nn.Module):
    """torchtitan's: neighbours are a complex number, in f32."""

    def forward(self, x, cosine, sine):
        pairs = x.float().unflatten(-1, (-1, 2))
        real, imaginary = pairs[..., 0], pairs[..., 1]
        turned = torch.stack((real * cosine - imaginary * sine,
                              real * sine + imaginary * cosine), -1)
        return turned.flatten(-2).type_as(x)


class Attend(nn.Module):
    """The op of a GPU, by name: the partitioner does not count that of a CPU
    among what is expensive."""

    def forward(self, query, key, value):
        heads = [x.transpose(1, 2) for x in (query, key, value)]
        out = aten._scaled_dot_product_flash_attention.default(*heads, 0.0, True)[0]
        return out.transpose(1, 2)


class Silu(nn.Module):
    def forward(self, x):
        return F.silu(x)


class Mul(nn.Module):
    def forward(self, x, y):
        return x * y


class Add(nn.Module):
    def forward(self, x, y):
        return x + y


# Of each module that is an op, what compile.recompute calls it.
OPS = {
    "attention_norm": "layers.*.attention_norm::rms_norm",
    "wq": "layers.*.attention.wq::linear",
    "wk": "layers.*.attention.wk::linear",
    "wv": "layers.*.attention.wv::linear",
    "rotary_query": "layers.*.attention::rotary",
    "rotary_key": "layers.*.attention::rotary",
    "attend": "layers.*.attention::attention",
    "wo": "layers.*.attention.wo::linear",
    "add_attention": "layers.*::add",
    "ffn_norm": "layers.*.ffn_norm::rms_norm",
    "w1": "layers.*.feed_forward.w1::linear",
    "silu": "layers.*.feed_forward::silu",
    "w3": "layers.*.feed_forward.w3::linear",
    "mul": "layers.*.feed_forward::mul",
    "w2": "layers.*.feed_forward.w2::linear",
}


VIEWS = [aten.view.default, aten.transpose.int, aten.detach.default, aten._unsafe_view.default,
         operator.getitem]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.ffn_norm = Norm(), Norm()
        self.wq, self.wo = Linear(DIM, HEADS * HEAD), Linear(HEADS * HEAD, DIM)
        self.wk = Linear(DIM, KEY_HEADS * HEAD)
        self.wv = Linear(DIM, KEY_HEADS * HEAD)
        self.w1, self.w3, self.w2 = Linear(DIM, FFN), Linear(DIM, FFN), Linear(FFN, DIM)
        self.rotary_query, self.rotary_key = Rotary(), Rotary()
        self.attend, self.silu, self.mul = Attend(), Silu(), Mul()
        self.add_attention, self.add_feed_forward = Add(), Add()

    def forward(self, x, cosine, sine):
        normed = self.attention_norm(x)
        query, key, value = (weight(normed).unflatten(-1, (-1, HEAD))
                             for weight in (self.wq, self.wk, self.wv))
        out = self.attend(self.rotary_query(query, cosine, sine),
                          self.rotary_key(key, cosine, sine), value)
        x = self.add_attention(x, self.wo(out.flatten(-2)))
        normed = self.ffn_norm(x)
        gated = self.mul(self.silu(self.w1(normed)), self.w3(normed))
        return self.add_feed_forward(x, self.w2(gated))


class Partitioned(Exception):
    """The cut is all that is asked for."""


def producer(node):
    """The node that computes what is only viewed here."""
    while node.target in VIEWS:
        node = node.args[0]
    return node


def op_of(node):
    """What compile.recompute calls the op whose result a node is; None if it is
    something smaller inside of one, as the rsqrt of a norm."""
    stack = producer(node).meta["nn_module_stack"]
    path, _ = list(stack.values())[-1]
    is_whole = math.prod(node.meta["val"].shape) >= TOKENS * KEY_HEADS * HEAD
    return OPS[path.split(".")[-1]] if is_whole else None


def saved_by(budget):
    """The nodes of the forward pass that the backward pass gets."""
    found = []

    def partition(joint, inputs, **options):
        forward, backward = partitioners.min_cut_rematerialization_partition(
            joint, inputs, **options)
        outputs = forward.graph.find_nodes(op="output")[0].args[0]
        for node in outputs[options["num_fwd_outputs"]:]:
            # A place of the arguments is there anyway.
            if node.op != "placeholder":
                found.append(node)
        raise Partitioned

    def unused(graph, inputs):
        raise AssertionError("compiled before it was partitioned")

    torch._dynamo.reset()
    block = Block().to(torch.bfloat16)
    x = torch.empty(1, TOKENS, DIM, dtype=torch.bfloat16, requires_grad=True)
    angles = torch.empty(TOKENS, 1, HEAD // 2)
    compiled = torch.compile(block, fullgraph=True, backend=aot_autograd(
        fw_compiler=unused, partition_fn=partition))
    with config.patch(activation_memory_budget=budget):
        try:
            compiled(x, angles, angles)
        except torch._dynamo.exc.BackendCompilerFailed as error:
            if not isinstance(error.inner_exception, Partitioned):
                raise
    return found


def main():
    policies = []
    for budget in BUDGETS:
        ops = {op_of(node) for node in saved_by(budget)} - {None}
        policies.append([round(budget, 1), "save:" + "|".join(sorted(ops)) if ops else "full"])
        print(*policies[-1])
    golden_file.write(__file__, {"torch": torch.__version__}, policies=policies)


main()
