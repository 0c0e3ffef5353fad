"""Forward and reverse values of every nn op from PyTorch autograd, in f64.

Each case is a function in MLIR text, inputs, the outputs PyTorch gives, a
cotangent for each differentiated output, and the gradients PyTorch's autograd
derives from them. Inputs and cotangents have few digits, so that the file
stays small; outputs and gradients have all of them.
"""

import math

import torch
import torch.nn.functional as F

import golden_file
from llama_debug import llama3_frequencies, rotate_adjacent, rotary_table

torch.set_default_dtype(torch.float64)
GENERATOR = torch.Generator().manual_seed(1)
CASES = []


def uniform(*shape, low=-2.0, high=2.0):
    """Three decimals: exact enough in f64, and short in the file."""
    values = torch.rand(shape, generator=GENERATOR) * (high - low) + low
    return (values * 1000).round() / 1000


def type_of(tensor):
    element = "i32" if tensor.dtype == torch.int32 else "f64"
    return f"tensor<{''.join(f'{d}x' for d in tensor.shape)}{element}>"


def flat(tensor):
    return None if tensor is None else tensor.detach().flatten().tolist()


def case(name, body, inputs, function, aux=0, fixed=(), names=None):
    """Records one case.

    `body` is the op's text over %0, %1, … that defines %r, or %r#0, … for
    several results, or `names`. The last `aux` outputs of `function` are kept
    for the backward pass and get no cotangent; inputs in `fixed` get no
    gradient.
    """
    leaves = [x.clone().requires_grad_(x.is_floating_point() and i not in fixed)
              for i, x in enumerate(inputs)]
    outputs = function(*leaves)
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    differentiated = len(outputs) - aux
    cotangents = [uniform(*y.shape, low=-1.0, high=1.0) if i < differentiated else None
                  for i, y in enumerate(outputs)]
    wanted = [x for x in leaves if x.requires_grad]
    gradients = iter(torch.autograd.grad(outputs[:differentiated], wanted,
                                         cotangents[:differentiated]))
    arguments = ", ".join(f"%{i}: {type_of(x)}" for i, x in enumerate(inputs))
    results = ", ".join(type_of(y) for y in outputs)
    names = names or (["%r"] if len(outputs) == 1 else [f"%r#{i}" for i in range(len(outputs))])
    types = [type_of(t) for t in [*inputs, *outputs]]
    text = (f"func.func @{name}({arguments}) -> ({results}) {{\n  {body.format(*types)}\n"
            f"  return {', '.join(names)} : {results}\n}}\n")
    CASES.append({
        "name": name, "mlir": text,
        "inputs": [flat(x) for x in inputs],
        "outputs": [flat(y) for y in outputs],
        "cotangents": [flat(c) for c in cotangents],
        "gradients": [flat(next(gradients)) if x.requires_grad else None for x in leaves],
    })


def pointwise():
    x, y = uniform(3, 5), uniform(3, 5)
    positive = uniform(3, 5, low=0.2, high=3.0)
    for name, function in {"add": torch.add, "sub": torch.sub, "mul": torch.mul}.items():
        case(name, f"%r = nn.{name} %0, %1 : {{0}}", [x, y], function)
    case("div", "%r = nn.div %0, %1 : {0}", [x, positive], torch.div)
    unary = {"neg": torch.neg, "exp": torch.exp, "tanh": torch.tanh, "sigmoid": torch.sigmoid,
             "relu": torch.relu, "silu": F.silu}
    for name, function in unary.items():
        case(name, f"%r = nn.{name} %0 : {{0}}", [x], function)
    for name, function in {"log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt}.items():
        case(name, f"%r = nn.{name} %0 : {{0}}", [positive], function)
    # Large values too: the tails must not overflow.
    wide = torch.tensor([-800.0, -30.0, -5.0, 0.0, 5.0, 30.0, 800.0])
    for name in ("tanh", "sigmoid", "silu"):
        case(f"{name}_tails", f"%r = nn.{name} %0 : {{0}}", [wide], unary[name])
    for form, approximate in {"exact": "none", "tanh": "tanh"}.items():
        case(f"gelu_{form}", f"%r = nn.gelu {form} %0 : {{0}}", [x],
             lambda t, a=approximate: F.gelu(t, approximate=a))
    # There and back: the values and the cotangents are rounded to f32.
    narrow = "tensor<3x5xf32>"
    case("cast", f"%n = nn.cast %0 : {{0}} to {narrow}\n  %r = nn.cast %n : {narrow} to {{0}}",
         [x], lambda t: t.float().double())
    case("constant", "%c = nn.constant dense<0.75> : {0}\n  %r = nn.mul %0, %c : {0}",
         [x], lambda t: t * 0.75)


def shapes():
    x = uniform(2, 3, 4)
    case("reshape", "%r = nn.reshape %0 : {0} to {1}", [x], lambda t: t.reshape(4, 6))
    case("transpose", "%r = nn.transpose %0 [2, 0, 1] : {0} to {1}", [x],
         lambda t: t.permute(2, 0, 1).contiguous())
    case("slice", "%r = nn.slice %0 [1, 0, 2] : {0} to {1}", [x], lambda t: t[1:2, 0:2, 2:4])
    case("pad", "%r = nn.pad %0 [1, 0, 2] : {0} to {1}", [x],
         lambda t: F.pad(t, (2, 1, 0, 2, 1, 0)))
    case("concat", "%r = nn.concat %0, %1 dim 1 : {0}, {1} to {2}", [x, uniform(2, 2, 4)],
         lambda a, b: torch.cat([a, b], dim=1))
    case("concat_same", "%r = nn.concat %0, %0 dim 0 : {0}, {0} to {1}", [x],
         lambda a: torch.cat([a, a], dim=0))
    case("broadcast_new", "%r = nn.broadcast %0 [2] : {0} to {1}", [uniform(4)],
         lambda t: t.expand(2, 3, 4))
    case("broadcast_leading", "%r = nn.broadcast %0 [0, 1] : {0} to {1}", [uniform(2, 3)],
         lambda t: t[..., None].expand(2, 3, 4))
    case("broadcast_unit", "%r = nn.broadcast %0 [0, 1] : {0} to {1}", [uniform(3, 1)],
         lambda t: t.expand(3, 4))
    case("broadcast_scalar", "%r = nn.broadcast %0 [] : {0} to {1}", [uniform()],
         lambda t: t.expand(2, 3))
    ties = torch.tensor([[1.0, 3.0, 3.0, -1.0], [2.0, 2.0, 2.0, 2.0], [0.5, -0.5, 0.25, 0.0]])
    for dims in ([0], [1], [0, 1]):
        suffix = "_".join(map(str, dims))
        for name, function in {"sum": torch.sum, "mean": torch.mean, "max": torch.amax}.items():
            count = math.prod(ties.shape[dim] for dim in dims)
            divisor = f"count {count} " if name == "mean" else ""
            case(f"{name}_{suffix}", f"%r = nn.{name} %0 {dims} {divisor}: {{0}} to {{1}}", [ties],
                 lambda t, f=function, d=dims: f(t, dim=d))


def products():
    x, w, b = uniform(2, 3, 4), uniform(5, 4), uniform(5)
    case("linear", "%r = nn.linear %0, %1 : {0}, {1} -> {2}", [x, w], F.linear)
    case("linear_bias", "%r = nn.linear %0, %1 bias %2 : {0}, {1}, {2} -> {3}", [x, w, b], F.linear)
    for lhs in (False, True):
        for rhs in (False, True):
            names = [n for n, on in (("transpose_lhs", lhs), ("transpose_rhs", rhs)) if on]
            attributes = " {{" + ", ".join(names) + "}}" if names else ""
            a = uniform(2, 4, 3) if lhs else uniform(2, 3, 4)
            c = uniform(2, 5, 4) if rhs else uniform(2, 4, 5)
            case("_".join(["matmul", *names]),
                 f"%r = nn.matmul %0, %1{attributes} : {{0}}, {{1}} -> {{2}}", [a, c],
                 lambda a, c, l=lhs, r=rhs: (a.mT if l else a) @ (c.mT if r else c))


def norms():
    # eps is as large as the mean square of x: a wrong one cannot hide.
    x, w, b = uniform(2, 3, 8, low=-0.2, high=0.2), uniform(8), uniform(8)
    eps = 1e-2

    def rms(x, w):
        rstd = torch.rsqrt(x.square().mean(-1) + eps)
        return F.rms_norm(x, w.shape, w, eps), rstd

    def layer(x, w, b):
        rstd = torch.rsqrt(x.var(-1, unbiased=False) + eps)
        return F.layer_norm(x, w.shape, w, b, eps), x.mean(-1), rstd

    case("rms_norm", f"%r:2 = nn.rms_norm %0, %1 eps {eps} : {{0}}, {{1}}, {{3}}", [x, w], rms, aux=1)
    case("layer_norm", f"%r:3 = nn.layer_norm %0, %1, %2 eps {eps} : {{0}}, {{1}}, {{4}}",
         [x, w, b], layer, aux=2)
    case("softmax", "%r = nn.softmax %0 : {0}", [uniform(3, 5)], lambda t: F.softmax(t, -1))
    case("softmax_large", "%r = nn.softmax %0 : {0}", [uniform(2, 4) + 1000], lambda t: F.softmax(t, -1))


def rotate_halves(x, table):
    cos, sin = table[None, :, None, :, 0], table[None, :, None, :, 1]
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


def rotary():
    """At positions 9000 … 9003, beyond the original context of 8192."""
    x, table = uniform(2, 4, 2, 8), rotary_table(4, 8, start=9000)
    longer = rotary_table(6, 8, start=9000)
    back = table * torch.tensor([1.0, -1.0])
    type_text = "{0}, {1}"
    for pairs, function in {"adjacent": rotate_adjacent, "halves": rotate_halves}.items():
        case(f"rotary_{pairs}", f"%r = nn.rotary {pairs} %0, %1 : {type_text}", [x, table],
             function, fixed=[1])
        case(f"rotary_{pairs}_inverse", f"%r = nn.rotary {pairs} %0, %1 {{{{inverse}}}} : {type_text}",
             [x, table], lambda t, u, f=function: f(t, back), fixed=[1])
    case("rotary_longer_table", f"%r = nn.rotary adjacent %0, %1 : {type_text}", [x, longer],
         lambda t, u: rotate_adjacent(t, u[:4]), fixed=[1])


def attention_case(name, q_len, kv_len, heads, kv_heads, causal, window=None, cap=None):
    q, k, v = uniform(2, q_len, heads, 4), uniform(2, kv_len, kv_heads, 4), uniform(2, kv_len, kv_heads, 4)
    scale = 0.375  # not head_dim^-1/2, so that an ignored scale shows

    def function(q, k, v):
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        scores = scale * q @ k.repeat_interleave(heads // kv_heads, dim=1).mT
        if cap:
            scores = cap * torch.tanh(scores / cap)
        if causal:
            hidden = torch.ones(q_len, kv_len).triu(1).bool()
            if window:
                hidden |= torch.ones(q_len, kv_len).tril(-window).bool()
            scores = scores.masked_fill(hidden, -math.inf)
        if window or cap:
            out = scores.softmax(-1) @ v.repeat_interleave(heads // kv_heads, dim=1)
        else:
            out = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=True)
        return out.transpose(1, 2), scores.logsumexp(-1)

    flags = ([f"cap = {cap} : f64"] if cap else []) + (["causal"] if causal else []) + (
        [f"window = {window} : i64"] if window else [])
    flag = f" {{{{{', '.join(flags)}}}}}" if flags else ""
    case(name, f"%r:2 = nn.attention %0, %1, %2 scale {scale}{flag} : {{0}}, {{1}}, {{4}}",
         [q, k, v], function, aux=1)


def attention():
    attention_case("attention_causal", 5, 5, 2, 2, True)
    attention_case("attention_causal_grouped", 5, 5, 4, 2, True)
    attention_case("attention_grouped", 3, 3, 4, 1, False)
    attention_case("attention_cross", 2, 5, 2, 2, False)


def lookups_and_losses():
    ids = torch.tensor([[3, 0, 3], [5, 3, 1]], dtype=torch.int32)
    case("embedding", "%r = nn.embedding %0, %1 : {0}, {1} -> {2}", [ids, uniform(6, 4)],
         lambda i, t: F.embedding(i.long(), t))

    # The mean over the rows that count, as PyTorch gives it, in four ops.
    mean = """%rows, %lse = nn.cross_entropy %0, %1 ignore_index {ignore} : {{0}}, {{1}}, {{3}}
  %sum = nn.sum %rows [0] : {{3}} to {{2}}
  %count = nn.count_labels %1 ignore_index {ignore} : {{1}} -> tensor<i64>
  %loss = nn.divide_by_count %sum, %count : {{2}}, tensor<i64>"""
    names = ["%loss", "%lse"]

    def cross_entropy(ignore):
        def function(logits, targets):
            loss = F.cross_entropy(logits, targets.long(), ignore_index=ignore)
            # PyTorch gives NaN when no row counts; the op is defined as 0.
            return torch.where((targets != ignore).any(), loss, logits.sum() * 0), logits.logsumexp(-1)
        return function

    logits = uniform(4, 6)
    targets = {"cross_entropy": ([2, 0, 5, 2], -100), "cross_entropy_ignored": ([2, -100, 5, -100], -100),
               "cross_entropy_ignore_class": ([2, 0, 5, 2], 2)}
    for name, (classes, ignore) in targets.items():
        case(name, mean.format(ignore=ignore), [logits, torch.tensor(classes, dtype=torch.int32)],
             cross_entropy(ignore), aux=1, names=names)
    # No row counts: the loss and its gradient are 0, by definition.
    case("cross_entropy_all_ignored", mean.format(ignore=-100),
         [logits, torch.full((4,), -100, dtype=torch.int32)],
         lambda t, _: (t.sum() * 0, t.logsumexp(-1)), aux=1, names=names)
    case("mse_loss", "%r = nn.mse_loss %0, %1 count 15 : {0}, {2}", [uniform(3, 5), uniform(3, 5)], F.mse_loss)


def attention_views():
    attention_case("attention_window", 6, 6, 4, 2, True, window=3)
    attention_case("attention_cap", 2, 5, 2, 1, False, cap=0.5)
    attention_case("attention_window_cap", 6, 6, 4, 2, True, window=2, cap=0.25)


def rotary_tables():
    """What a #nn.rotary_table fills a buffer with, as f64 values."""
    scaled = dict(theta=500000.0, factor=8.0, low=1.0, high=4.0, original=8192)
    plain = dict(scaled, theta=10000.0, factor=1.0)
    tables = []
    for scaling, head_dim, start in ((scaled, 16, 9000), (scaled, 128, 8191), (plain, 8, 0)):
        table = rotary_table(2, head_dim, start=start, **scaling)
        tables.append({**scaling, "head_dim": head_dim, "start": start, "positions": 2,
                       "values": flat(table)})
    return tables


# The frequencies that Llama 3.1 has for heads of 16 elements.
KNOWN = [1, .19392274474868576, .03760603093086393, .0072926647372171085, .0005248461609929547,
         3.428102195952591e-05, 6.647869871181236e-06, 1.2891731721515574e-06]
assert all(math.isclose(a, b, rel_tol=1e-12) for a, b in zip(llama3_frequencies(16), KNOWN))


def main():
    for group in (pointwise, shapes, products, norms, rotary, attention, lookups_and_losses,
                  attention_views):
        group()
    header = {"about": "Values of nn ops from PyTorch; made by nn_ops.py",
              "torch": str(torch.__version__)}
    golden_file.write(__file__, header, cases=CASES, rotary_tables=rotary_tables())
    print(len(CASES), "cases")


if __name__ == "__main__":
    main()
