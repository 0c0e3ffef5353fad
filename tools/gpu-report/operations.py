"""Programs of single operations at sizes that no vector divides, and what they
work on. All of them must have the CPU's bits: they are the project's own
kernels, and a matmul or cuDNN's attention is in none."""
import math
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                                "test"))

from support import tensors as safetensors

ROWS, COLS, CLASSES = 37, 83, 101

# {T} is f32 or bf16, {t} its name in names.
_TEMPLATE = """
func.func @pointwise_{t}(%x: tensor<37x83x{T}> {{nn.name = "pointwise_{t}.x"}}, %y: tensor<37x83x{T}> {{nn.name = "pointwise_{t}.y"}})
    -> (tensor<37x83x{T}> {{nn.name = "pointwise_{t}.a"}}, tensor<37x83x{T}> {{nn.name = "pointwise_{t}.b"}}, tensor<37x83x{T}> {{nn.name = "pointwise_{t}.c"}}, tensor<37x83xf32> {{nn.name = "pointwise_{t}.d"}}) {{
  %0 = nn.silu %x : tensor<37x83x{T}>
  %a = nn.mul %0, %y : tensor<37x83x{T}>
  %1 = nn.exp %x : tensor<37x83x{T}>
  %2 = nn.tanh %y : tensor<37x83x{T}>
  %b = nn.div %2, %1 : tensor<37x83x{T}>
  %3 = nn.sigmoid %x : tensor<37x83x{T}>
  %4 = nn.sqrt %3 : tensor<37x83x{T}>
  %c = nn.log %4 : tensor<37x83x{T}>
  %d = nn.cast %c : tensor<37x83x{T}> to tensor<37x83xf32>
  return %a, %b, %c, %d : tensor<37x83x{T}>, tensor<37x83x{T}>, tensor<37x83x{T}>, tensor<37x83xf32>
}}
func.func @norms_{t}(%x: tensor<37x83x{T}> {{nn.name = "norms_{t}.x"}}, %dy: tensor<37x83x{T}> {{nn.name = "norms_{t}.dy"}}, %w: tensor<83x{T}> {{nn.name = "norms_{t}.w"}})
    -> (tensor<37x83x{T}> {{nn.name = "norms_{t}.y"}}, tensor<37x83x{T}> {{nn.name = "norms_{t}.dx"}}, tensor<83x{T}> {{nn.name = "norms_{t}.dw"}}, tensor<37x83x{T}> {{nn.name = "norms_{t}.p"}}) {{
  %y, %r = nn.rms_norm %x, %w eps 1.0e-05 : tensor<37x83x{T}>, tensor<83x{T}>, tensor<37xf32>
  %dx = nn.rms_norm_input_grad %x, %w, %r, %dy : tensor<37x83x{T}>, tensor<83x{T}>, tensor<37xf32>
  %dw = nn.rms_norm_weight_grad %x, %r, %dy : tensor<37x83x{T}>, tensor<37xf32> to tensor<83x{T}>
  %p = nn.softmax %x : tensor<37x83x{T}>
  return %y, %dx, %dw, %p : tensor<37x83x{T}>, tensor<37x83x{T}>, tensor<83x{T}>, tensor<37x83x{T}>
}}
func.func @rotary_{t}(%x: tensor<2x9x3x10x{T}> {{nn.name = "rotary_{t}.x"}}) -> (tensor<2x9x3x10x{T}> {{nn.name = "rotary_{t}.a"}}, tensor<2x9x3x10x{T}> {{nn.name = "rotary_{t}.h"}}) {{
  %t = nn.read @table : tensor<9x5x2xf32>
  %a = nn.rotary adjacent %x, %t : tensor<2x9x3x10x{T}>, tensor<9x5x2xf32>
  %h = nn.rotary halves %x, %t {{inverse}} : tensor<2x9x3x10x{T}>, tensor<9x5x2xf32>
  return %a, %h : tensor<2x9x3x10x{T}>, tensor<2x9x3x10x{T}>
}}
func.func @heads_{t}(%x: tensor<2x9x8x10x{T}> {{nn.name = "heads_{t}.x"}}) -> (tensor<2x9x4x10x{T}> {{nn.name = "heads_{t}.q"}}, tensor<2x9x2x10x{T}> {{nn.name = "heads_{t}.k"}}, tensor<2x9x2x10x{T}> {{nn.name = "heads_{t}.v"}}, tensor<2x9x8x10x{T}> {{nn.name = "heads_{t}.y"}}) {{
  %t = nn.read @table : tensor<9x5x2xf32>
  %q, %k, %v = nn.split_heads adjacent %x, %t : tensor<2x9x8x10x{T}>, tensor<9x5x2xf32> -> tensor<2x9x4x10x{T}>, tensor<2x9x2x10x{T}>
  %y = nn.join_heads halves %q, %k, %v, %t : tensor<2x9x4x10x{T}>, tensor<2x9x2x10x{T}>, tensor<9x5x2xf32> -> tensor<2x9x8x10x{T}>
  return %q, %k, %v, %y : tensor<2x9x4x10x{T}>, tensor<2x9x2x10x{T}>, tensor<2x9x2x10x{T}>, tensor<2x9x8x10x{T}>
}}
func.func @embedding_{t}(%ids: tensor<37xi32> {{nn.name = "embedding_{t}.ids"}}, %w: tensor<101x83x{T}> {{nn.name = "embedding_{t}.w"}}, %dy: tensor<37x83x{T}> {{nn.name = "embedding_{t}.dy"}})
    -> (tensor<37x83x{T}> {{nn.name = "embedding_{t}.y"}}, tensor<101x83x{T}> {{nn.name = "embedding_{t}.dw"}}) {{
  %y = nn.embedding %ids, %w : tensor<37xi32>, tensor<101x83x{T}> -> tensor<37x83x{T}>
  %dw = nn.embedding_grad %ids, %dy : tensor<37xi32>, tensor<37x83x{T}> -> tensor<101x83x{T}>
  return %y, %dw : tensor<37x83x{T}>, tensor<101x83x{T}>
}}
func.func @loss_{t}(%x: tensor<37x101x{T}> {{nn.name = "loss_{t}.x"}}, %ids: tensor<37xi32> {{nn.name = "loss_{t}.ids"}})
    -> (tensor<37xf32> {{nn.name = "loss_{t}.rows"}}, tensor<37x101x{T}> {{nn.name = "loss_{t}.dx"}}, tensor<f32> {{nn.name = "loss_{t}.mean"}}) {{
  %rows, %lse = nn.cross_entropy %x, %ids ignore_index 3 : tensor<37x101x{T}>, tensor<37xi32>, tensor<37xf32>
  %dx = nn.cross_entropy_grad %x, %ids, %lse, %rows ignore_index 3 : tensor<37x101x{T}>, tensor<37xi32>, tensor<37xf32>
  %sum = nn.sum %rows [0] : tensor<37xf32> to tensor<f32>
  %count = nn.count_labels %ids ignore_index 3 : tensor<37xi32> -> tensor<i64>
  %mean = nn.divide_by_count %sum, %count : tensor<f32>, tensor<i64>
  return %rows, %dx, %mean : tensor<37xf32>, tensor<37x101x{T}>, tensor<f32>
}}
func.func @attention_{t}(%q: tensor<2x19x4x12x{T}> {{nn.name = "attention_{t}.q"}}, %k: tensor<2x19x2x12x{T}> {{nn.name = "attention_{t}.k"}}, %v: tensor<2x19x2x12x{T}> {{nn.name = "attention_{t}.v"}})
    -> (tensor<2x19x4x12x{T}> {{nn.name = "attention_{t}.o"}}, tensor<2x19x4x12x{T}> {{nn.name = "attention_{t}.dq"}}, tensor<2x19x2x12x{T}> {{nn.name = "attention_{t}.dk"}}, tensor<2x19x2x12x{T}> {{nn.name = "attention_{t}.dv"}}) {{
  %o, %lse = nn.attention %q, %k, %v scale 0.3 {{causal}} : tensor<2x19x4x12x{T}>, tensor<2x19x2x12x{T}>, tensor<2x4x19xf32>
  %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %o, %lse, %q scale 0.3 {{causal}} : tensor<2x19x4x12x{T}>, tensor<2x19x2x12x{T}>, tensor<2x4x19xf32>
  return %o, %dq, %dk, %dv : tensor<2x19x4x12x{T}>, tensor<2x19x4x12x{T}>, tensor<2x19x2x12x{T}>, tensor<2x19x2x12x{T}>
}}
func.func @window_{t}(%q: tensor<2x19x4x12x{T}> {{nn.name = "window_{t}.q"}}, %k: tensor<2x19x2x12x{T}> {{nn.name = "window_{t}.k"}}, %v: tensor<2x19x2x12x{T}> {{nn.name = "window_{t}.v"}})
    -> (tensor<2x19x4x12x{T}> {{nn.name = "window_{t}.o"}}, tensor<2x19x4x12x{T}> {{nn.name = "window_{t}.dq"}}, tensor<2x19x2x12x{T}> {{nn.name = "window_{t}.dk"}}, tensor<2x19x2x12x{T}> {{nn.name = "window_{t}.dv"}}) {{
  %o, %lse = nn.attention %q, %k, %v scale 0.3 {{cap = 1.5 : f64, causal, window = 5 : i64}} : tensor<2x19x4x12x{T}>, tensor<2x19x2x12x{T}>, tensor<2x4x19xf32>
  %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %o, %lse, %q scale 0.3 {{cap = 1.5 : f64, causal, window = 5 : i64}} : tensor<2x19x4x12x{T}>, tensor<2x19x2x12x{T}>, tensor<2x4x19xf32>
  return %o, %dq, %dk, %dv : tensor<2x19x4x12x{T}>, tensor<2x19x4x12x{T}>, tensor<2x19x2x12x{T}>, tensor<2x19x2x12x{T}>
}}
"""

_OPTIMIZER = """
nn.buffer @table : tensor<9x5x2xf32> init #nn.rotary_table<[1.0, 0.16, 0.025, 0.004, 0.00063]>
nn.parameter @w : tensor<37x83xf32> init #nn.normal<std = 1.0>
nn.buffer @w.exp_avg : tensor<37x83xf32> init #nn.zeros {nn.state_of = @w}
nn.buffer @w.exp_avg_sq : tensor<37x83xf32> init #nn.zeros {nn.state_of = @w}
nn.buffer @sum : tensor<37x83xf32> init #nn.zeros
func.func @optimizer(%g: tensor<37x83xf32> {nn.name = "optimizer.g"}, %lr: tensor<f32> {nn.name = "optimizer.lr"}, %step: tensor<i32> {nn.name = "optimizer.step"})
    -> (tensor<f32> {nn.name = "optimizer.norm"}, tensor<37x83xf32> {nn.name = "optimizer.w"}, tensor<83x37xf32> {nn.name = "optimizer.transposed"}, tensor<37x83xf32> {nn.name = "optimizer.sum"}) {
  %max = nn.abs_max %g : tensor<37x83xf32> -> tensor<f32>
  %sum = nn.sum_squares %max, %g : tensor<f32>, tensor<37x83xf32> -> tensor<2xi64>
  %norm, %clip = nn.clip_coefficient %max, %sum max_norm 1.0 : tensor<f32>, tensor<2xi64>
  nn.adamw [@w] moments [@w.exp_avg], [@w.exp_avg_sq] (%g) lr %lr step %step clip %clip
      {beta1 = 0.9 : f64, beta2 = 0.95 : f64, eps = 1.0e-8 : f64, weight_decay = 0.1 : f64} : tensor<37x83xf32>
  %w = nn.read @w : tensor<37x83xf32>
  %t = nn.transpose %g [1, 0] : tensor<37x83xf32> to tensor<83x37xf32>
  nn.write @sum, %g : tensor<37x83xf32>
  nn.accumulate @sum, %w : tensor<37x83xf32>
  %narrow = nn.cast %w : tensor<37x83xf32> to tensor<37x83xbf16>
  nn.accumulate @sum, %narrow : tensor<37x83xbf16>
  %total = nn.read @sum : tensor<37x83xf32>
  return %norm, %w, %t, %total : tensor<f32>, tensor<37x83xf32>, tensor<83x37xf32>, tensor<37x83xf32>
}
"""


def text():
    return _OPTIMIZER + "".join(_TEMPLATE.format(T=t, t=t) for t in ("f32", "bf16"))


def _number(kind, name, generator):
    if kind == "i32":
        return struct.pack("<i", 7 if name.endswith("step") else generator.randrange(CLASSES))
    value = struct.pack("<f", generator.gauss(0, 1))
    return value if kind == "f32" else value[2:]


def write_inputs(manifest, path):
    """A safetensors file with numbers for every input."""
    generator, tensors = random.Random(1), {}
    names = {"f32": "F32", "bf16": "BF16", "i32": "I32"}
    for entry in manifest["ranges"]:
        if entry["role"] != "input":
            continue
        raw = b"".join(_number(entry["dtype"], entry["name"], generator)
                       for _ in range(math.prod(entry["shape"])))
        tensors[entry["name"]] = names[entry["dtype"]], entry["shape"], raw
    safetensors.write_safetensors(path, tensors)
